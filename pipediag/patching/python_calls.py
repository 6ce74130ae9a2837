"""Slow calls of Python written another way, with the functions of in_chunks.py in the file."""

from __future__ import annotations

import re
from pathlib import Path

import libcst as cst

import pipediag
from pipediag.patching.chains import POSITIONS, argument, assigned, behind, needed_argument
from pipediag.patching.source import Change, NotPatchableError, Source, Span, called, only
from pipediag.session.edits import CompileCall

_WRITTEN = Path(pipediag.__file__).with_name("in_chunks.py")
WEIGHTED, ROWS_OF = "weighted_choice", "rows_of"
ROWS = "for_each_row"
_OF_A_SERIES = frozenset(
    "array at attrs dtype empty flags hasnans iat iloc index is_unique loc name nbytes ndim shape "
    "size str T values".split()
)
"""Attributes of a row that may be no column."""


def lines_of(function: str) -> list[str]:
    """Return the lines of a function that is written into files, with its decorators."""
    form = rf"^(@[^\n]*\n)*def {function}\(.*?(?=\n\n\n|\Z)"
    found = re.search(form, _WRITTEN.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[0].rstrip().splitlines()


def defined(source: Source, function: str, at: int) -> tuple[str, list[Change]]:
    """Define such a function behind the imports before an offset; return its name in the file.

    Nothing changes where another change has defined it before the offset.
    """
    lines = lines_of(function)
    if 0 <= source.data.find(source.newline.join(lines).encode()) < at:
        return function, []
    after, name = source.last_import(at), source.free_name(function)
    named = [re.sub(rf"\b{function}\b", name, line) for line in lines]
    return name, [behind(source, after, [*_imports(source, "\n".join(lines)), "", "", *named])]


def _imports(source: Source, text: str) -> list[str]:
    """Return the imports of in_chunks.py that a function needs and the file lacks."""
    there, missing = source.modules(), []
    written = _WRITTEN.read_text(encoding="utf-8")
    for line, module, alias in re.findall(r"^(import (\w+)(?: as (\w+))?)$", written, re.MULTILINE):
        name = alias or module
        if there.get(name) == module or not re.search(rf"\b{name}\.", text):
            continue
        if any(name in source.bound(statement) for statement in source.module.body):
            raise NotPatchableError(f"The name `{name}` is used for something else in the file.")
        missing.append(line)
    return missing


_NONE = ("", "None")


def in_chunks(source: Source, call: cst.Call) -> list[Change]:
    """Call the function in place of `from_generator`, and define it behind the file's imports."""
    generator, given = argument(call, "generator"), argument(call, "args")
    if generator is None:
        raise NotPatchableError("The generator is not given in the call.")
    span = source.span(call)
    name, definition = defined(source, "in_chunks", span.start)
    keywords = {arg.keyword.value for arg in call.args if arg.keyword is not None}
    by_keyword = len(call.args) - len(keywords) <= 1
    if by_keyword and keywords <= {"generator", "output_signature"}:
        return [*definition, Change.replace(source.span(call.func), name)]
    if not isinstance(generator, cst.Name | cst.Attribute | cst.Lambda):
        raise NotPatchableError("The generator is created in the call and would be created twice.")
    text = source.code(generator)
    if given is not None and source.code(given).strip("()[]") not in _NONE:
        if isinstance(generator, cst.Lambda) or source.all(cst.Call, given):
            raise NotPatchableError("The generator, or its arguments, are created in the call.")
        # As TensorFlow hands them on.
        each = f"{source.needed_tensorflow()}.convert_to_tensor(each).numpy() for each in args"
        text = f"lambda args={source.module.code_for_node(given)}: {text}(*[{each}])"
    # Whatever else is given: the dataset as it was made until now knows what its elements are.
    opened = Change.insert(span.start, f"{name}({text}, ")
    return [*definition, opened, Change.insert(span.end, ".element_spec)")]


def in_buckets(source: Source, call: cst.Call) -> list[Change]:
    """Batch examples of similar length with the arguments of a `padded_batch`."""
    if not isinstance(call.func, cst.Attribute) or called(call) != "padded_batch":
        raise NotPatchableError("It is not called as the method `padded_batch` of a dataset.")
    needed_argument(call, "batch_size")
    # The function takes the rest by keyword.
    unnamed = zip(call.args[1:], POSITIONS["padded_batch"][1:], strict=False)
    named = [
        Change.insert(source.span(arg).start, f"{parameter}=")
        for arg, parameter in unnamed
        if arg.keyword is None
    ]
    name, definition = defined(source, "in_buckets", source.span(call).start)
    method, opened = source.span(call.func.attr), source.free_name("examples")
    given = Span(source.span(call.args[0]).start, source.span(call.args[-1]).end)
    return [
        *definition,
        Change.replace(method, "apply"),
        *named,
        Change.insert(given.start, f"lambda {opened}: {name}({opened}, "),
        Change.insert(given.end, ")"),
    ]


def through_a_function(source: Source, change: CompileCall) -> list[Change]:
    """Call the model of a line, or a method, through a `tf.function` behind the imports."""
    method = change.method
    code = change.model if method is None else f"{change.model}.{method}"
    calls = [
        call
        for call in source.calls.values()
        if source.line(call) == change.line and source.code(call.func) == code
    ]
    call = only(calls, f"Line {change.line} calls `{code}` {len(calls)} times.")
    function = "call_model" if method is None else "call_method"
    name, definition = defined(source, function, source.span(call).start)
    given = change.model if method is None else f'{change.model}, "{method}"'
    first = Change.insert(source.span(call).end - 1, given)
    if call.args:
        first = Change.insert(source.span(call.args[0]).start, f"{given}, ")
    return [*definition, Change.replace(source.span(call.func), name), first]


def rewritten_call(source: Source, line: int) -> list[Change]:
    """Write the slow call of a line another way."""
    frames = source.calls_of("iterrows", line=line)
    for frame in frames:
        given = source.parent(frame)
        shown = source.parent(given) if isinstance(given, cst.Arg) else None
        iterated = shown if isinstance(shown, cst.Call) and called(shown) == "tqdm" else frame
        loop = source.parent(iterated)
        if isinstance(loop, cst.For | cst.CompFor) and loop.iter is iterated:
            return rows_as_dictionaries(source, loop, frame)
    if frames and not source.calls_of("choice", line=line):
        raise NotPatchableError("`iterrows` is not what the loop goes over.")
    return drawn_from_kept_sums(source, line)


def rows_as_dictionaries(
    source: Source, loop: cst.For | cst.CompFor, frame: cst.Call
) -> list[Change]:
    """Go over dictionaries in place of the Series that `iterrows` makes of each row.

    A row of six columns took 25 to 36 us as a Series, and 2 to 4 as a dictionary (pandas 3.0, two
    cores). Numbers keep the type of their column, where a Series gives all the widest.
    """
    target = loop.target
    names = [each.value for each in target.elements] if isinstance(target, cst.Tuple) else []
    if len(names) != 2 or not all(isinstance(each, cst.Name) for each in names):
        raise NotPatchableError("The loop does not name the index and the row.")
    index, row = (each.value for each in names if isinstance(each, cst.Name))
    changes = [change for each in _reads(source, loop, row) for change in _column(source, each)]
    if frame.args or not isinstance(frame.func, cst.Attribute):
        raise NotPatchableError("It is not a plain call of a DataFrame's `iterrows`.")
    name, definition = defined(source, ROWS_OF, source.span(loop).start)
    code = source.module.code_for_node
    text = f"{name}({code(frame.func.value)})"
    if not _reads(source, loop, index):
        changes.append(Change.replace(source.span(target), row))
    elif isinstance(frame.func.value, cst.Name):
        text = f"zip({code(frame.func.value)}.index, {text})"
    else:
        raise NotPatchableError("The loop also reads the index of the rows.")
    return [*definition, *changes, Change.replace(source.span(frame), text)]


def _reads(source: Source, loop: cst.For | cst.CompFor, name: str) -> list[cst.Name]:
    found = []
    for each in source.references(name, within=source.around(loop, cst.FunctionDef)):
        above = list(source.ancestors(each))
        loops: list[cst.For | cst.CompFor] = [one for one in above if isinstance(one, cst.For)]
        loops += [one.for_in for one in above if isinstance(one, cst.BaseComp)]
        setting = [one for one in loops if name in source.names_in(one.target)]
        if any(one.target is each or one.target in above for one in setting):
            continue
        if loop in setting:
            found.append(each)
        elif not setting:
            raise NotPatchableError(f"`{name}` is also read outside the loop.")
    return found


def _column(source: Source, row: cst.Name) -> list[Change]:
    """Return the change of one use of a row: `row["column"]`, or `row.column`."""
    parent = source.parent(row)
    match parent, source.parent(parent or row):
        case cst.Subscript(
            value=value, slice=[cst.SubscriptElement(slice=cst.Index(value=key))]
        ), _:
            if value is row and _is_text(source, key):
                return []
        case cst.Attribute(attr=cst.Name(value="get")), cst.Call(func=called) if called is parent:
            return []
        case cst.Attribute(attr=cst.Name(value=column)), above:
            used = isinstance(above, cst.AssignTarget) or column in _OF_A_SERIES
            if not used and not (isinstance(above, cst.Call) and above.func is parent):
                return [Change.replace(source.span(parent), f'{row.value}["{column}"]')]
    raise NotPatchableError(f"`{row.value}` is used for more than reading columns by name.")


def _is_text(source: Source, key: cst.BaseExpression) -> bool:
    """Return True for a string, and for a name that is set to strings alone."""
    if not isinstance(key, cst.Name):
        return isinstance(key, cst.SimpleString)
    found = [isinstance(one, cst.SimpleString) for one in _set_to(source, key)]
    loops = (one for one in source.nodes if isinstance(one, cst.For | cst.CompFor))
    found += [_lists_text(source, one.iter) for one in loops if key.deep_equals(one.target)]
    return bool(found) and all(found)


def _set_to(source: Source, name: cst.Name) -> list[cst.BaseExpression]:
    given = (assigned(one) for one in source.nodes)
    return [one[1] for one in given if one is not None and one[0] == name.value]


def _lists_text(source: Source, value: cst.BaseExpression) -> bool:
    """Return True for a list of strings, and for the columns of a DataFrame."""
    if isinstance(value, cst.Name):
        values = _set_to(source, value)
        value = values[0] if len(values) == 1 else value
    match value:
        case cst.List(elements=elements) | cst.Tuple(elements=elements):
            return all(isinstance(one.value, cst.SimpleString) for one in elements)
        case cst.Attribute(attr=cst.Name(value="columns")):
            return True
    return False


def drawn_from_kept_sums(source: Source, line: int) -> list[Change]:
    """Call a function that keeps the sums of the last weights in place of `choice(p=weights)`.

    NumPy adds up all weights in each call and searches in the sums for uniform numbers
    (numpy/random/_generator.pyx, `Generator.choice`). The same search in sums that are kept gives
    the same numbers from the same state of the generator. To see whether the weights are still the
    same takes a pass over them, which is far cheaper.
    """
    call = source.only_call_of("choice", line)
    given = [argument(call, name) for name in ("a", "size", "replace", "p")]
    drawn_from, size, again, weights = given
    if not isinstance(call.func, cst.Attribute):
        raise NotPatchableError("It is not called as a random generator's method.")
    if weights is None or drawn_from is None or len(call.args) > len(given) - given.count(None):
        raise NotPatchableError("It draws without weights, or along an axis.")
    replaced = again is None or source.code(again) == "True"
    if not replaced or isinstance(drawn_from, cst.List | cst.Tuple | cst.ListComp):
        raise NotPatchableError("It draws without replacement, or from a list.")
    code = source.module.code_for_node
    name, definition = defined(source, WEIGHTED, source.span(call).start)
    count = code(size) if size is not None else "None"
    values, sums = code(drawn_from), code(weights)
    text = f"{name}({code(call.func.value)}, {values}, {count}, {sums})"
    return [*definition, Change.replace(source.span(call), text)]
