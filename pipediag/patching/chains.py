"""Calls of a chain, their arguments and their statements, changed in the source."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

import libcst as cst

from pipediag.patching.source import (
    Change,
    NotPatchableError,
    Source,
    Span,
    called,
    chain_root,
    receiver,
)
from pipediag.tensorflow_names import BATCHING, REDUCING

_REST_OF_LINE = re.compile(rb"[ \t]*(#[^\r\n]*)?(?=\r?\n)")

_OF_BATCHES = "batch_size drop_remainder"
_OF_FILES = "filenames compression_type buffer_size num_parallel_reads"
POSITIONS: Mapping[str, Sequence[str]] = {
    name: parameters.split()
    for name, parameters in {
        "map": "map_func num_parallel_calls deterministic",
        "flat_map": "map_func",
        "filter": "predicate",
        "interleave": "map_func cycle_length block_length num_parallel_calls deterministic",
        "batch": f"{_OF_BATCHES} num_parallel_calls deterministic",
        "padded_batch": "batch_size padded_shapes padding_values drop_remainder",
        "ragged_batch": _OF_BATCHES,
        "rebatch": _OF_BATCHES,
        "shuffle": "buffer_size seed reshuffle_each_iteration",
        "prefetch": "buffer_size",
        "TFRecordDataset": _OF_FILES,
        "TextLineDataset": _OF_FILES,
        "FixedLengthRecordDataset": "filenames record_bytes header_bytes footer_bytes buffer_size "
        "compression_type num_parallel_reads",
        "from_generator": "generator output_types output_shapes args output_signature name",
        "Input": "shape",
        "InputLayer": "shape",
        "TensorShape": "dims",
        "set_shape": "shape",
        "ensure_shape": "x shape",
        "numpy_function": "func inp Tout",
        "py_function": "func inp Tout",
        "py_func": "func inp Tout",
        "with_options": "options",
        "predict": "x batch_size verbose steps callbacks",
        "choice": "a size replace p axis shuffle",
        "stack": "values axis name",
        "concat": "values axis name",
        "expand_dims": "input axis name",
        "argmax": "input axis output_type name",
        "squeeze": "input axis name",
        "reshape": "tensor shape name",
        **dict.fromkeys(REDUCING.values(), "input_tensor axis keepdims name"),
        "compile": "optimizer loss loss_weights metrics weighted_metrics run_eagerly "
        "steps_per_execution jit_compile auto_scale_loss",
    }.items()
}
"""Parameters of what is called, as far as they may be given by position."""


def argument(
    call: cst.Call, name: str, order: Sequence[str] | None = None
) -> cst.BaseExpression | None:
    """Return the value that is given for a parameter, or None; `order` is that of all of them."""
    if any(arg.star for arg in call.args):
        raise NotPatchableError("Its arguments are passed with `*` or `**`.")
    order = POSITIONS.get(called(call) or "", ()) if order is None else order
    for index, arg in enumerate(call.args):
        given = arg.keyword.value if arg.keyword else order[index] if index < len(order) else None
        if given == name:
            return arg.value
    return None


def needed_argument(call: cst.Call, name: str) -> cst.BaseExpression:
    """Return the value that is given for a parameter."""
    given = argument(call, name)
    if given is None:
        raise NotPatchableError(f"The arguments of `{called(call)}` are not known.")
    return given


def with_arguments(source: Source, call: cst.Call, values: Mapping[str, str]) -> list[Change]:
    """Set parameters of a call to what these texts say."""
    changes = []
    added = []
    for name, text in values.items():
        given = argument(call, name)
        if given is not None:
            changes.append(Change.replace(source.span(given), text))
        else:
            added.append(f"{name}={text}")
    return [*changes, *_added(source, call, added)]


def _added(source: Source, call: cst.Call, texts: Sequence[str]) -> list[Change]:
    if not texts:
        return []
    if not call.args:
        return [Change.insert(source.span(call).end - 1, ", ".join(texts))]
    span = source.span(call.args[-1])
    if source.data[source.line_start(span.start) : span.start].strip():
        return [Change.insert(span.end, "".join(f", {text}" for text in texts))]
    indent, newline = source.indent(span.start), source.newline
    comma = source.data.find(b",", span.end) + 1
    if isinstance(call.args[-1].comma, cst.Comma) and _REST_OF_LINE.match(source.data, comma):
        lines = "".join(f"{indent}{text},{newline}" for text in texts)
        return [Change.insert(source.next_line(comma), lines)]
    return [Change.insert(span.end, "".join(f",{newline}{indent}{text}" for text in texts))]


def inserted(source: Source, after: cst.Call, call: str) -> list[Change]:
    """Put an operation behind a call: `.cache()`, or a line of its own in a list of such lines."""
    found = assigns(source, after)
    if found is not None and chain_root(after) == found[1]:
        statement, name = found
        return [behind(source, statement, [f"{name} = {name}{call}"])]
    return [_appended(source, after, call.encode())]


def _appended(source: Source, after: cst.Call, link: bytes | Span) -> Change:
    """Put a link of a chain behind a call, on a line of its own where the chain is written so."""
    end = source.span(after).end
    for each in (after.func, source.parent(after)):
        if isinstance(each, cst.Attribute):
            dot = source.data.rfind(b".", 0, source.span(each.attr).start)
            start = source.line_start(dot)
            if source.data[start:dot].strip():
                continue
            blanks = source.newline.encode() + source.data[start:dot]
            if source.data[:start].rstrip(b"\r\n").endswith(b"\\"):
                blanks = b" \\" + blanks
            elif rest := _REST_OF_LINE.match(source.data, end):
                end = rest.end()
            return Change(Span(end, end), (blanks, link))
    return Change(Span(end, end), (link,))


def moved(source: Source, call: cst.Call, after: cst.Call) -> list[Change]:
    """Put an operation with its arguments behind another call of its chain.

    A condition around it moves as a whole, with what else it adds.
    """
    if _follows(source, call, after):
        return []
    down = source.span(after).end > source.span(call).end
    around = _moving_condition(source, call, after, down=down)
    chain_up(source, *((after, call) if down else (call, after)))
    here: Statement = around or statement_of(source, call)
    there = _beside(source, after, here)
    added = _added_by(here)
    alone = rebinds(source, call) or (added and (here, added[0]))
    target = assigns(source, after)
    of_one_name = alone and target and alone[1] == target[1]
    own_lines = target and chain_root(after) == target[1]
    if here is not there:
        # The dataset's name still stands for what it was in the expression that sets it next.
        binds, as_lines = assigned(there), of_one_name and (isinstance(here, cst.If) or own_lines)
        within = down and alone and binds and binds[0] == alone[1] and not as_lines
        _check_names(source, call, here, there, unchanged=alone[1] if alone and within else None)
    if isinstance(here, cst.If) and not of_one_name:
        raise NotPatchableError("The condition around it would have to move into the chain.")
    if of_one_name and (isinstance(here, cst.If) or own_lines):
        lines = whole_lines(source, here)
        at = source.next_line(source.span(there).end)
        if not source.data[:at].endswith(b"\n") or not source.data[: lines.end].endswith(b"\n"):
            raise NotPatchableError("The file does not end with a newline.")
        return [Change(lines), Change(Span(at, at), (lines,))]
    if there is not statement_of(source, after):
        raise NotPatchableError("It would have to move into a condition.")
    if not isinstance(call.func, cst.Attribute):
        raise NotPatchableError("It is not called as a dataset's method.")
    # The link of the chain with the blanks before its dot, as far as the tree has them.
    code, dot = source.module.code_for_node, call.func.dot
    link = Span(source.span(call.func.attr).start - len(code(dot).encode()), source.span(call).end)
    text = Span(link.start + len(code(dot.whitespace_before).encode()), link.end)
    if source.data[link.start : text.start].strip(b" \t\r\n\\"):
        if alone:
            raise NotPatchableError("There is a comment within the chain.")
        # It stays where it is.
        line_end = source.data[: source.line_start(text.start)].removesuffix(b"\n")
        link = Span(len(line_end.removesuffix(b"\r")), link.end)
    gone = whole_lines(source, alone[0]) if alone else link
    return [Change(gone), _appended(source, after, text)]


def _follows(source: Source, call: cst.Call, above: cst.Call) -> bool:
    """Return True if the operation directly follows the other one already."""
    added = _added_by(condition_around(source, call))
    pairs = pairwise(added[1]) if added is not None else ()
    return receiver(call) is above or any(one is call and up is above for one, up in pairs)


def _moving_condition(
    source: Source, call: cst.Call, after: cst.Call, *, down: bool
) -> cst.If | None:
    """Return the condition that moves with the call; None where that moves by itself."""
    around = condition_around(source, call)
    added = _added_by(around)
    if added is None or around is condition_around(source, after):
        return None
    if not down and added[1][-1] is not call:
        raise NotPatchableError("The condition around it adds what it would have to pass.")
    return around


def _beside(source: Source, call: cst.Call, here: Statement) -> Statement:
    """Return the statement of a call, or the `if` that only adds it, with others maybe, where that
    stands in the block of `here`. Behind a batch that is optional, a map would get rows or batches.
    """
    around = condition_around(source, call) if called(call) not in BATCHING else None
    return around if around in block_of(source, here) else statement_of(source, call)


def _check_names(
    source: Source, call: cst.Call, here: Statement, there: Statement, unchanged: str | None
) -> None:
    """Raise NotPatchableError where a name changes between two places, of those that the call's
    arguments have, and those of a condition that moves with all that it adds.

    `unchanged` is a name that only statements between the two could change.
    """
    block = block_of(source, here)
    if there not in block:
        raise NotPatchableError("The two calls are not in the same block.")
    first, last = sorted((block.index(here), block.index(there)))
    given = set().union(*(source.bound(each) for each in block[first : last + 1]))
    between = set().union(*(source.bound(each) for each in block[first + 1 : last]))
    if unchanged not in between:
        given.discard(unchanged or "")
    added = _added_by(here)
    calls = added[1] if added is not None else [call]
    parts: list[cst.CSTNode] = [arg for one in calls for arg in one.args]
    parts += [here.test] if isinstance(here, cst.If) else []
    used = set().union(*(source.names_in(part) for part in parts))
    for name in sorted(given & used)[:1]:
        raise NotPatchableError(f"`{name}` is assigned between the two places.")


def renamed(source: Source, call: cst.Call, kind: str, values: Mapping[str, str]) -> list[Change]:
    """Call another operation with the same arguments, and set some."""
    if not isinstance(call.func, cst.Attribute):
        raise NotPatchableError("It is not called as a method of a dataset.")
    name = source.span(call.func.attr)
    return [Change.replace(name, kind), *with_arguments(source, call, values)]


def called_by_readers(source: Source, call: cst.Call, values: Mapping[str, str]) -> list[Change]:
    """Interleave, and have those who read call the function, several at a time."""
    module, function = source.needed_tensorflow(), source.span(needed_argument(call, "map_func"))
    opening = f"lambda *element: {module}.data.Dataset.from_tensors(element).flat_map("
    wrapped = Change(function, (opening.encode(), function, b")"))
    return [*renamed(source, call, "interleave", values), wrapped]


Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement


def statement_of(source: Source, node: cst.CSTNode) -> Statement:
    """Return the statement that the node is a part of, or in the head of which it stands."""
    for above in source.ancestors(node):
        if isinstance(above, cst.BaseCompoundStatement):
            return above
        if isinstance(above, cst.SimpleStatementLine) and len(above.body) == 1:
            return above
        if isinstance(above, cst.SimpleStatementSuite | cst.SimpleStatementLine):
            break
    raise NotPatchableError("It shares its line with another statement.")


def block_of(source: Source, statement: Statement) -> list[cst.CSTNode]:
    """The statements among which it stands."""
    parent = source.parent(statement)
    if isinstance(parent, cst.Module | cst.IndentedBlock):
        return list(parent.body)
    return [statement]


def assigned(statement: cst.CSTNode) -> tuple[str, cst.BaseExpression] | None:
    """Return name and value of `name = value`, annotated or not; None for any other statement."""
    match statement:
        case cst.SimpleStatementLine(
            body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=value)]
        ):
            return name, value
        case cst.SimpleStatementLine(
            body=[cst.AnnAssign(target=cst.Name(value=name), value=cst.BaseExpression() as value)]
        ):
            return name, value
    return None


def assigns(source: Source, call: cst.Call) -> tuple[cst.SimpleStatementLine, str] | None:
    """Return statement and name where the call is all of what the statement gives the name."""
    statement = source.around(call, cst.SimpleStatementLine)
    given = assigned(statement) if statement is not None else None
    if statement is None or given is None or given[1] is not call:
        return None
    return statement, given[0]


def rebinds(source: Source, call: cst.Call) -> tuple[cst.SimpleStatementLine, str] | None:
    """Return the statement `name = name.op(...)` of which the call is all, with the name."""
    found, root = assigns(source, call), receiver(call)
    own = found is not None and isinstance(root, cst.Name) and root.value == found[1]
    return found if own else None


def whole_lines(source: Source, statement: Statement) -> Span:
    """All of the lines of a statement, with the comment behind it and the last line's end."""
    span = source.span(statement)
    return Span(source.line_start(span.start), source.next_line(span.end))


def behind(source: Source, statement: Statement, lines: list[str]) -> Change:
    """New lines behind a statement, as far in as it is."""
    span = source.span(statement)
    indent, newline = source.indent(span.start), source.newline
    at = source.next_line(span.end)
    text = "".join(f"{indent}{line}{newline}" for line in lines)
    if not source.data[:at].endswith(b"\n"):
        text = newline + text.removesuffix(newline)
    return Change.insert(at, text)


def chain_up(source: Source, below: cst.Call, above: cst.Call) -> list[cst.Call]:
    """Return the calls from one up to another, each called on what the one above it gives.

    Variables between them must be read once: what else reads one would get other elements.
    A condition that only adds an operation does not break a chain: `if c: ds = ds.shuffle(n)`.
    """
    value: cst.BaseExpression | None = below
    chain: list[cst.Call] = []
    while True:
        if isinstance(value, cst.Name):
            value = _value_of(source, value, above)
        if not isinstance(value, cst.Call):
            raise NotPatchableError("The two calls are not written as one chain.")
        chain.append(value)
        if value is above:
            return chain
        value = receiver(value)


def _value_of(source: Source, name: cst.Name, above: cst.Call) -> cst.BaseExpression:
    """Return what was last given to a variable in the block, where nothing else has read it."""
    statement = statement_of(source, name)
    around = source.around(statement, cst.If)
    if around is not None and _adds(around, name.value):
        statement = around
    block = block_of(source, statement)
    index = block.index(statement)

    def value_in(place: int) -> cst.BaseExpression | None:
        added = _adds(block[place], name.value)
        found = assigned(block[place])
        if found is not None and found[0] == name.value:
            return found[1]
        return above if any(one is above for one in added) else None

    given = [n for n in range(index) if value_in(n) is not None]
    value = value_in(given[-1]) if given else None
    if value is None:
        raise NotPatchableError("The two calls are not written as one chain.")
    between = block[given[-1] + 1 : index]
    optional = [each for each in between if _adds(each, name.value)]
    if any(name.value in source.bound(each) for each in between if each not in optional):
        raise NotPatchableError(f"`{name.value}` is assigned in more than one place.")
    ends = [n for n in range(index, len(block)) if (assigned(block[n]) or [None])[0] == name.value]
    if statement is around:
        ends = [index]  # what follows reads the dataset with what is added, or without
    readers = [each for each in between if each not in optional]
    readers += block[index : ends[0] + 1 if ends else None]
    read = [node for each in readers for node in source.references(name.value, within=each)]
    if read != [name] or (not ends and _read_elsewhere(source, name, block)):
        raise NotPatchableError(f"Other code reads `{name.value}` between the two calls.")
    return value


def condition_around(source: Source, call: cst.Call) -> cst.If | None:
    """Return the `if` that only adds this operation to a dataset, with others maybe."""
    above = source.around(call, cst.If)
    added = _added_by(above)
    return above if added is not None and any(call is one for one in added[1]) else None


_ADDED_TOGETHER = {"shuffle", "repeat"}
"""Operations that one condition may add together: they look at no element."""


def _added_by(statement: cst.CSTNode | None) -> tuple[str, list[cst.Call]] | None:
    """Return the dataset to which an `if` only adds operations, and their calls, the last one
    first: `if c: ds = ds.map(f)`, `if c: ds = ds.shuffle(n).repeat()`."""
    match statement:
        case cst.If(orelse=None, body=cst.BaseSuite(body=lines)):
            given = [assigned(one) or ("", None) for one in lines]
            name, calls = given[0][0], list[cst.Call]()
            for _, last in given[::-1]:
                value = last
                while isinstance(value, cst.Call):
                    calls.append(value)
                    value = receiver(value)
            of_one = {(name, name)} == {(each, chain_root(value)) for each, value in given}
            together = len(calls) == 1 or {called(one) for one in calls} <= _ADDED_TOGETHER
            return (name, calls) if of_one and calls and together else None
    return None


def _adds(statement: cst.CSTNode, name: str) -> list[cst.Call]:
    """Return the calls that an `if` only adds to this dataset; none for any other statement."""
    added = _added_by(statement)
    return added[1] if added is not None and added[0] == name else []


def _read_elsewhere(source: Source, name: cst.Name, block: list[cst.CSTNode]) -> bool:
    """Return True if other code of the function around the block, or of the file, reads it."""
    function = source.around(name, cst.FunctionDef)
    for each in source.references(name.value, within=function):
        inner = source.around(each, cst.FunctionDef)
        if inner is function or inner is None:
            if not any(each is node or node in source.ancestors(each) for node in block):
                return True
        elif not source.is_parameter(each) and name.value not in source.bound(inner.body):
            return True
    return False
