"""A cheap map that runs once for each row before the batch, instead of once for the batch."""

from __future__ import annotations

from pipediag.rules.graph_ops import BATCH_FORMS, BROADCASTS
from pipediag.rules.plan import call_name, delay_ms, following_batch, measured_at, operations
from pipediag.rules.prediction import less_input, unexplained_factor
from pipediag.rules.relevance import INPUT_WAIT, OPERATION_SHARE, weigh
from pipediag.rules.rule import Meta, Prediction, Threshold
from pipediag.session.model import Finding, Operation, OperationFunction, Session

ELEMENT_TIME = Threshold(
    "time per element",
    200.0,
    "µs",
    "own measurements: calling a function costs 20 to 40 µs an element here; above 200 µs the "
    "function's own work is most of it",
)
ELEMENTS = Threshold(
    "elements per step",
    8.0,
    "elements",
    "own choice: with fewer there is little to share the cost of a call among",
)
REMAINING = 0.1
META = Meta(
    id="per-element-map",
    name="Map at element rate",
    title_failed="A cheap map runs for every element; batch first and map the batch",
    title_passed="No cheap map runs at element rate",
    looks_at="Stateless maps before a batch: time per element, elements per step, and whether each "
    "operation in the function gives the same values for a whole batch.",
    why="Each call costs tens of microseconds whatever it computes, and TensorFlow no longer "
    "vectorises maps by itself. Batching first gave 32 times the rate for a cast, 37 for "
    "strings.split, 19 for parse_example.",
    edit="Swap the two: `ds.batch(n).map(f)`, with the batch form of parsing and splitting.",
    cost="The function must broadcast over the first axis; ragged results need to_tensor().",
    prediction="The map's part of the input wait falls to a tenth (the least of three measured "
    "gains was 19-fold). Wait that no delay explains is shared out in proportion to the delays. "
    "Never beyond the ceiling.",
    needs=("loop", "pipeline", "steps", "breakdown"),
    thresholds=(INPUT_WAIT, OPERATION_SHARE, ELEMENT_TIME, ELEMENTS),
    severity="warn",
    effect_on_results="same results",
)


def check(session: Session) -> list[Finding]:
    """One finding for each cheap stateless map before a batch."""
    maps = [
        op
        for op in operations(session, "map")
        if op.function is not None and not op.function.stateful and following_batch(session, op)
    ]
    found = [
        _finding(session, op, op.function) for op in maps if op.function and _is_cheap(session, op)
    ]
    return found or [META.finding("pass", "")]


def _is_cheap(session: Session, op: Operation) -> bool:
    each = _us_per_element(session, op)
    return each is not None and each <= ELEMENT_TIME.value


def _us_per_element(session: Session, op: Operation) -> float | None:
    """Self time of one call, or None where it is unknown or where calls are few."""
    self_ms = measured_at(session, op).self_ms_per_step
    if op.elements is None or self_ms is None or op.elements < ELEMENTS.value:
        return None
    return 1000.0 * self_ms / op.elements


def _finding(session: Session, op: Operation, function: OperationFunction) -> Finding:
    delay = delay_ms(session, op) or 0.0
    weight = weigh(session, op)
    unsure = sorted(set(function.graph_ops) - BROADCASTS - BATCH_FORMS.keys())
    evidence = {
        **weight.evidence,
        "elements_per_step": op.elements,
        "us_per_element": _us_per_element(session, op),
        "operations_that_may_not_broadcast": ", ".join(unsure) or None,
    }
    if weight.status != "fail":
        return META.finding(weight.status, weight.sentence, op=op, evidence=evidence)
    if unsure:
        advice = (
            f"If the function of {call_name(op)} gives the same for a whole batch as for its rows, "
            f"batch first. Pipediag can't tell that of {', '.join(unsure)}."
        )
        return META.finding("informative", advice, op=op, evidence=evidence)
    return META.finding(
        "fail",
        _advice(session, op, function),
        op=op,
        evidence=evidence,
        prediction=_prediction(session, delay),
    )


def _advice(session: Session, op: Operation, function: OperationFunction) -> str:
    batch = following_batch(session, op)
    where = call_name(batch) if batch else "the batch"
    forms = [BATCH_FORMS[name] for name in sorted(BATCH_FORMS.keys() & function.graph_ops.keys())]
    written = f", written with `{'` and `'.join(forms)}`" if forms else ""
    return f"Move {call_name(op)} behind {where}, so that it runs once a batch{written}."


def _prediction(session: Session, delay: float) -> Prediction:
    return less_input(session, delay * (1 - REMAINING) * unexplained_factor(session), on_cpu=False)
