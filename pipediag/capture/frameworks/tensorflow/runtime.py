"""How TensorFlow runs steps on batches of tf.data's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pipediag.capture.frameworks.tensorflow import cluster, datasets, model_proto, repeat
from pipediag.capture.frameworks.tensorflow.cancellation import OfOneCall
from pipediag.capture.frameworks.tensorflow.device_sync import DeviceClock
from pipediag.capture.frameworks.tensorflow.distributed import DistributedIterators
from pipediag.capture.frameworks.tensorflow.tables.eager_steps import EagerSteps
from pipediag.capture.frameworks.tensorflow.tables.pipeline_tokens import PipelineTokens
from pipediag.capture.frameworks.tensorflow.tables.reading import TracedTables
from pipediag.capture.runtime import Cancellation, Clock, StepTables

_MOST_HELD = 256_000_000
"""Bytes of batches that are drawn ahead of one call. Own choice: about what a pipeline that draws
ahead holds by itself."""


class TensorFlowRuntime:
    """Imports what it needs when it is asked: TensorFlow is there by then."""

    def __init__(self) -> None:
        self.advance: Callable[[Any], Any] = next
        """The original of what is hooked, once it is."""
        self.distributed: DistributedIterators | None = None
        """A strategy's iterators, once they are hooked."""

    rows = staticmethod(datasets.batch_rows)
    repeated = staticmethod(repeat.repeated)
    describe_dataset = staticmethod(datasets.facts_of)
    model_of = staticmethod(model_proto.model_of)
    other_processes = staticmethod(cluster.other_tasks)

    def pull(self, iterator: Any) -> Any:
        spread = self._spread(iterator)
        return self.advance(iterator) if spread is None else spread.pull(iterator)

    def handed_once(self, batches: Sequence[Any], iterator: Any, element_spec: Any) -> Any:
        spread = self._spread(iterator)
        if spread is None:
            return repeat.handed_once(batches, element_spec)
        return spread.handed_once(batches, iterator)

    def not_handed_once(self, iterator: Any, element_spec: Any, batches: int) -> str | None:
        spread = self._spread(iterator)
        if spread is None:
            lack = repeat.not_handed_once(iterator, element_spec)
        else:
            lack = spread.not_handed_once(iterator)
        if lack is None and batches > 1 and self._holds_much(element_spec, batches):
            return f"A call takes {batches} batches, which may be too large to be held."
        return lack

    @staticmethod
    def _holds_much(element_spec: Any, batches: int) -> bool:
        return batches * datasets.batch_bytes(element_spec) > _MOST_HELD

    def _spread(self, iterator: Any) -> DistributedIterators | None:
        distributed = self.distributed
        return distributed if distributed is not None and distributed.has(iterator) else None

    def unobserved(self, dataset: Any) -> Any:
        return repeat.unobserved_iterator(dataset, dataset.element_spec)

    def step_tables(self, functions: Sequence[Any]) -> StepTables:
        return TracedTables(functions)

    def pipeline_tokens(self, dataset: Any) -> PipelineTokens:
        return PipelineTokens(dataset)

    def eager_steps(self) -> EagerSteps:
        return EagerSteps()

    @property
    def no_models(self) -> str | None:
        return None if model_proto.tensorflow_has_models() else model_proto.NO_MODELS

    def cancellation(self) -> Cancellation:
        return OfOneCall()

    def clock(self) -> Clock:
        return DeviceClock()
