"""A Python generator that yields single rows, which tf.data then batches."""

from __future__ import annotations

from pipediag.facts.limits import INPUT_WAIT, OPERATION_SHARE
from pipediag.facts.pipeline import call_name, delay_ms, following_batch, operations
from pipediag.facts.python_sources import running_line
from pipediag.rules.bounds import less_input
from pipediag.rules.relevance import Weight, weigh
from pipediag.rules.rule import Meta
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation

META = Meta(
    id="row-generator",
    name="Row-at-a-time generator",
    title_failed="A Python generator hands over one row at a time",
    title_passed="No generator hands over single rows",
    looks_at="from_generator with a batch behind it, its elements per step, its delay, and how "
    "much of that is the crossing.",
    why="Each element crosses from Python into TensorFlow by itself, which costs about 50 µs and "
    "holds the interpreter lock; parallel calls and prefetch don't speed a generator up. Yielding "
    "batches of 256 gave 8140 batches/s in place of 70.",
    edit="Yield whole batches of NumPy arrays and drop the batch.",
    cost="The generator must gather rows itself; a shuffle behind it would mix batches, not rows.",
    bound="The crossing is paid once a batch: 50 µs (measured, at most its own time) less for "
    "every element but one; never beyond the ceiling.",
    needs=("loop", "pipeline", "steps", "breakdown"),
    thresholds=(INPUT_WAIT, OPERATION_SHARE),
    severity="warn",
    effect_on_results="same results",
    frees=("input_wait",),
    untried="It needs the generator itself rewritten; pipediag can't do that for you.",
)

CROSSING_MS = 0.05


def check(session: Session) -> list[Finding]:
    """One finding for each generator with a batch behind it."""
    generators = operations(session, "from_generator")
    if not generators:
        return [META.finding("not-applicable", "The pipeline has no from_generator.")]
    rows = [op for op in generators if following_batch(session, op)]
    if not rows:
        return [META.finding("pass", "")]
    return [_finding(session, op) for op in rows]


def _finding(session: Session, op: Operation) -> Finding:
    weight = _weigh(session, op)
    batch = following_batch(session, op)
    size = batch.parameters.get("batch_size") if batch else None
    advice = (
        f"Let the generator of {call_name(op)} yield arrays of {size or 'a whole batch of'} rows, "
        "with None as first axis in its output_signature, and drop the `batch`."
    )
    return META.finding(
        weight.status,
        advice if weight.status == "fail" else weight.sentence,
        op=op,
        place=running_line(session, op),
        evidence={**weight.evidence, "elements_per_step": op.elements},
        speedup_at_most=_at_most(session, op),
    )


def _weigh(session: Session, op: Operation) -> Weight:
    """Whether the crossing matters: what a row itself takes stays what it is in a batch."""
    weight, crossing = weigh(session, op), _crossing_ms(session, op)
    if weight.status != "fail" or crossing is None:
        return weight
    of_crossing = weigh(session, op, crossing)
    if of_crossing.status == "fail":
        return weight
    sentence = (
        f"Its rows cross into TensorFlow one by one, which is {crossing:.1f} of the "
        f"{delay_ms(session, op) or 0.0:.1f} ms that it takes of each step: the rest is what the "
        "generator itself does for its rows."
    )
    return Weight("informative", sentence, weight.evidence)


def _crossing_ms(session: Session, op: Operation) -> float | None:
    """What a step's rows cost at the crossing; None where that was not measured."""
    delay = delay_ms(session, op)
    if delay is None or op.elements is None or op.elements <= 1:
        return None
    return min(delay, CROSSING_MS * op.elements)


def _at_most(session: Session, op: Operation) -> float | None:
    crossing = _crossing_ms(session, op)
    if crossing is None or op.elements is None:
        return None
    return less_input(session, crossing * (1 - 1 / op.elements), on_cpu=False)
