"""What the function given to a tf.data operation is: its Python, and the graph it became."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pipediag.capture.callsites import is_users
from pipediag.capture.graph_constants import constant_bytes
from pipediag.capture.pipelines.python_calls import module_functions
from pipediag.capture.pipelines.side_effects import side_effect
from pipediag.capture.python_functions import source_location, unwrap
from pipediag.session.recorded_operations import RecordedFunction
from pipediag.tensorflow_names import PYTHON_OPERATIONS

# Marked stateful in the op registry, yet tf.data parallelises over them: they keep no state.
_HARMLESS_STATEFUL = frozenset({"Assert", "Placeholder", "NoOp"})


def describe_function(dataset: Any, trace_ms: float | None) -> RecordedFunction | None:
    """The first function of a dataset object, or None where it has none or it can't be read."""
    wrappers = dataset._functions()
    if not wrappers:
        return None
    wrapper = wrappers[0]
    graph = wrapper.function.graph
    python = unwrap(getattr(wrapper, "_func", None))
    code = getattr(python, "__code__", None)
    operations = list(_operations(graph))
    called_back = list(_python_functions(operations))
    return RecordedFunction(
        name=getattr(python, "__qualname__", None) or "function",
        file=code.co_filename if code else None,
        line=code.co_firstlineno if code else None,
        stateful=any(_is_stateful(operation) for operation in operations),
        graph_ops=dict(Counter(operation.type for operation in operations)),
        python_calls=module_functions(python),
        python_function_names=[source_location(function) for function in called_back],
        python_tokens=sorted(set(_tokens(operations))),
        side_effect=next(filter(None, map(users_side_effect, called_back)), None),
        trace_ms=trace_ms,
        constant_bytes=constant_bytes(operations),
    )


def users_side_effect(function: Callable[..., Any]) -> str | None:
    """What the script's own function visibly changes; frameworks know what they do."""
    code = getattr(unwrap(function), "__code__", None)
    return side_effect(function) if code is not None and is_users(code.co_filename) else None


def _operations(graph: Any) -> Iterator[Any]:
    yield from graph.get_operations()
    for inner in getattr(graph, "_functions", {}).values():
        inner_graph = getattr(inner, "graph", None)
        if inner_graph is not None:
            yield from inner_graph.get_operations()


def _is_stateful(operation: Any) -> bool:
    if operation.type in _HARMLESS_STATEFUL:
        return False
    return bool(operation.op_def is not None and operation.op_def.is_stateful)


def _tokens(operations: Iterable[Any]) -> Iterator[str]:
    for operation in operations:
        if operation.type in PYTHON_OPERATIONS:
            yield operation.get_attr("token").decode()


def _python_functions(operations: list[Any]) -> Iterator[Callable[..., Any]]:
    from tensorflow.python.ops import script_ops

    for token in _tokens(operations):
        function = script_ops._py_funcs._funcs.get(token)
        if (
            callable(function)
            and not hasattr(function, "__code__")
            and not hasattr(function, "_func")
        ):
            function = function()  # the registry keeps weak references
        if function is not None:
            yield getattr(function, "_func", function)
