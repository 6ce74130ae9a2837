"""Puts a counter into loops that AutoGraph turns into graph operations.

An addition of about a microsecond leaves the input pipeline as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pipediag.capture.frameworks.tensorflow.beside_graphs import CountBeside
from pipediag.capture.frameworks.tensorflow.kept_batches import BatchKeeper, not_kept
from pipediag.capture.runtime import Runtime
from pipediag.capture.watching.in_graph import InGraphMeasure
from pipediag.capture.watching.watchers import Watchers

_WHAT = "counting the steps of loops inside a tf.function"
_REPLICAS = "Each replica has a part of its batches, of which none is kept to be looked at."


class GraphLoops:
    """Hooks onto AutoGraph's two ways to loop over data."""

    def __init__(self, watchers: Watchers, runtime: Runtime) -> None:
        self._guard = watchers.guard
        self._in_graph = watchers.in_graph
        self._runtime = runtime
        self._counts = watchers.guard.entry(_WHAT, lambda counter: counter.add())
        self._keeps = watchers.guard.entry("keeping batches of a loop", self._keep)

    def install_datasets(self, dataset_autograph: Any) -> None:
        """Count the steps of `for batch in dataset` inside a tf.function."""
        registry = dataset_autograph.control_flow.for_loop_registry
        dataset_class = dataset_autograph.dataset_ops.DatasetV2
        original = registry._registry[dataset_class]
        counted = self._counting(lambda dataset: dataset)

        def for_stmt(dataset: Any, extra_test: Any, body: Any, *rest: Any, **named: Any) -> Any:
            counting = counted(dataset, body, lambda: not_kept(dataset, on_host=True))
            return original(dataset, extra_test, counting, *rest, **named)

        registry._registry[dataset_class] = self._guard.hook(original, for_stmt)

    def install_iterators(self, control_flow: Any) -> None:
        """Count the steps of `for batch in iterator` inside a tf.function."""
        kinds: dict[str, Callable[[Any], str | None]] = {
            "_tf_iterator_for_stmt": lambda iterated: not_kept(iterated, on_host=False),
            "_tf_distributed_iterable_for_stmt": lambda _: _REPLICAS,
        }
        counted = self._counting(lambda iterated: getattr(iterated, "_dataset", iterated))
        for name, lack_of in kinds.items():
            original = getattr(control_flow, name)

            def for_stmt(
                iterated: Any,
                extra_test: Any,
                body: Any,
                *rest: Any,
                _original: Any = original,
                _lack_of: Any = lack_of,
                **named: Any,
            ) -> Any:
                counting = counted(iterated, body, lambda: _lack_of(iterated))
                return _original(iterated, extra_test, counting, *rest, **named)

            setattr(control_flow, name, self._guard.hook(original, for_stmt))

    def _counting(self, dataset_of: Callable[[Any], Any]) -> Callable[..., Any]:
        """An entry that returns the body of a loop with a counter in it, or the body as it is; it
        is given what says why no batch of the loop is kept."""

        def counted(
            iterated: Any, body: Callable[[Any], Any], lack_of: Callable[[], str | None]
        ) -> Callable[[Any], Any]:
            measure = self._measured(dataset_of(iterated))
            if measure is None:
                return body
            keeper = None if measure.done else self._keeper(measure, lack_of())

            def body_and_count(batch: Any) -> Any:
                number = self._counts(measure.counter)
                self._keeps(keeper, number, batch)
                return body(batch)

            return body_and_count

        return self._guard.entry(_WHAT, counted, lambda _, body, __: body)

    def _keeper(self, measure: InGraphMeasure, lack: str | None) -> BatchKeeper | None:
        if lack is not None:
            measure.keeps_none = lack
            return None
        keeper = BatchKeeper()
        self._in_graph.keeps(measure, keeper)
        return keeper

    @staticmethod
    def _keep(keeper: BatchKeeper | None, number: Any, batch: Any) -> None:
        if keeper is not None and number is not None:
            keeper.keep(number, batch)

    def _measured(self, dataset: Any) -> InGraphMeasure | None:
        if not hasattr(dataset, "element_spec"):
            return None
        return self._in_graph.found(dataset, self._runtime, CountBeside)
