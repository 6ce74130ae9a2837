"""Maps that run for each row, instead of each batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import takewhile

from pipediag.facts.limits import INPUT_WAIT, OPERATION_SHARE, Threshold
from pipediag.facts.machine import cpus
from pipediag.facts.pipeline import (
    between,
    call_name,
    calls_python,
    changes_something,
    delay_ms,
    downstream,
    draws_random,
    every,
    following_batch,
    measured_at,
    only_looks_up,
    operations,
    place_name,
    upstream,
    uses,
)
from pipediag.facts.python_callables import python_calls, python_evidence
from pipediag.rules.caching import place_of_cache
from pipediag.rules.parallel_maps import EACH_ROW, processes_for
from pipediag.rules.relevance import (
    less_input,
    matters,
    uncounted_wait_ms,
    weigh,
    weigh_first_batches,
)
from pipediag.rules.rule import pipeline_rule
from pipediag.rules.shuffling import buffer_size
from pipediag.session.edits import IN_BATCHES, IN_PROCESSES, Edit, Move, Replace
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.tensorflow_names import BATCHING, LOOKUP, PYTHON_OPERATIONS, ROW_FUNCTIONS
from pipediag.vocabulary import Scalar

# A map of short calls that runs for each row before the batch

_BOOKKEEPING = {
    *("Arg", "Const", "Identity", "IdentityN", "LookupTableSizeV2", "NoOp", "Placeholder"),
    "Retval",
}
_ELEMENTWISE = {
    *("Abs", "Add", "AddV2", "Cast", "ClipByValue", "Cos", "Div", "DivNoNan", "Equal", "Exp"),
    *("Floor", "FloorDiv", "FloorMod", "Greater", "GreaterEqual", "Less", "LessEqual", "Log"),
    *("Log1p", "LogicalAnd", "LogicalNot", "LogicalOr", "Maximum", "Minimum", "Mod", "Mul", "Neg"),
    *("NotEqual", "OneHot", "Pow", "RealDiv", "Relu", "Rint", "Round", "Rsqrt", "Select"),
    *("SelectV2", "Sigmoid", "Sign", "Sin", "Sqrt", "Square", "SquaredDifference", "Sub", "Tanh"),
    *("TruncateDiv", "ZerosLike", "OnesLike"),
}
_STRINGS = {
    *("StringLower", "StringUpper", "StringStrip", "StringToHashBucketFast", "StringToHashBucket"),
    *("StringToNumber", "StringLength", "StaticRegexReplace", "RegexReplace", "AsString"),
    *("DecodeCSV", "DecodeRaw", "StringToHashBucketStrong", "StringJoin", "RegexFullMatch"),
    *("StaticRegexFullMatch", "Substr"),
}
BROADCASTS = frozenset(_BOOKKEEPING | _ELEMENTWISE | _STRINGS | LOOKUP)
"""Operations that give the same values for a batch as for its rows one by one."""
BATCH_FORMS = {
    "ParseExampleV2": "tf.io.parse_example",
    "ParseSingleExample": "tf.io.parse_example",
    "StringSplitV2": "tf.strings.split(...).to_tensor()",
}
"""Operations on single rows that have a form for batches, and how that is written."""
REWRITTEN = frozenset(ROW_FUNCTIONS)
"""Operations whose calls a trial, and the patch, write in the form for batches."""
_DENSE = "SparseToDense"
_KNOWN = BROADCASTS | REWRITTEN | {_DENSE, "EnsureShape"}
"""Operations of functions that take batches as they are or rewritten."""
_NOT_VECTORIZED = frozenset(_STRINGS | LOOKUP | PYTHON_OPERATIONS | {_DENSE})
"""Operations that `tf.vectorized_map` calls row by row, or refuses. Measured: 20,000 rows with two
hashes take 0.96 s so, 0.84 s in a map of single rows, and 0.06 s in the form for batches."""

ELEMENT_TIME = Threshold("time per element", 200.0, "µs", "measured: a call costs 20 to 40 µs")
OPERATION_US = 10.0
"""Time for each operation of a short call. Measured: 61 took 157 to 201 µs for a row."""
ELEMENTS = Threshold("elements per step", 8.0, "elements", "own choice: with fewer it only informs")
_FEWEST_ROWS = 64
"""Own choice: a call for fewer costs much of what their own calls did."""
_ORDER_ONLY = ("shuffle", "repeat", "prefetch", "with_options")
PER_ELEMENT_MAP = pipeline_rule(
    id="per-element-map",
    title="Batch first, and map whole batches",
    why="Each call costs tens of microseconds, whatever it computes. Batching first made a cast "
    "32 times as fast, strings.split 37 times and parse_example 19 times.",
    fix="Swap the two: `ds.batch(n).map(f)`, with the batch form of parsing and splitting. The "
    "function must broadcast over the first axis, and ragged results need `to_tensor()`. Around a "
    "filter, use batches of their own: `ds.batch(n)...unbatch()`.",
    thresholds=(INPUT_WAIT, OPERATION_SHARE, ELEMENT_TIME, ELEMENTS),
)


@PER_ELEMENT_MAP.found_at("map")
def _check_per_element_map(session: Session, op: Operation) -> Iterator[Finding]:
    batch, apart = following_batch(session, op), _taken_apart(session, op)
    if (batch is None and not apart) or not _of_its_element_alone(op):
        return
    weight, edit = weigh(session, op), _edit(session, op, batch, apart)
    known = _KNOWN | BATCH_FORMS.keys()
    unsure = [] if _vectorized(op) else sorted(_graph_ops(op) - known)
    uncounted_ms = uncounted_wait_ms(session)
    finding = partial(
        PER_ELEMENT_MAP.finding,
        op=op,
        weight=weight,
        evidence={
            "elements_per_step": op.elements,
            "call_us": _us_per_element(session, op),
            "wait_not_counted_ms": uncounted_ms,
            "operations_that_may_not_broadcast": ", ".join(unsure) or None,
        },
    )
    if batch is not None and not apart:
        advice = (
            f"Move {call_name(op)} after {call_name(batch)}, so that it runs once per "
            f"batch{_written(op)}.{_beside_cache(edit)}"
        )
    else:
        rows, end = _rows_at_once(session), call_name(apart[-1]) if len(apart) > 1 else "it"
        advice = (
            f"Call {call_name(op)} for {rows} rows at once: put `.batch({rows})` before it, and "
            f"`.unbatch()` behind {end}."
        )
    if unsure:
        advice += (
            " Do this only if its function gives the same for a batch, which is not known for "
            f"{', '.join(unsure)}."
        )
    early = weigh_first_batches(session, op, 0.0)
    if early is not None and _fills_fast(session, op):
        yield finding(
            "informative" if unsure else early.status,
            f"{early.before(advice)} Each epoch's first batch waits for it.",
            weight=early,
            edit=replace(edit, whole_epoch=True) if edit is not None else None,
            untried=_why_not_moved(session, op),
            part="epoch_start",
        )
    elif not _has_short_calls(session, op):
        # Where the cost of a call is not most of its time, a trial says what batching buys.
        try_it = not unsure and weight.worth_trying and edit is not None
        yield finding("informative" if try_it else "pass", advice, edit=edit)
    elif weight.worth_trying and (unsure or weight.status != "fail"):
        yield finding("informative", weight.before(advice), edit=edit)
    elif weight.worth_trying:
        saved_ms = (delay_ms(session, op) or 0.0) + uncounted_ms
        at_most, untried = less_input(session, saved_ms, on_cpu=False), _why_not_moved(session, op)
        yield finding("fail", advice, speedup_at_most=at_most, edit=edit, untried=untried)


def _fills_fast(session: Session, op: Operation) -> bool:
    """Return True if a call is short, by the time in which the shuffle behind it is filled."""
    shuffles = [one for one in downstream(session, op) if one.kind == "shuffle"]
    running = [one for one in shuffles if measured_at(session, one).elements is not None]
    size = buffer_size(running[0]) if len(running) == 1 else None
    fill_ms = session.steps.fill_ms if session.steps is not None else None
    if not fill_ms or not size:
        return False
    at_once = 1.0 if op.parameters.get("num_parallel_calls") in (None, 1) else cpus(session)
    # The wait holds the pipeline's start, too.
    return 1000.0 * fill_ms / size * max(1.0, at_once) <= 2.0 * ELEMENT_TIME.value


def _written(op: Operation) -> str:
    """Return how the function is called for a batch, as the end of a clause."""
    if _vectorized(op):
        return ", with `tf.vectorized_map`"
    forms = [BATCH_FORMS[name] for name in sorted(_to_write(op))]
    return f", written with `{'` and `'.join(forms)}`" if forms else ""


def _vectorized(op: Operation) -> bool:
    """Return True if the function takes a batch by `tf.vectorized_map` alone, and well."""
    ops, function = _graph_ops(op), op.function
    broadcasts = ops <= BROADCASTS and not (function and function.returns_constant)
    # It parses all rows at once, so that they get one length.
    if broadcasts or (function and function.padded_features):
        return False
    return ops.isdisjoint(_NOT_VECTORIZED | (BATCH_FORMS.keys() - REWRITTEN))


def _of_its_element_alone(op: Operation) -> bool:
    """TensorFlow calls a lookup stateful, which it is only while someone fills the table."""
    function = op.function
    return function is not None and (not function.stateful or only_looks_up(function))


def _has_short_calls(session: Session, op: Operation) -> bool:
    each = _us_per_element(session, op)
    made = op.function.graph_ops.items() if op.function is not None else ()
    working = sum(count for name, count in made if name not in _BOOKKEEPING)
    return each is not None and each <= max(ELEMENT_TIME.value, OPERATION_US * working)


def _us_per_element(session: Session, op: Operation) -> float | None:
    """Return the self time of one call, or None where it is unknown or where calls are few."""
    self_ms = measured_at(session, op).self_ms_per_step
    if op.elements is None or self_ms is None or op.elements < ELEMENTS.value:
        return None
    return 1000.0 * self_ms / op.elements


def _edit(
    session: Session, op: Operation, batch: Operation | None, apart: list[Operation]
) -> Edit | None:
    """Return the move of the map after the batch, with the maps that use its results, or batches of
    its own for it and what follows; None where neither can be.

    Nothing vouches for the function but its operations' names, so batches must come out equal.
    """
    if _carrier(session, op) is not None:
        return None
    if apart:
        rows = _rows_at_once(session)
        end = f"the {place_name(apart[-1])}" if len(apart) > 1 else "it"
        label = f"`.batch({rows})` before the {place_name(op)}, and `.unbatch()` behind {end}"
        return PER_ELEMENT_MAP.edit(op, label, *_in_batches(session, apart), check="equal")
    moved = _moved_together(session, op)
    if not moved or batch is None or any(_to_write(one) - REWRITTEN for one in moved):
        return None
    written = "".join(sorted({_written(each) for each in moved}))
    moves = [
        replace(move, vectorized=_vectorized(each))
        for move, each in zip(_moves(moved, batch), moved, strict=True)
    ]
    edit = PER_ELEMENT_MAP.edit(op, f"{_label(moved, batch)}{written}", *moves, check="equal")
    return edit if any(map(_vectorized, moved)) else _or_before_cache(session, edit, moved)


def _in_batches(session: Session, ops: list[Operation]) -> list[Replace]:
    """Return the changes by which operations hand batches on: the last makes elements of those that
    the first makes."""
    given: dict[str, Scalar] = {"elements": _rows_at_once(session)}
    if len(ops) == 1:
        return [Replace(ops[0].id, IN_BATCHES, given)]
    ends = ({"first": one is ops[0], "last": one is ops[-1]} for one in ops)
    return [
        Replace(one.id, IN_BATCHES, {**given, **end}) for one, end in zip(ops, ends, strict=True)
    ]


def _or_before_cache(session: Session, edit: Edit, moved: list[Operation]) -> Edit:
    """Return the edit with batches of their own for the maps, where a cache right behind them is to
    be tried: behind the batch of the pipeline, it would keep the batches of the first epoch."""
    batch, shuffles = following_batch(session, moved[0]), operations(session, "shuffle")
    follows = place_of_cache(session) == moved[-1].id and bool(shuffles)
    follows = follows and batch is not None and batch.kind == "batch"
    has_length = (moved[0].cardinality or -1) >= 0
    if not follows or not _can_be_apart(session, moved[0]) or (has_length and len(moved) > 1):
        return edit
    return replace(edit, before_cache=tuple(_in_batches(session, moved)))


def _beside_cache(edit: Edit | None) -> str:
    """Return how the edit is made where a cache follows, as a further sentence."""
    if edit is None or not edit.before_cache:
        return ""
    first = edit.before_cache[0]
    rows = first.parameters["elements"] if isinstance(first, Replace) else None
    return (
        f" With a cache behind it, put `.batch({rows})` before it instead, and `.unbatch()` "
        "between the two."
    )


def _can_be_apart(session: Session, op: Operation) -> bool:
    """Return True if a map may get batches of its own, which are taken apart again. Where elements
    that fail are left out, all of their batch would be."""
    return (
        op.inside_function_of is None
        and all(one.kind != "ignore_errors" for one in downstream(session, op))
        and all(other.kind not in BATCHING for other in upstream(session, op))
        and _rows_at_once(session) is not None
    )


def _taken_apart(session: Session, op: Operation) -> list[Operation]:
    """Return the map with the maps and filters right behind it that can take batches, which are
    taken apart again; nothing where it can move after the batch of the pipeline, where its length,
    which is lost so, is known, or where elements that fail are left out: with one, all of its batch
    would be. A batch that pads may say how long the map's rows are."""
    batch = following_batch(session, op)
    moves = batch is not None and batch.kind == "batch" and bool(_moved_together(session, op))
    lengths = [one.cardinality for one in (op, *downstream(session, op)[-1:])]
    has_length = any(length is not None and length >= 0 for length in lengths)
    if moves or has_length or not _can_be_apart(session, op):
        return []
    following: list[Operation] = []
    each: Operation | None = op
    while each is not None and _takes_batches(each):
        following.append(each)
        readers = [one for one in every(session) if each.id in one.parent_ids]
        each = readers[0] if len(readers) == 1 and readers[0].parent_ids == [each.id] else None
    # A cache comes behind the last map that matters and the filters that follow it, and no further.
    maps = [one for one in following if one.kind == "map" and (one is op or matters(session, one))]
    behind = following.index(maps[-1]) + 1 if maps else 0
    filters = takewhile(lambda one: one.kind == "filter", following[behind:])
    return [*following[:behind], *filters]


def _takes_batches(op: Operation) -> bool:
    """Return True if a function gives a batch what its rows get, as it is or rewritten."""
    function = op.function
    if op.kind not in ("map", "filter") or function is None or function.returns_constant:
        return False
    # Rows that were made dense get the length of the longest: they have to be cut to one.
    padded = function.graph_ops.get(_DENSE, 0) + function.padded_features
    cut = function.graph_ops.get("StridedSlice", 0) >= padded
    return cut and _of_its_element_alone(op) and _graph_ops(op) <= _KNOWN


def _rows_at_once(session: Session) -> int | None:
    """Return how many elements a map takes at once: a batch of the loop's, so that trials see each
    step make about what it takes."""
    loop = session.diagnosed_loop()
    size = loop.batch_size if loop is not None else None
    return None if size is None else max(_FEWEST_ROWS, size)


def _moves(moved: list[Operation], batch: Operation) -> list[Move]:
    places = zip(moved, [batch, *moved], strict=False)
    return [Move(each.id, after.id) for each, after in places]


def _label(moved: list[Operation], batch: Operation) -> str:
    others = " with the maps after it" if len(moved) > 1 else ""
    return f"{place_name(moved[0])}{others} moved after the {place_name(batch)}"


def _up_to_the_batch(session: Session, op: Operation) -> list[Operation]:
    """Return the map and the maps between it and the batch; nothing where it can't move so."""
    batch = following_batch(session, op)
    path = between(session, op, batch) if batch else None
    if path is None or any(each.kind not in ("map", *_ORDER_ONLY) for each in path):
        return []
    return [op, *(each for each in path if each.kind == "map")]


def _moved_together(session: Session, op: Operation) -> list[Operation]:
    """Return these maps; where there are several, each must broadcast, or the doubt about one would
    keep all from moving."""
    maps = _up_to_the_batch(session, op)
    alike = all(
        _of_its_element_alone(m) and (_graph_ops(m) <= _KNOWN or _vectorized(m)) for m in maps
    )
    return maps if len(maps) == 1 or alike else []


def _to_write(op: Operation) -> set[str]:
    """Return its operations that the script writes otherwise for a batch. A layer that splits text,
    such as a TextVectorization, takes batches too."""
    calls = op.function.python_calls if op.function is not None else []
    splits = any("string_split" in call for call in calls)
    found = BATCH_FORMS.keys() & _graph_ops(op)
    return found if splits else found - {"StringSplitV2"}


def _carrier(session: Session, op: Operation) -> Operation | None:
    """Return the first map before it whose edit changes this one too."""
    for other in reversed(upstream(session, op)):
        changed = _taken_apart(session, other) or _moved_together(session, other)
        moves = other.kind == "map" and op in changed
        if moves and _has_short_calls(session, other) and weigh(session, other).status == "fail":
            return other
    return None


def _graph_ops(op: Operation) -> set[str]:
    return set(op.function.graph_ops) if op.function else set()


def _why_not_moved(session: Session, op: Operation) -> str:
    carrier = _carrier(session, op)
    if carrier is not None:
        return f"It is tried together with the {place_name(carrier)}."
    if _to_write(op) - REWRITTEN:
        return "The function has to be rewritten for whole batches, with other operations."
    return "Operations between it and the batch need its single elements."


# Python that is called for each row before the batch

PYTHON_EACH_ROW = pipeline_rule(
    id=EACH_ROW,
    title="Call Python once for each batch",
    why="64 JSON records took 10 ms of CPU time with one numpy_function call each, 19 ms with "
    "py_function, and 2.5 to 5 ms in one call for all of them, with the user's function unchanged.",
    fix="Batch first. The wrapper `for_each_row` then calls your function for each row; of Python "
    "that computes for long, in processes (copies by `fork`, without TensorFlow).",
    thresholds=(INPUT_WAIT, OPERATION_SHARE),
)
_EAGER = frozenset({"EagerPyFunc"})


@PYTHON_EACH_ROW.found_at("map")
def _check_python_each_row(session: Session, op: Operation) -> Iterator[Finding]:
    """Yield a finding on a map that calls Python before a batch that could come first."""
    batch, moved = following_batch(session, op), _up_to_the_batch(session, op)
    if not calls_python(op) or not moved or batch is None or batch.kind != "batch":
        return
    # Nothing shows that results hang on more than their element.
    if not any(one.helper or changes_something(one) or draws_random(one.function) for one in moved):
        yield from _called_once(session, moved, batch)


def _called_once(session: Session, moved: list[Operation], batch: Operation) -> Iterator[Finding]:
    """Yield the finding, and another where processes may call what computes for long."""
    op, *others = moved
    weight, beside_ms = weigh(session, op), _around_python_ms(session, op)
    also = " with the maps after it" if others else ""
    finding = partial(
        PYTHON_EACH_ROW.finding,
        op=op,
        weight=weight,
        evidence={
            **python_evidence(op),
            "elements_per_step": op.elements,
            "beside_python_ms_per_step": beside_ms,
        },
        speedup_at_most=None if beside_ms is None else less_input(session, beside_ms, on_cpu=False),
    )
    if not weight.worth_trying:
        return
    moves = _moves(moved, batch)
    label = f"{_label(moved, batch)}, with one Python call for all its rows"
    edit = PYTHON_EACH_ROW.edit(op, label, *moves, check="equal")
    edit = _or_before_cache(session, edit, moved)
    advice = (
        f"Move {call_name(op)}{also} after {call_name(batch)}, and process all rows of a batch in "
        "one Python call"
    )
    # Where little is left to gain around the user's function, a trial says how much.
    around = weigh(session, op, beside_ms).status == "fail"
    told = f"{advice}.{_beside_cache(edit)}"
    yield finding("fail" if around else "informative", told, edit=edit)
    calls = python_calls(op)
    count = processes_for(session, op, calls.per_step) if calls is not None else None
    if count is not None and weight.status == "fail":
        yield finding(
            "informative",
            f"{advice}, made by one of {count} processes.",
            edit=PYTHON_EACH_ROW.edit(
                f"{op.id}:processes",
                f"{label}, in {count} processes",
                *moves,
                Replace(op.id, IN_PROCESSES, {"processes": count}),
                check="equal",
            ),
        )


def _around_python_ms(session: Session, op: Operation) -> float | None:
    """Return the most that its calls take around the user's function, in ms per step.

    The clock of a `py_function` holds what TensorFlow does around the function, so that only its
    waits are known to be the function's.
    """
    delay, calls = delay_ms(session, op), python_calls(op)
    self_ms = measured_at(session, op).self_ms_per_step
    if delay is None or calls is None or not self_ms:
        return delay
    own_ms = calls.off_cpu_ms if uses(op.function, _EAGER) else calls.wall_ms
    return delay * max(0.0, 1.0 - own_ms / self_ms)
