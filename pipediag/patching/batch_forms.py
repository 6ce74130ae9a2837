"""Functions of a map rewritten for whole batches: by a call that takes them, or row by row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise

import libcst as cst

from pipediag.patching.chains import (
    argument,
    assigned,
    assigns,
    block_of,
    chain_up,
    inserted,
    moved,
    needed_argument,
    with_arguments,
)
from pipediag.patching.python_calls import ROWS, defined
from pipediag.patching.shared_functions import (
    function_around,
    is_at,
    is_chosen_around,
    is_shared,
    other_calls,
    places_within,
    refuse_shared,
    refuse_used_beside,
)
from pipediag.patching.sites import uses_in
from pipediag.patching.source import (
    Change,
    NotPatchableError,
    Source,
    called,
    name_of,
    receiver,
)
from pipediag.patching.workspace import Workspace
from pipediag.session.recording import RecordedFunction, RowOperation
from pipediag.tensorflow_names import (
    BROADCASTING,
    PADDING,
    PARSING,
    PYTHON_OPERATIONS,
    REDUCING,
    ROW_FUNCTIONS,
)
from pipediag.vocabulary import Scalar

_NUMPY = frozenset({"numpy_function", "py_func"})
_PYTHON = _NUMPY | {"py_function"}
_SHAPES = frozenset({"set_shape", "ensure_shape"})
_DEPTH = 4
"""Functions that call one another, from that of the map to the one that parses."""


def for_batches(
    workspace: Workspace, source: Source, call: cst.Call, function: RecordedFunction | None
) -> dict[str, list[Change]]:
    """Rewrite what a map's function does for a single row; return the changes of each file.

    Other maps of the same function move behind their batches, too.
    """
    if function is None:
        return {}
    changes = rows_rewritten(workspace, function)
    if not PYTHON_OPERATIONS.isdisjoint(function.graph_ops):
        changes[source.path] += _by_row(source, call)
    if any(changes.values()):
        refuse_used_beside(workspace, function)
        changes[source.path] += _others_moved(workspace, source, call, function)
    return changes


def in_batches(
    workspace: Workspace,
    source: Source,
    call: cst.Call,
    op_id: str,
    function: RecordedFunction,
    given: Mapping[str, Scalar],
    *,
    has_length: bool = False,
) -> dict[str, list[Change]]:
    """Give a map or a filter batches, and take them apart behind it, or hand them on, as `given`
    says; return the changes of each file.

    Other maps of the same function get such batches, too, and take them apart. Elements keep their
    number where the map `has_length`: `len(dataset)` is often asked for.
    """
    before, after = f".batch({given['elements']})", ".unbatch()"
    changes = rows_rewritten(workspace, function)
    if not PYTHON_OPERATIONS.isdisjoint(function.graph_ops):
        changes[source.path] += _by_row(source, call)
    if any(changes.values()) and is_chosen_around(source, call):
        # Another pipeline may have another function, whose operations are not rewritten.
        workspace.only_call(op_id, suits="moved")
    others: list[tuple[Source, cst.Call]] = []
    if any(changes.values()):
        refuse_used_beside(workspace, function)
        others = other_calls(workspace, source, call, function)
    if called(call) == "filter":
        changes[source.path] += _filtering_rows(source, call)
    for where, other in others:
        if where.span(name_of(other)).start not in where.anchors.values():
            # It did not run, and may be no dataset's: `pool.map(parse, rows)`.
            raise is_shared(function.name.rpartition(".")[2])
        if called(other) == "filter":
            added = (one for one in _filtering_rows(where, other) if one not in changes[where.path])
            changes[where.path] += added
        around = _around(where, other, before, after, has_length=has_length)
        changes[where.path] += [one for one in around if one not in changes[where.path]]
    first, last = given.get("first", True), given.get("last", True)
    around = _around(
        source, call, before if first else "", after if last else "", has_length=has_length
    )
    changes[source.path] += [one for one in around if one not in changes[source.path]]
    return changes


def _filtering_rows(source: Source, call: cst.Call) -> list[Change]:
    """Write a map of batches that keeps rows in place of a filter of elements."""
    name, definition = defined(source, "rows_where", source.span(call).start)
    predicate = source.span(needed_argument(call, "predicate"))
    keywords = [arg.keyword for arg in call.args if arg.keyword is not None]
    named = [one for one in keywords if one.value == "predicate"]
    return [
        *definition,
        *(Change.replace(source.span(one), "map_func") for one in named),
        Change.replace(source.span(name_of(call)), "map"),
        Change.insert(predicate.start, f"{name}("),
        Change.insert(predicate.end, ")"),
    ]


def _around(
    source: Source, call: cst.Call, before: str, after: str, *, has_length: bool
) -> list[Change]:
    """Put calls before and behind that of a method: on lines of their own where that has one."""
    above = receiver(call)
    if not isinstance(above, cst.Name | cst.Attribute | cst.Subscript | cst.Call) or above.lpar:
        raise NotPatchableError(f"What `{called(call)}` is called on is not one name or call.")
    ends, begins = source.span(above).end, source.span(name_of(call)).start
    named = list[Change]()
    if has_length:
        name = above.value if isinstance(above, cst.Name) else source.free_name("rows")
        helper, named = defined(source, "length_of", source.span(call).start)
        after += f".apply({helper}({name}))"
        if not isinstance(above, cst.Name):
            named = [*named, Change.insert(source.span(above).start, f"({name} := ")]
            before = f"){before}"
    if isinstance(above, cst.Call) and b"\n" in source.data[ends:begins]:
        pairs = [(above, before), (call, after)]
        return named + [
            change for one, text in pairs if text for change in inserted(source, one, text)
        ]
    return [*named, Change.insert(ends, before), Change.insert(source.span(call).end, after)]


def hand_batches_on(source: Source, calls: Sequence[cst.Call]) -> bool:
    """Return True if each operation is called on what the one before makes, in the same statement
    or by the next one, which gives the result the same name; and not in a loop."""
    for before, call in pairwise(calls):
        given, above = assigns(source, before), receiver(call)
        if above is before:
            continue
        if given is None or not isinstance(above, cst.Name):
            return False
        block = block_of(source, given[0])
        after = (*block[block.index(given[0]) + 1 :], None)[0]
        result = assigned(after) if after is not None else None
        if result is None or above.value != given[1] or result[0] != given[1]:
            return False
        if source.references(given[1], after) != [above]:
            return False
    return not (source.around(calls[0], cst.For) or source.around(calls[0], cst.While))


def rows_rewritten(workspace: Workspace, function: RecordedFunction) -> dict[str, list[Change]]:
    """Return the changes of each file that let a map's function take batches, but for its Python.

    A trial runs the function as they make it, and compares its results: they may be guesses.
    """
    rows = function.row_operations
    if PARSING in function.graph_ops and all(row.op != PARSING for row in rows):
        raise NotPatchableError("The call that parses a row was not found.")
    called_at = {place for row in rows for place in row.calls}
    changes: dict[str, list[Change]] = defaultdict(list)
    padded = function.padded_features > 0 or not PADDING.isdisjoint(function.graph_ops)
    for row in rows:
        if not row.calls:
            raise NotPatchableError(f"A library's function makes its `{row.op}`.")
        for caller, place in pairwise(row.calls):
            refuse_shared(workspace, caller, place, called_at)
        found = workspace.source(row.calls[-1][0])
        new = _rewritten(found, row, padded=padded)
        changes[found.path] += [each for each in new if each not in changes[found.path]]
    if PYTHON_OPERATIONS.isdisjoint(function.graph_ops):
        _shaped(workspace, function, changes)
    return changes


def _shaped(
    workspace: Workspace, function: RecordedFunction, changes: dict[str, list[Change]]
) -> None:
    """Add the changes that put a dimension for the rows before shapes that functions set."""
    for path, line in places_within(function):
        try:
            source = workspace.source(path)
        except NotPatchableError:
            continue  # a library's, as a rule: nothing is rewritten there
        around = function_around(source, line)
        calls = source.all(cst.Call, around) if around is not None else []
        new = _with_rows(source, [one for one in calls if called(one) in _SHAPES])
        changes[path] += [one for one in new if one not in changes[path]]


def _with_rows(source: Source, calls: Sequence[cst.Call]) -> list[Change]:
    """Put a dimension for the rows before shapes; that of another tensor has it."""
    found = list[Change]()
    for call in calls:
        shape, around = needed_argument(call, "shape"), source.around(call, cst.FunctionDef)
        match shape:
            case cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value="shape")):
                if around is not None and name in source.bound(around.body):
                    continue
        found.append(_of_batch(source, shape, "None"))
    return found


def vectorized(source: Source, call: cst.Call) -> list[Change]:
    """Hand a map's function over to `tf.vectorized_map`, which calls it for rows of a batch."""
    given = needed_argument(call, "map_func")
    span, tf = source.span(given), source.needed_tensorflow()
    row, rows = source.free_name("row"), source.free_name("rows")
    called_so = isinstance(given, cst.Name | cst.Attribute | cst.Call)
    opened, closed = ("", "") if called_so else "()"
    before = f"lambda *{rows}: {tf}.vectorized_map(lambda {row}: {opened}"
    return [
        Change.insert(span.start, before),
        Change.insert(span.end, f"{closed}(*{row}), {rows})"),
    ]


_OPERATORS: dict[type[cst.CSTNode], str] = {
    cst.GreaterThan: ">",
    cst.GreaterThanEqual: ">=",
    cst.LessThan: "<",
    cst.LessThanEqual: "<=",
    cst.Equal: "==",
    cst.NotEqual: "!=",
    cst.Add: "+",
    cst.Subtract: "-",
    cst.Multiply: "*",
    cst.Divide: "/",
}
_MIRRORED = {">": "<", ">=": "<=", "<": ">", "<=": ">="}


def _rewritten(source: Source, row: RowOperation, *, padded: bool) -> list[Change]:
    """Rewrite what makes an operation, in the statement that holds its line. Rows may be `padded`
    to one length within the function."""
    line, operator = row.calls[-1][1], BROADCASTING.get(row.op, (None, None))[0]
    written: list[cst.CSTNode] = list(source.calls_of(ROW_FUNCTIONS[row.op]))
    if operator is not None:
        both = {operator, _MIRRORED.get(operator)}
        two = [*source.all(cst.Comparison), *source.all(cst.BinaryOperation)]
        written += [each for each in two if _operator(each) in both]
    if row.op == "StridedSlice":
        # `x[:9]`, and not `x["name"]` or `x[0]`, which may index no tensor.
        parts = [(each, each.slice) for each in source.all(cst.Subscript)]
        written += [
            each for each, part in parts if any(isinstance(one.slice, cst.Slice) for one in part)
        ]
    found = [each for each in written if is_at(source, each, line)]
    if row.op == PARSING and not found:
        found = [each for each in source.calls_of("parse_example") if is_at(source, each, line)]
    if not found or (len(found) > 1 and (operator or len(found) != row.count)):
        raise NotPatchableError(f"What makes its `{row.op}` was not found at line {line}.")
    return [change for each in found for change in _for_batch(source, each, row, padded)]


def _operator(node: cst.CSTNode) -> str | None:
    match node:
        case cst.BinaryOperation(operator=operator):
            return _OPERATORS.get(type(operator))
        case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=operator)]):
            return _OPERATORS.get(type(operator))
    return None


def _for_batch(source: Source, node: cst.CSTNode, row: RowOperation, padded: bool) -> list[Change]:
    operands: list[cst.BaseExpression] = []
    match node:
        case cst.Subscript():
            return _sliced_behind_rows(source, node, padded)
        case cst.Call() if row.op == "Reshape":
            return [_of_batch(source, needed_argument(node, "shape"), "-1")]
        case cst.Call() if row.op == PARSING:
            return _parsed_at_once(source, node)
        case cst.Call() if row.op not in BROADCASTING:
            return _along_next_axis(source, node, row)
        case cst.Call():
            operands = [arg.value for arg in node.args if arg.keyword is None and not arg.star]
        case cst.BinaryOperation(left=left, right=right):
            operands = [left, right]
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(comparator=right)]):
            same = _operator(node) == BROADCASTING[row.op][0]
            operands = [left, right] if same else [right, left]
    if len(operands) < 2 or row.operand is None:
        raise NotPatchableError(f"The values of its `{row.op}` are not known.")
    span, tf = source.span(operands[row.operand]), source.needed_tensorflow()
    return [Change.insert(span.start, f"{tf}.expand_dims("), Change.insert(span.end, ", 1)")]


def _sliced_behind_rows(source: Source, node: cst.Subscript, padded: bool) -> list[Change]:
    if padded and not all(_is_from_the_start(each.slice) for each in node.slice):
        # `row[-9:]` of a row with padding at its end has other values than of the row alone.
        raise NotPatchableError("Rows that are padded to one length are cut at their ends.")
    first = node.slice[0].slice
    if isinstance(first, cst.Index) and isinstance(first.value, cst.Ellipsis):
        return []
    return [Change.insert(source.span(node.slice[0]).start, ":, ")]


def _is_from_the_start(part: cst.BaseSlice) -> bool:
    """Return True for the `:9` of `row[:9]`."""
    if not isinstance(part, cst.Slice):
        return False
    ends = isinstance(part.upper, cst.UnaryOperation)  # `row[:-1]`
    return part.lower is None and part.step is None and not ends


def _parsed_at_once(source: Source, call: cst.Call) -> list[Change]:
    if called(call) == "parse_example":
        return []
    if not isinstance(source.parent(name_of(call)), cst.Attribute):
        raise NotPatchableError("`parse_single_example` is imported by name.")
    return [Change.replace(source.span(name_of(call)), "parse_example")]


def _along_next_axis(source: Source, call: cst.Call, row: RowOperation) -> list[Change]:
    given = argument(call, "axis")
    match given:
        case cst.Integer():
            return [Change.replace(source.span(given), str(given.evaluated_value + 1))]
        case cst.UnaryOperation(operator=cst.Minus()):
            return []
        case None if row.op in REDUCING and row.rank:
            axes = list(range(1, row.rank + 1))
            return with_arguments(source, call, {"axis": str(axes if axes[1:] else axes[0])})
        case None if row.op in ("ArgMax", "Pack"):
            return with_arguments(source, call, {"axis": "1"})
    raise NotPatchableError(f"The axis of `{called(call)}` is not a number.")


def _by_row(source: Source, call: cst.Call) -> list[Change]:
    """Hand a batch to Python in one call, which calls the function for each of its rows."""
    found = _calls_of(source, call, _PYTHON | _SHAPES)
    shaped = [each for each in found if called(each) in _SHAPES]
    python = [each for each in found if each not in shaped]
    changes = _called_through(source, call, python, ROWS)
    return [*changes, *_with_rows(source, shaped)]


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


def _of_batch(source: Source, shape: cst.BaseExpression, rows: str) -> Change:
    """Put a dimension for the rows before those of a shape."""
    code = source.module.code_for_node
    if isinstance(shape, cst.Call) and called(shape) == "TensorShape":
        return _of_batch(source, needed_argument(shape, "dims"), rows)
    if isinstance(shape, cst.List | cst.Tuple):
        items = [rows, *(code(each.value) for each in shape.elements)]
        if items.count("-1") > 1:
            raise NotPatchableError("A shape has a size that is computed, and can't have another.")
        # The span of a tuple lies within its parentheses.
        text, is_list = ", ".join(items), isinstance(shape, cst.List)
        text = f"[{text}]" if is_list else f"{text}," if len(items) == 1 else text
        return Change.replace(source.span(shape), text)
    if isinstance(shape, cst.Name | cst.Attribute | cst.Subscript):
        return Change.replace(source.span(shape), f"[{rows}, *{code(shape)}]")
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
        raise is_shared(body.name.value)  # other code hands it single rows
    return found


def _others_moved(
    workspace: Workspace, source: Source, call: cst.Call, function: RecordedFunction
) -> list[Change]:
    """Move other maps of the function behind their batches; raise if other code calls it."""
    changes: list[Change] = []
    own = _batch_behind(source, call, padded=True)
    padded = own is not None and called(own) == "padded_batch"
    for where, other in other_calls(workspace, source, call, function):
        batch = _batch_behind(where, other, padded=padded) if where is source else None
        if batch is None:
            raise is_shared(function.name.rpartition(".")[2])
        changes += moved(where, other, batch)
    return changes


_KEEP_ROWS = ("prefetch", "repeat", "shuffle", "with_options")


def _batch_behind(source: Source, call: cst.Call, *, padded: bool) -> cst.Call | None:
    """Return the batch behind a map, which may be one that pads what is given to the map alike."""
    for batch in source.calls_of("batch", *(["padded_batch"] if padded else [])):
        with suppress(NotPatchableError):
            between = chain_up(source, batch, call)[1:-1]
            given = (argument(batch, name) for name in ("padded_shapes", "padding_values"))
            shaped = called(batch) == "padded_batch" and any(given)
            if not shaped and all(called(each) in _KEEP_ROWS for each in between):
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
