"""A map of short calls that runs for each row before the batch, instead of once for the batch."""

from __future__ import annotations

from collections.abc import Mapping

from pipediag.facts.limits import INPUT_WAIT, OPERATION_SHARE, Threshold
from pipediag.facts.pipeline import (
    between,
    call_name,
    delay_ms,
    following_batch,
    measured_at,
    only_looks_up,
    operations,
    place_name,
    upstream,
)
from pipediag.rules.bounds import less_input, uncounted_wait_ms, unexplained_factor
from pipediag.rules.relevance import Weight, weigh
from pipediag.rules.rule import Meta
from pipediag.session.edits import Edit, Move
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation, OperationFunction
from pipediag.tensorflow_names import LOOKUP
from pipediag.vocabulary import Scalar

_BOOKKEEPING = {"Arg", "Const", "Identity", "IdentityN", "NoOp", "Placeholder", "Retval"}
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
    *("DecodeRaw", "StringToHashBucketStrong"),
}
BROADCASTS = frozenset(_BOOKKEEPING | _ELEMENTWISE | _STRINGS | LOOKUP)
"""Give the same values for a batch as for its rows one by one."""
BATCH_FORMS = {
    "ParseExampleV2": "tf.io.parse_example",
    "ParseSingleExample": "tf.io.parse_example",
    "StringSplitV2": "tf.strings.split(...).to_tensor()",
}
"""Per-row operations that have a form for batches, and how that is written."""
REWRITTEN = frozenset({"ParseExampleV2"})
"""Those of them that a trial traces in that form by itself."""


ELEMENT_TIME = Threshold(
    "time per element",
    200.0,
    "µs",
    "own measurements: calling a function costs 20 to 40 µs an element here; above 200 µs it only "
    "informs, and is tried after what fails",
)
ELEMENTS = Threshold(
    "elements per step",
    8.0,
    "elements",
    "own choice: with fewer it only informs, and is tried after what fails",
)
MOSTLY_UNCOUNTED = 2.0
"""Input wait over all delays from which most of it is on no operation's clock. Own choice: one
half."""
_ORDER_ONLY = ("shuffle", "repeat", "prefetch", "with_options")
PER_ELEMENT_MAP = Meta(
    id="per-element-map",
    name="Map at element rate",
    title_failed="A map of short calls runs for every element; batch first and map the batch",
    title_passed="No map of short calls runs at element rate",
    why="Each call costs tens of microseconds whatever it computes, and TensorFlow no longer "
    "vectorises maps by itself. Batching first gave 32 times the rate for a cast, 37 for "
    "strings.split, 19 for parse_example.",
    edit="Swap the two: `ds.batch(n).map(f)`, with the batch form of parsing and splitting.",
    cost="The function must broadcast over the first axis; ragged results need to_tensor().",
    needs=("loop", "pipeline", "steps", "breakdown"),
    thresholds=(INPUT_WAIT, OPERATION_SHARE, ELEMENT_TIME, ELEMENTS),
    severity="warn",
    effect_on_results="same results",
    frees=("input_wait",),
    tried_when_informing=True,
)

_OTHER_FORM = (
    "It needs the function written for whole batches, with other operations; pipediag can't do "
    "that for you."
)
_NOT_ALONE = (
    "Other operations between it and the batch take its single elements, so moving it alone would "
    "change what they get."
)


def check_per_element_map(session: Session) -> list[Finding]:
    """One finding for each map of short calls before a batch that may be called for several."""
    maps = [
        op
        for op in operations(session, "map")
        if _of_its_element_alone(op) and following_batch(session, op)
    ]
    found = [_finding(session, op, op.function) for op in maps if op.function]
    return [one for one in found if one is not None] or [PER_ELEMENT_MAP.finding("pass", "")]


def _of_its_element_alone(op: Operation) -> bool:
    """TensorFlow calls a lookup stateful, which it is only while someone fills the table."""
    function = op.function
    return function is not None and (not function.stateful or only_looks_up(function))


def _has_short_calls(session: Session, op: Operation) -> bool:
    each = _us_per_element(session, op)
    return each is not None and each <= ELEMENT_TIME.value


def _us_per_element(session: Session, op: Operation) -> float | None:
    """Self time of one call, or None where it is unknown or where calls are few."""
    self_ms = measured_at(session, op).self_ms_per_step
    if op.elements is None or self_ms is None or op.elements < ELEMENTS.value:
        return None
    return 1000.0 * self_ms / op.elements


def _finding(session: Session, op: Operation, function: OperationFunction) -> Finding | None:
    delay = delay_ms(session, op) or 0.0
    weight = weigh(session, op)
    unsure = sorted(set(function.graph_ops) - BROADCASTS - BATCH_FORMS.keys())
    evidence = {
        **weight.evidence,
        "elements_per_step": op.elements,
        "us_per_element": _us_per_element(session, op),
        "wait_not_counted_ms": uncounted_wait_ms(session),
        "operations_that_may_not_broadcast": ", ".join(unsure) or None,
    }
    if not _has_short_calls(session, op):
        return None if unsure else _of_long_calls(session, op, weight, evidence)
    if weight.status != "fail":
        return PER_ELEMENT_MAP.finding(weight.status, weight.sentence, op=op, evidence=evidence)
    if unsure:
        advice = (
            f"If the function of {call_name(op)} gives the same for a whole batch as for its rows, "
            f"batch first. Pipediag can't tell that of {', '.join(unsure)}."
        )
        edit = _edit(session, op)
        return PER_ELEMENT_MAP.finding("informative", advice, op=op, evidence=evidence, edit=edit)
    return PER_ELEMENT_MAP.finding(
        "fail",
        _advice(session, op, function),
        op=op,
        evidence=evidence,
        speedup_at_most=_at_most(session, delay),
        edit=_edit(session, op),
        untried=_untried(session, op),
    )


def _of_long_calls(
    session: Session, op: Operation, weight: Weight, evidence: Mapping[str, Scalar]
) -> Finding | None:
    """Where the cost of a call is not most of its time, a trial says what batching buys."""
    edit = _edit(session, op) if weight.worth_trying else None
    if edit is None or op.function is None:
        return None
    return PER_ELEMENT_MAP.finding(
        "informative",
        f"{_advice(session, op, op.function)} A trial tells what that buys.",
        op=op,
        evidence=evidence,
        title="A map runs for every element, and could run for whole batches",
        edit=edit,
    )


def _edit(session: Session, op: Operation) -> Edit | None:
    """The map behind the batch, with the maps that use its results; None where it can't move.

    Nothing vouches for the function but its operations' names, so batches must come out equal.
    """
    batch, moved = following_batch(session, op), _moved_together(session, op)
    if batch is None or not moved or _carrier(session, op) is not None:
        return None
    if any(_needs_rewriting(each) for each in moved):
        return None
    behind = [batch, *moved[:-1]]
    others = " with the maps behind it" if len(moved) > 1 else ""
    rewritten = sorted(
        {BATCH_FORMS[name] for each in moved for name in REWRITTEN & _graph_ops(each)}
    )
    written = f", with {' and '.join(rewritten)}" if rewritten else ""
    return Edit(
        id=f"{PER_ELEMENT_MAP.id}:{op.id}",
        label=f"{place_name(op)}{others} moved behind the {place_name(batch)}{written}",
        changes=tuple(Move(each.id, after.id) for each, after in zip(moved, behind, strict=True)),
        check="equal",
    )


def _moved_together(session: Session, op: Operation) -> list[Operation]:
    """The map and the maps between it and the batch; empty where it can't move so.

    Where there are several, each must broadcast, or the doubt about one would keep all from moving.
    """
    batch = following_batch(session, op)
    path = between(session, op, batch) if batch else None
    if path is None or any(each.kind not in _ORDER_ONLY and each.kind != "map" for each in path):
        return []
    later = [each for each in path if each.kind == "map"]
    return [op, *later] if not later or all(map(_broadcasts, [op, *later])) else []


def _broadcasts(op: Operation) -> bool:
    return _of_its_element_alone(op) and _graph_ops(op) <= BROADCASTS | REWRITTEN


def _needs_rewriting(op: Operation) -> bool:
    return bool((BATCH_FORMS.keys() - REWRITTEN) & _graph_ops(op))


def _carrier(session: Session, op: Operation) -> Operation | None:
    """The first map further up whose edit moves this one too."""
    carriers = [
        other
        for other in upstream(session, op)
        if other.kind == "map"
        and op in _moved_together(session, other)
        and _has_short_calls(session, other)
        and weigh(session, other).status == "fail"
    ]
    return carriers[-1] if carriers else None


def _graph_ops(op: Operation) -> set[str]:
    return set(op.function.graph_ops) if op.function else set()


def _untried(session: Session, op: Operation) -> str:
    carrier = _carrier(session, op)
    if carrier is not None:
        return f"It is tried together with the {place_name(carrier)}."
    return _OTHER_FORM if _needs_rewriting(op) else _NOT_ALONE


def _advice(session: Session, op: Operation, function: OperationFunction) -> str:
    batch = following_batch(session, op)
    where = call_name(batch) if batch else "the batch"
    forms = [BATCH_FORMS[name] for name in sorted(BATCH_FORMS.keys() & function.graph_ops.keys())]
    written = f", written with `{'` and `'.join(forms)}`" if forms else ""
    return (
        f"Move {call_name(op)} behind {where}, so that it runs once a batch{written}."
        f"{_not_counted(session)}"
    )


def _not_counted(session: Session) -> str:
    """Why the pipeline's table shows less than what is waited for; nothing where it is about that.

    tf.data does not count what calling a function costs beside the function's own operations.
    """
    if unexplained_factor(session) < MOSTLY_UNCOUNTED:
        return ""
    return (
        f" Of the wait, {uncounted_wait_ms(session):.1f} ms a step is on no operation's clock: "
        "what a call costs beside its function is not counted."
    )


def _at_most(session: Session, delay: float) -> float | None:
    return less_input(session, delay + uncounted_wait_ms(session), on_cpu=False)
