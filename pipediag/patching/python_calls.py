"""Slow calls of Python written another way, with the functions of in_chunks.py in the file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import libcst as cst

import pipediag
from pipediag.patching.chains import argument, inserted, needed_argument
from pipediag.patching.names import (
    bound,
    free_name,
    is_parameter,
    last_import,
    modules,
    names_in,
    references,
)
from pipediag.patching.source import (
    Change,
    NotPatchableError,
    Source,
    Span,
    called,
    insertion,
    only,
    replaced,
)
from pipediag.patching.statements import behind
from pipediag.session.edits import CUT_PADDING, SHORTEST_CUT

_WRITTEN = Path(pipediag.__file__).with_name("in_chunks.py")
_NEXT = "\n\n\ndef "
_NAME, _BUCKETS = "in_chunks", "in_buckets"


def lines_of(function: str) -> list[str]:
    """Return the lines of a function that is written into files."""
    _, _, rest = _WRITTEN.read_text(encoding="utf-8").partition(f"def {function}(")
    return f"def {function}({rest.partition(_NEXT)[0]}".rstrip().splitlines()


def defined(
    source: Source, lines: list[str], wanted: str, at: int, *modules: str
) -> tuple[str, list[Change]]:
    """Define a function behind the imports before an offset, and return its name in the file.

    The modules are those that it uses: `numpy as np`. Nothing changes where another change has
    defined it before the offset.
    """
    if 0 <= source.data.find(source.newline.join(lines).encode()) < at:
        return wanted, []
    after = last_import(source, at)
    if after is None:
        raise NotPatchableError("The file has no import before this line.")
    name = free_name(source, wanted)
    named = [re.sub(rf"\b{wanted}\b", name, line) for line in lines]
    return name, [behind(source, after, [*_imports(source, modules), "", "", *named])]


def in_chunks(source: Source, call: cst.Call) -> list[Change]:
    """Call the function in place of `from_generator`, and define it behind the file's imports."""
    generator = argument(call, "generator")
    if generator is None or argument(call, "args") is not None:
        raise NotPatchableError("The generator is called with arguments.")
    needed = ("itertools", "numpy as np", "tensorflow as tf")
    start = source.span(call).start
    name, definition = defined(source, lines_of(_NAME), _NAME, start, *needed)
    if _takes_the_same(call):
        return [*definition, replaced(source.span(call.func), name)]
    if not isinstance(generator.value, cst.Name | cst.Attribute | cst.Lambda):
        raise NotPatchableError("The generator is created in the call and would be created twice.")
    # Whatever else is given: the dataset as it was made until now knows what its elements are.
    span, made = source.span(call), source.module.code_for_node(generator.value)
    return [
        *definition,
        insertion(span.start, f"{name}({made}, "),
        insertion(span.end, ".element_spec)"),
    ]


CUT = f".map({CUT_PADDING}, num_parallel_calls=tf.data.AUTOTUNE)"


def padding_cut(source: Source, call: cst.Call) -> list[Change]:
    """Cut the padding of batches: their own padding is to the longest, or it is cut behind them."""
    shorter = _padded_to_longest(source, call, targets=False)
    if shorter:
        return shorter
    lines, start = lines_of(CUT_PADDING), source.span(call).start
    name, definition = defined(source, lines, CUT_PADDING, start, "tensorflow as tf")
    return [*definition, *inserted(source, call, CUT.replace(CUT_PADDING, name))]


def _padded_to_longest(source: Source, call: cst.Call, *, targets: bool) -> list[Change]:
    """Return the changes of a `padded_batch` that writes the length of its rows of features, and of
    `targets` as long as these."""
    if called(call) != "padded_batch" or (given := argument(call, "padded_shapes")) is None:
        return []
    shapes = given.value
    features = shapes.elements[0] if isinstance(shapes, cst.Tuple) and shapes.elements else shapes
    lengths = {source.code(one) for one in _lengths(source, features)}
    return [
        replaced(source.span(one), "None")
        for one in _lengths(source, shapes if targets else features)
        if source.code(one) in lengths
    ]


def _lengths(source: Source, shapes: cst.CSTNode) -> list[cst.BaseExpression]:
    """Return the length in each shape of one: `28` of `[28]`."""
    lists = [one.elements for one in source.all(cst.List, shapes)]
    return [
        one.value
        for elements in lists
        for one in elements
        if len(elements) == 1
        and not (isinstance(one.value, cst.Integer) and one.value.evaluated_value < SHORTEST_CUT)
        and source.code(one.value) != "None"
    ]


def in_buckets(source: Source, call: cst.Call, *, to_longest: bool = False) -> list[Change]:
    """Batch examples of similar length with the arguments of a `padded_batch`, but for the length
    where they are padded to their longest."""
    if not isinstance(call.func, cst.Attribute) or called(call) != "padded_batch":
        raise NotPatchableError("It is not called as the method `padded_batch` of a dataset.")
    needed_argument(call, "batch_size")
    if any(arg.keyword is None for arg in call.args[1:]):
        raise NotPatchableError("More than its batch size is given by position.")
    lines, span = lines_of(_BUCKETS), source.span(call)
    modules = ("numpy as np", "tensorflow as tf")
    name, definition = defined(source, lines, _BUCKETS, span.start, *modules)
    method, opened = source.span(call.func.attr), free_name(source, "examples")
    given = Span(source.span(call.args[0]).start, source.span(call.args[-1]).end)
    shorter = _padded_to_longest(source, call, targets=True) if to_longest else []
    if to_longest and not shorter:
        raise NotPatchableError("Its `padded_shapes` do not write out the length of a row.")
    return [
        *definition,
        *shorter,
        replaced(method, "apply"),
        insertion(given.start, f"lambda {opened}: {name}({opened}, "),
        insertion(given.end, ")"),
    ]


def is_of_its_caller(source: Source, call: cst.Call) -> bool:
    """Return True if the generator or the signature is a parameter of the function around."""
    given = [argument(call, "generator"), argument(call, "output_signature")]
    return any(
        arg is not None and isinstance(arg.value, cst.Name) and is_parameter(source, arg.value)
        for arg in given
    )


def _takes_the_same(call: cst.Call) -> bool:
    first, *others = call.args
    return all(arg.keyword is not None for arg in others) and {
        arg.keyword.value for arg in call.args if arg.keyword is not None
    } <= {"generator", "output_signature"} - ({"generator"} if first.keyword is None else set())


def _imports(source: Source, needed: Iterable[str]) -> list[str]:
    there = modules(source)
    missing = []
    for each in needed:
        module, _, alias = each.partition(" as ")
        name = alias or module
        if there.get(name) == module:
            continue
        if any(name in bound(source, statement) for statement in source.module.body):
            raise NotPatchableError(f"The name `{name}` is used for something else in the file.")
        missing.append(f"import {each}")
    return missing


WEIGHTED, ROWS_OF, DISTRIBUTED = "weighted_choice", "rows_of", "by_service"
_OF_A_SERIES = frozenset(
    "array at attrs dtype empty flags hasnans iat iloc index is_unique loc name nbytes ndim shape "
    "size str T values".split()
)
"""Attributes of a row that may be no column."""
CALL_MODEL = [
    "@tf.function(reduce_retracing=True)",
    "def call_model(model, *args, **kwargs):",
    "    return model(*args, **kwargs)",
]


def through_a_function(source: Source, line: int, model: str) -> list[Change]:
    """Call the model of a line through a `tf.function` that is defined behind the imports."""
    calls = [
        call
        for call in source.calls.values()
        if call.args and source.line(call) == line and source.code(call.func) == model
    ]
    call = only(calls, f"Line {line} calls `{model}` {len(calls)} times.")
    start = source.span(call).start
    name, definition = defined(source, CALL_MODEL, "call_model", start, "tensorflow as tf")
    return [
        *definition,
        replaced(source.span(call.func), name),
        insertion(source.span(call.args[0]).start, f"{model}, "),
    ]


def rewritten_call(source: Source, line: int) -> list[Change]:
    """Write the slow call of a line another way."""
    for frame in source.calls_of("iterrows", line=line):
        loop = source.parent(frame)
        if isinstance(loop, cst.For | cst.CompFor) and loop.iter is frame:
            return rows_as_dictionaries(source, loop, frame)
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
    name, definition = defined(source, lines_of(ROWS_OF), ROWS_OF, source.span(loop).start)
    code = source.module.code_for_node
    text = f"{name}({code(frame.func.value)})"
    if not _reads(source, loop, index):
        changes.append(replaced(source.span(target), row))
    elif isinstance(frame.func.value, cst.Name):
        text = f"zip({code(frame.func.value)}.index, {text})"
    else:
        raise NotPatchableError("The loop also reads the index of the rows.")
    return [*definition, *changes, replaced(source.span(frame), text)]


def _reads(source: Source, loop: cst.For | cst.CompFor, name: str) -> list[cst.Name]:
    found = []
    for each in references(source, name, within=source.around(loop, cst.FunctionDef)):
        above = list(source.ancestors(each))
        loops: list[cst.For | cst.CompFor] = [one for one in above if isinstance(one, cst.For)]
        loops += [one.for_in for one in above if isinstance(one, cst.BaseComp | cst.GeneratorExp)]
        setting = [one for one in loops if name in names_in(source, one.target)]
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
    above = source.parent(parent) if parent is not None else None
    if isinstance(parent, cst.Subscript) and parent.value is row:
        one = parent.slice[0].slice if len(parent.slice) == 1 else None
        if isinstance(one, cst.Index) and isinstance(one.value, cst.SimpleString | cst.Name):
            return []
    elif isinstance(parent, cst.Attribute):
        called = isinstance(above, cst.Call) and above.func is parent
        if called and parent.attr.value == "get":
            return []
        if not (called or isinstance(above, cst.AssignTarget) or parent.attr.value in _OF_A_SERIES):
            return [replaced(source.span(parent), f'{row.value}["{parent.attr.value}"]')]
    raise NotPatchableError(f"`{row.value}` is used for more than reading columns by name.")


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
    if weights is None or len(call.args) > len(given) - given.count(None):
        raise NotPatchableError("It draws without weights, or along an axis.")
    if again is not None and source.code(again.value) != "True":
        raise NotPatchableError("It draws without replacement.")
    if drawn_from is None or isinstance(drawn_from.value, cst.List | cst.Tuple | cst.ListComp):
        raise NotPatchableError("It draws from a list.")
    start, code = source.span(call).start, source.module.code_for_node
    name, definition = defined(source, lines_of(WEIGHTED), WEIGHTED, start, "numpy as np")
    count = code(size.value) if size is not None else "None"
    values, sums = code(drawn_from.value), code(weights.value)
    text = f"{name}({code(call.func.value)}, {values}, {count}, {sums})"
    return [*definition, replaced(source.span(call), text)]
