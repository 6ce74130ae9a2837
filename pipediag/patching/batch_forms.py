"""Functions of a map rewritten for whole batches: by a call that takes them, or row by row."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import libcst as cst

from pipediag.patching.chains import argument, chain_up, moved, needed_argument, with_arguments
from pipediag.patching.python_calls import defined
from pipediag.patching.sites import uses_in
from pipediag.patching.source import Change, NotPatchableError, Source, called, name_of
from pipediag.session.recording import RecordedFunction
from pipediag.tensorflow_names import PYTHON_OPERATIONS

PER_ROW = "parse_single_example"
PER_BATCH = "parse_example"
ROWS = "for_each_row"
_NUMPY = frozenset({"numpy_function", "py_func"})
_PYTHON = _NUMPY | {"py_function"}
_SHAPES = frozenset({"set_shape", "ensure_shape"})
_DEPTH = 4
"""Functions that call one another, from that of the map to the one that parses."""


def for_batches(
    source: Source,
    call: cst.Call,
    function: RecordedFunction | None,
    other_files: Sequence[Source] = (),
) -> list[Change]:
    """Rewrite the calls in a map's function that take a single row.

    Other maps of the same function move behind their batches, too.
    """
    ops = function.graph_ops if function is not None else {}
    changes = _parsed_at_once(source, call) if "ParseExampleV2" in ops else []
    if not _AXES.keys().isdisjoint(ops):
        changes += _next_axes(source, call)
    if not PYTHON_OPERATIONS.isdisjoint(ops):
        changes += _by_row(source, call)
    return [*changes, *_others_moved(source, call, other_files)] if changes else []


def vectorized(source: Source, call: cst.Call) -> list[Change]:
    """Hand a map's function over to `tf.vectorized_map`, which calls it for rows of a batch."""
    given = needed_argument(call, "map_func")
    span, tf = source.span(given), source.needed_tensorflow()
    row, rows = source.free_name("row"), source.free_name("rows")
    opened, closed = "()" if isinstance(given, cst.Lambda) else ("", "")
    before = f"lambda *{rows}: {tf}.vectorized_map(lambda {row}: {opened}"
    return [
        Change.insert(span.start, before),
        Change.insert(span.end, f"{closed}(*{row}), {rows})"),
    ]


def _parsed_at_once(source: Source, call: cst.Call) -> list[Change]:
    found = _calls_of(source, call, frozenset({PER_ROW, PER_BATCH}))
    if not found:
        raise NotPatchableError(f"The function that calls `{PER_ROW}` was not found in this file.")
    names = [name_of(each) for each in found if called(each) == PER_ROW]
    if any(not isinstance(source.parent(name), cst.Attribute) for name in names):
        raise NotPatchableError(
            f"`{PER_ROW}` is imported by name, so `{PER_BATCH}` would need an import too."
        )
    return [Change.replace(source.span(name), PER_BATCH) for name in names]


_AXES = {"Pack": "stack", "ConcatV2": "concat"}
"""Operations that put tensors together along an axis, and the calls that make them."""


def _next_axes(source: Source, call: cst.Call) -> list[Change]:
    changes = []
    for each in _calls_of(source, call, frozenset(_AXES.values())):
        above = each.func.value if isinstance(each.func, cst.Attribute) else None
        if not isinstance(above, cst.Name) or above.value != source.tensorflow():
            # A trial goes along the next axis whatever TensorFlow's function is called.
            raise NotPatchableError(f"The `{called(each)}` that it calls may not be TensorFlow's.")
        if "shape" in source.code(each):
            raise NotPatchableError("Its function puts parts of a shape together.")
        given = argument(each, "axis")
        if given is None:
            changes += with_arguments(source, each, {"axis": "1"})
        elif isinstance(given, cst.Integer):
            changes.append(Change.replace(source.span(given), str(given.evaluated_value + 1)))
        elif not isinstance(given, cst.UnaryOperation):
            raise NotPatchableError(f"The axis of `{called(each)}` is not a number.")
    return changes


def _by_row(source: Source, call: cst.Call) -> list[Change]:
    """Hand a batch to Python in one call, which calls the function for each of its rows."""
    found = _calls_of(source, call, _PYTHON | _SHAPES)
    shaped = [each for each in found if called(each) in _SHAPES]
    python = [each for each in found if each not in shaped]
    changes = _called_through(source, call, python, ROWS)
    return [*changes, *(_of_batch(source, needed_argument(each, "shape")) for each in shaped)]


def in_processes(source: Source, call: cst.Call, processes: str) -> list[Change]:
    """Have processes call the Python of a map's function, one call in each."""
    python = _calls_of(source, call, _NUMPY, shared=True)
    changes = _called_through(source, call, python, "in_processes", f", {processes}")
    return [*changes, *with_arguments(source, call, {"num_parallel_calls": processes})]


def _called_through(
    source: Source, call: cst.Call, python: Sequence[cst.Call], function: str, more: str = ""
) -> list[Change]:
    """Hand what TensorFlow calls in Python over to a function that is defined in the file."""
    if not python:
        raise NotPatchableError("The call into Python in its function was not found in this file.")
    at = min(source.span(each).start for each in (call, *python))
    name, changes = defined(source, function, at)
    for each in python:
        span = source.span(needed_argument(each, "func"))
        changes += [Change.insert(span.start, f"{name}("), Change.insert(span.end, f"{more})")]
    return changes


def _of_batch(source: Source, shape: cst.BaseExpression) -> Change:
    code = source.module.code_for_node
    if isinstance(shape, cst.Call) and called(shape) == "TensorShape":
        return _of_batch(source, needed_argument(shape, "dims"))
    if isinstance(shape, cst.List | cst.Tuple):
        items = ["None", *(code(each.value) for each in shape.elements)]
        # The span of a tuple lies within its parentheses.
        text, is_list = ", ".join(items), isinstance(shape, cst.List)
        text = f"[{text}]" if is_list else f"{text}," if len(items) == 1 else text
        return Change.replace(source.span(shape), text)
    if isinstance(shape, cst.Name | cst.Attribute | cst.Subscript):
        return Change.replace(source.span(shape), f"[None, *{code(shape)}]")
    raise NotPatchableError(f"A batch dimension can't be added to the shape `{code(shape)}`.")


def _calls_of(
    source: Source, call: cst.Call, names: frozenset[str], *, shared: bool = False
) -> list[cst.Call]:
    """Return the calls of these names that a map's function makes, or a function that it calls.

    Raises NotPatchableError where other code calls one of them, unless they may be `shared`.
    """
    given = needed_argument(call, "map_func")
    return list(dict.fromkeys(_found(source, given, call, names, _DEPTH, shared)))


def _found(
    source: Source,
    given: cst.BaseExpression,
    at: cst.CSTNode,
    names: frozenset[str],
    depth: int,
    shared: bool,
) -> list[cst.Call]:
    body = given if isinstance(given, cst.Lambda) else _definition(source, given, at)
    if body is None or depth == 0:
        return []
    calls = source.all(cst.Call, body)
    found = [node for node in calls if called(node) in names]
    for node in calls:
        found += _found(source, node.func, node, names, depth - 1, shared)
    inner = found and not shared and depth < _DEPTH
    if inner and isinstance(body, cst.FunctionDef) and len(uses_in(source, source, body)) > 1:
        raise _is_shared(body)  # other code hands it single rows
    return found


def _others_moved(source: Source, call: cst.Call, other_files: Sequence[Source]) -> list[Change]:
    function = _definition(source, needed_argument(call, "map_func"), call)
    if function is None:
        return []
    if any(uses_in(each, source, function) for each in other_files):
        raise _is_shared(function)
    changes: list[Change] = []
    for use in uses_in(source, source, function):
        given = source.parent(use)
        other = source.parent(given) if isinstance(given, cst.Arg) else None
        if other is call:
            continue
        if not isinstance(other, cst.Call) or called(other) != "map":
            raise _is_shared(function)
        batch = _batch_behind(source, other)
        if batch is None:
            raise _is_shared(function)
        changes += moved(source, other, batch)
    return changes


_KEEP_ROWS = ("prefetch", "repeat", "shuffle", "with_options")


def _batch_behind(source: Source, call: cst.Call) -> cst.Call | None:
    for batch in source.calls_of("batch"):
        with suppress(NotPatchableError):
            between = chain_up(source, batch, call)[1:-1]
            if all(called(each) in _KEEP_ROWS for each in between):
                return batch
    return None


def _definition(
    source: Source, given: cst.BaseExpression, at: cst.CSTNode
) -> cst.FunctionDef | None:
    """Return the one function of the file that a name, or `self.name`, stands for."""
    within: cst.CSTNode | None = None
    match given:
        case cst.Name(value=name):
            pass
        case cst.Attribute(value=cst.Name(value="self" | "cls"), attr=cst.Name(value=name)):
            within = source.around(at, cst.ClassDef)
        case _:
            return None
    found = [each for each in source.all(cst.FunctionDef, within) if each.name.value == name]
    return found[0] if len(found) == 1 else None


def _is_shared(function: cst.FunctionDef) -> NotPatchableError:
    name = function.name.value
    return NotPatchableError(
        f"`{name}` is used in more than one place, and only one of them would get batches."
    )
