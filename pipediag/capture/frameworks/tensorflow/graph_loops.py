"""Puts a counter into loops that AutoGraph turns into graph operations, but not into saved models.

An addition of about a microsecond leaves the input pipeline as it is.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from pipediag.capture.guard import Guard
from pipediag.capture.watching.step_clock import Watchers
from pipediag.session.recording import NAME_BEGINS

SCOPE = "pipediag_beside"
"""The name scope of all operations of ours, which distinguishes them from the script's."""
_WHAT = "counting the steps of loops inside a tf.function"
_BUILD = "_build_meta_graph"


class GraphLoops:
    """Hooks onto AutoGraph's two ways to loop over data."""

    def __init__(self, watchers: Watchers) -> None:
        self._guard = watchers.guard
        self._in_graph = watchers.in_graph
        self._counts = watchers.guard.entry(_WHAT, lambda counter: counter.add())
        self._counted = watchers.guard.entry(_WHAT, self._count, lambda _, body: body)

    def install_datasets(self, dataset_autograph: Any) -> None:
        """Count the steps of `for batch in dataset` inside a tf.function."""
        registry = dataset_autograph.control_flow.for_loop_registry._registry
        dataset_class = dataset_autograph.dataset_ops.DatasetV2
        registry[dataset_class] = self._hooked(registry[dataset_class])

    def install_iterators(self, control_flow: Any) -> None:
        """Count the steps of `for batch in iterator` inside a tf.function."""
        for name in ("_tf_iterator_for_stmt", "_tf_distributed_iterable_for_stmt"):
            setattr(control_flow, name, self._hooked(getattr(control_flow, name)))

    def _hooked(self, original: Any) -> Any:
        def for_stmt(iterated: Any, extra_test: Any, body: Any, *rest: Any, **named: Any) -> Any:
            return original(iterated, extra_test, self._counted(iterated, body), *rest, **named)

        return self._guard.hook(original, for_stmt)

    def _count(self, iterated: Any, body: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Put a counter into the body of a loop."""
        of_iterator = not hasattr(iterated, "_variant_tensor")
        dataset = getattr(iterated, "_dataset", iterated) if of_iterator else iterated
        measure = self._in_graph.found(dataset) if hasattr(dataset, "element_spec") else None
        if measure is None:
            return body

        def body_and_count(batch: Any) -> Any:
            self._counts(measure.counter)
            return body(batch)

        return body_and_count


class GraphCounter:
    """A count that a graph adds to, and that another thread reads meanwhile.

    A graph finds it by its name, in the host's memory. It captures nothing for it, so that the
    captures and variables of a function, which a script may differentiate by, freeze or save, are
    its own. Where the graph runs in another process, its operations make a count there anew, for
    nobody to read.

    An accumulator counts what is applied to it, at once, also by steps that overlap. Adding takes
    about a microsecond and can't fail for want of a first value.
    """

    def __init__(self) -> None:
        # A saved function may be loaded anywhere, beside others that were counted.
        self._name = f"pipediag_{uuid.uuid4().hex}"

    def add(self) -> None:
        """Add one, wherever what is traced now runs."""
        from tensorflow.python.framework import constant_op, dtypes, ops
        from tensorflow.python.ops import gen_data_flow_ops

        scope: AbstractContextManager[Any] = ops.name_scope(SCOPE)
        with scope, ops.device("/CPU:0"):
            gen_data_flow_ops.resource_accumulator_apply_gradient(
                self._accumulator(),
                local_step=constant_op.constant(0, dtypes.int64),
                gradient=constant_op.constant(0.0, dtypes.float32),
            )

    def read(self) -> int:
        from tensorflow.python.framework import ops
        from tensorflow.python.ops import gen_data_flow_ops

        with ops.init_scope(), ops.device("/CPU:0"):
            accumulator = self._accumulator()
            return int(gen_data_flow_ops.resource_accumulator_num_accumulated(accumulator).numpy())

    def _accumulator(self) -> Any:
        from tensorflow.python.framework import dtypes
        from tensorflow.python.ops import gen_data_flow_ops

        return gen_data_flow_ops.resource_conditional_accumulator(
            dtype=dtypes.float32, shape=[], shared_name=self._name
        )


def watch_saving(module: Any, guard: Guard) -> None:
    """Hook onto the module that makes SavedModels: others use them, so they are written without a
    counter."""
    original = getattr(module, _BUILD, None)
    if original is None:
        return
    cleans = guard.entry("keeping its own operations out of saved models", without_ours)

    def build(*args: Any, **kwargs: Any) -> Any:
        built = original(*args, **kwargs)
        cleans(built[0])
        return built

    setattr(module, _BUILD, guard.hook(original, build))


def without_ours(meta_graph: Any) -> None:
    """Take our operations out of a MetaGraphDef, and our names of datasets.

    Other operations wait for ours at most, and read nothing of them.
    """
    graph = meta_graph.graph_def
    _clean(graph.node)
    for function in graph.library.function:
        ours = _clean(function.node_def)
        gone = [name for name, node in function.control_ret.items() if node in ours]
        for name in gone:
            del function.control_ret[name]
        kept = [name for name in function.signature.control_output if name not in gone]
        del function.signature.control_output[:]
        function.signature.control_output.extend(kept)


def _clean(nodes: Any) -> set[str]:
    """Remove our nodes and all that waits for them; return their names."""
    for node in nodes:
        if "metadata" in node.attr and NAME_BEGINS.encode() in node.attr["metadata"].s:
            node.attr["metadata"].s = b""
    ours = {
        node.name for node in nodes if any(part.startswith(SCOPE) for part in node.name.split("/"))
    }
    if not ours:
        return ours
    for place in reversed(range(len(nodes))):
        if nodes[place].name in ours:
            del nodes[place]
    for node in nodes:
        kept = [one for one in node.input if one.removeprefix("^") not in ours]
        if len(kept) < len(node.input):
            del node.input[:]
            node.input.extend(kept)
    return ours
