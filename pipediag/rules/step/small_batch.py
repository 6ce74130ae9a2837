"""A batch too small for the fixed cost of a step."""

from __future__ import annotations

from pipediag.facts.bounds import bound
from pipediag.facts.callbacks import callbacks_percent
from pipediag.facts.limits import INPUT_BOUND, Threshold
from pipediag.facts.pipeline import operations, place_name
from pipediag.facts.step import CALL_CLASSES, class_ms, class_percent
from pipediag.rules.relevance import input_first
from pipediag.rules.rule import Meta, Place
from pipediag.session.edits import Edit, SetParameters
from pipediag.session.findings import Finding
from pipediag.session.loops import Loop
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.tensorflow_names import BATCHING

FIXED_COST = Threshold(
    "dispatch and Python",
    30.0,
    "% of the step",
    "own choice, twice XProf's 15 % for high host overhead: below it a larger batch gains little",
)
BATCH = Threshold(
    "batch size",
    256.0,
    "examples a replica",
    "own measurements on a small embedding model: 32 to 128 gave 2.7 times the examples per "
    "second, 32 to 512 five times",
)
META = Meta(
    id="small-batch",
    name="Small batch",
    title_failed="Dispatch and Python take much of each step, and its batch is small",
    title_passed="Dispatch and Python take little of the step, or its batch is large",
    looks_at="The part of the step that does not grow with the batch (dispatch and Python), and "
    "the batch size; of several replicas, what each of them gets of it.",
    why="That part is paid once a step, however many examples it trains. A strategy divides the "
    "batch of the pipeline among its replicas, each of which pays it.",
    edit="A batch four times as large.",
    cost="Fewer updates an epoch: learning rate and number of epochs must be tuned again, and "
    "accuracy may suffer. More memory.",
    bound="Examples per second with four times the batch, if all of the step but its input takes "
    "as long as before.",
    needs=("loop", "steps", "breakdown"),
    thresholds=(FIXED_COST, BATCH, INPUT_BOUND),
    severity="warn",
    effect_on_results="changes a hyper-parameter",
    frees=CALL_CLASSES,
    yields_to=("own-python",),
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
    if size / loop.replicas >= BATCH.value or percent < FIXED_COST.value:
        return [META.finding("pass", "", place=place, evidence=evidence)]
    if waits := input_first(session):
        return [META.finding("informative", waits, op=batch, place=place, evidence=evidence)]
    return [
        META.finding(
            "fail",
            f"Try a batch of {FACTOR * size} in place of {size}, and tune the learning rate again: "
            f"dispatch and Python take {percent:.0f} % of the step, and hardly grow with the "
            f"batch.{_divided(loop, size)}",
            op=batch,
            place=place,
            evidence=evidence,
            speedup_at_most=_at_most(session, steps.mean_ms),
            edit=_edit(batch) if batch else None,
            untried="Keras or your own code makes the batches, where a trial can't change them.",
        )
    ]


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
        once=True,
    )


def _at_most(session: Session, step_ms: float) -> float | None:
    """Where nothing beside the input takes longer for a larger batch."""
    rest_ms = step_ms - class_ms(session, ["input_wait"])
    return bound(step_ms, rest_ms, calls=FACTOR)
