"""A batch too small for the fixed cost of a step."""

from __future__ import annotations

from pipediag.facts.bounds import bound
from pipediag.facts.callbacks import callbacks_percent
from pipediag.facts.limits import INPUT_BOUND, Threshold
from pipediag.facts.pipeline import operations, place_name
from pipediag.facts.step import CALL_CLASSES, FREED_BY_FEWER_CALLS, class_percent
from pipediag.rules.relevance import input_first
from pipediag.rules.rule import Meta, Place
from pipediag.rules.step import own_python
from pipediag.rules.step.host_overhead import OWN_PYTHON_FIRST
from pipediag.session.edits import Edit, SetParameters
from pipediag.session.findings import Finding
from pipediag.session.loops import Loop
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.session.trials import WORTHWHILE
from pipediag.tensorflow_names import BATCHING

FIXED_COST = Threshold(
    "dispatch and Python",
    30.0,
    "% of the step",
    "own choice, twice XProf's 15 % for high host overhead: below it the rule only informs",
)
BATCH = Threshold(
    "batch size",
    256.0,
    "examples a replica",
    "own measurements on a small embedding model: 32 to 128 gave 2.7 times the examples per "
    "second, 32 to 512 five times. From it on the rule only informs",
)
META = Meta(
    id="small-batch",
    name="Small batch",
    title_failed="Dispatch and Python take much of each step, and its batch is small",
    title_informative="A larger batch may give more examples a second",
    title_passed="Dispatch and Python take little of the step",
    looks_at="The part of the step that does not grow with the batch (dispatch and Python), and "
    "the batch size; of several replicas, what each of them gets of it.",
    why="That part is paid once a step, however many examples it trains. A strategy divides the "
    "batch of the pipeline among its replicas, each of which pays it.",
    edit="A batch four times as large.",
    cost="Fewer updates an epoch: learning rate and number of epochs must be tuned again, and "
    "accuracy may suffer. More memory.",
    bound="Four times the examples per second: a step of the larger batch takes at least as long.",
    needs=("loop", "steps", "breakdown"),
    thresholds=(FIXED_COST, BATCH, INPUT_BOUND),
    severity="warn",
    effect_on_results="changes a hyper-parameter",
    frees=FREED_BY_FEWER_CALLS,
    tried_when_informing=True,
)

FACTOR = 4


def check(session: Session) -> list[Finding]:
    """One finding on the diagnosed loop."""
    loop, steps = session.diagnosed_loop(), session.steps
    assert loop is not None
    assert steps is not None
    size = steps.batch_size or loop.batch_size
    percent = class_percent(session, CALL_CLASSES) - callbacks_percent(session)
    evidence = {
        "batch_size": size,
        "replicas": loop.replicas,
        "fixed_cost_percent": percent,
        "step_ms": steps.mean_ms,
    }
    if size is None:
        return [META.finding("inconclusive", "The batch size is not known.", evidence=evidence)]
    batch = next(iter(reversed(operations(session, *BATCHING))), None)
    place: Place = (batch.file, batch.line) if batch else (loop.file, loop.line)
    edit = _edit(batch) if batch else None
    likely = size / loop.replicas < BATCH.value and percent >= FIXED_COST.value
    if not likely and (edit is None or not _could_gain(percent)):
        return [META.finding("pass", "", place=place, evidence=evidence)]
    advice = (
        f"Try a batch of {FACTOR * size} in place of {size}, and tune the learning rate again: "
        f"dispatch and Python take {percent:.0f} % of the step, and hardly grow with the "
        f"batch.{_divided(loop, size)}"
    )
    own = OWN_PYTHON_FIRST if own_python.takes_the_steps(session) else None
    waits = input_first(session) or own
    return [
        META.finding(
            "fail" if likely and waits is None else "informative",
            waits or advice,
            op=batch,
            place=place,
            evidence=evidence,
            speedup_at_most=FACTOR,
            edit=edit,
            untried="Keras or your own code makes the batches, where a trial can't change them.",
        )
    ]


def _could_gain(fixed_percent: float) -> bool:
    """Return True if a trial could confirm what a larger batch saves of the fixed cost."""
    return (bound(100.0, fixed_percent, calls=FACTOR) or 1.0) >= WORTHWHILE


def _divided(loop: Loop, size: int) -> str:
    if loop.replicas == 1:
        return ""
    return f" Each of {loop.replicas} replicas gets {size / loop.replicas:g} examples of it."


def _edit(batch: Operation) -> Edit | None:
    size = batch.parameters.get("batch_size")
    if not isinstance(size, int):
        return None
    return Edit(
        id=f"{META.id}:{batch.id}",
        label=f"batches of {FACTOR * size} in place of {size} from the {place_name(batch)}",
        changes=(SetParameters(batch.id, {"batch_size": FACTOR * size}),),
        caveat="It counts examples per second; how well the model learns from larger batches is "
        "not measured.",
    )
