"""Waits for the first batch of each epoch that are not a shuffle filling with costly elements."""

from __future__ import annotations

from dataclasses import dataclass

from pipediag.facts.limits import INPUT_BOUND, Threshold
from pipediag.facts.pipeline import (
    call_name,
    calls_python,
    differs_by_pass,
    last_before_prefetch,
    operations,
    place_name,
    reshuffles,
    upstream,
)
from pipediag.facts.run import later_starts_s, starts_s, time_of_epochs, whole_in_words
from pipediag.rules.caching import cache_bytes, fits_in_memory
from pipediag.rules.reading import files_at_once, read_in_turn
from pipediag.rules.rule import Meta
from pipediag.rules.run_parts import NOTABLE, THRESHOLDS, weigh
from pipediag.rules.shuffling import ENOUGH_MIXED, smaller_buffer, smaller_size
from pipediag.session.edits import Edit, Insert
from pipediag.session.findings import Finding
from pipediag.session.ledger import Run
from pipediag.session.loops import Loop
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.tensorflow_names import READERS
from pipediag.vocabulary import EffectOnResults

LONGEST_EPOCH_S = 4.0
"""Of steps, to be tried: each block of it is an epoch from end to end, and a trial has several. Own
choice, for a budget of a minute."""


def run_through(session: Session, rule: str) -> Edit | None:
    """A `repeat` at the end, before a prefetch; None where there is one, or an epoch is long.

    None too where nothing says how many steps an epoch has: with a few too many, the pipeline as
    written would come to an end within its block as well.
    """
    loop, run, last = session.diagnosed_loop(), session.run, last_before_prefetch(session)
    if loop is None or run is None or last is None or operations(session, "repeat"):
        return None
    if loop.planned_steps is None and not (loop.keras and loop.keras.steps_per_epoch):
        return None
    epoch_s = _epoch_s(loop, run)
    if epoch_s is None or epoch_s > LONGEST_EPOCH_S:
        return None
    return Edit(
        id=f"{rule}:repeat:{last.id}",
        label=f"one pipeline through all epochs, by a repeat behind the {place_name(last)}",
        changes=(Insert(last.id, "repeat"),),
        caveat="Measured from the second step of an epoch to the second of the next.",
        whole_epoch=True,
        runs_through=True,
    )


def _epoch_s(loop: Loop, run: Run) -> float | None:
    """What the steps of an epoch take."""
    steps_s = sum(row.seconds for row in run.parts if (row.part, row.loop_id) == ("steps", loop.id))
    if run.scope == "epoch":
        return steps_s
    epochs = run.epochs
    return steps_s / epochs if run.scope == "run" and epochs and epochs >= 1.0 else None


LOADING = Threshold(
    "a generator's first batch beside the wait of a steady step",
    10.0,
    "times",
    "own choice: below it, where the steps wait as well, the advice only informs",
)
SLOW_EPOCH_START = Meta(
    id="epoch-start",
    name="Slow start of the epoch",
    title_failed="Each epoch waits for its pipeline to start anew",
    title_passed="Epochs start without a long wait",
    why="With each epoch a new iterator starts: files are opened, a generator begins at its first "
    "line, buffers fill from nothing, and no step runs meanwhile.",
    edit="One pipeline through all epochs: `repeat()` at its end, before `prefetch`, and "
    "`steps_per_epoch` in `fit` (or a count of steps in your loop). Load what a generator needs "
    "once, outside of it.",
    cost="With `repeat()` the end of the data is no longer the end of an epoch: its steps have to "
    "be "
    "counted. A smaller buffer shuffles less, and one order for all epochs not at all after the "
    "first.",
    needs=("loop", "run"),
    thresholds=(*THRESHOLDS, INPUT_BOUND, LOADING),
    severity="warn",
    effect_on_results="same up to order or rounding",
    frees=("input_wait",),
    sees_class_only=True,
    untried="An epoch of one pipeline through all of them has to be run from end to end, several "
    "times, which is tried only where that is quick.",
    tried_when_informing=True,
)


_LOADS = "What the generator loads has to leave its function, which is for you to write."


@dataclass(frozen=True)
class _Cure:
    advice: str
    hides: bool
    """Whether the work stays, and only runs beside what else there is in an epoch."""
    edit: Edit | None = None
    effect: EffectOnResults | None = None
    """Of the edit, where that is not the rule's."""
    condition: str | None = None
    """What only the user can decide before the edit is used."""
    untried: str | None = None
    """Why there is no edit, where the rule's own reason is not it."""


def check_slow_epoch_start(session: Session) -> list[Finding]:
    """One finding on the diagnosed loop."""
    run, loop = session.run, session.diagnosed_loop()
    assert run is not None
    assert loop is not None
    place = (loop.file, loop.line)
    rows = [row for row in run.parts if row.part == "epoch_start" and row.loop_id == loop.id]
    later_s, time = later_starts_s(session), time_of_epochs(session)
    if later_s is None:
        return [_unseen(session, run)]
    cure = _cure(session)
    saved_s = later_s if cure is None or not cure.hides else min(later_s, _beside_s(session, run))
    weight = weigh(run, rows, saved_s)
    status, sentence = weight.status, weight.sentence
    if status == "fail" and cure is None:
        status, sentence = (
            "informative",
            "The wait is that of a pipeline that the script did not write.",
        )
    elif status == "fail" and _steps_wait(session) and not _loads_first(session):
        status = "informative"
        sentence = (
            "The steps wait for input as well: a faster pipeline may shorten both, so do that "
            "first."
        )
    advice = "" if status == "pass" else f"{sentence} {cure.advice if cure else ''}".strip()
    return [
        SLOW_EPOCH_START.finding(
            status,
            advice,
            place=place,
            evidence={
                **weight.evidence,
                "first_batch_ms": time.first_batch_ms if time is not None else None,
                "times": sum(row.count or 0 for row in rows) or None,
            },
            effect=cure.effect if cure else None,
            condition=cure.condition if cure else None,
            edit=cure.edit if cure else None,
            untried=cure.untried if cure else None,
            part="epoch_start",
            for_run=weight.for_run,
            speedup_at_most=weight.speedup_at_most,
        )
    ]


def _unseen(session: Session, run: Run) -> Finding:
    percent = 100.0 * starts_s(session) / run.whole_s if run.whole_s > 0 else 0.0
    if percent < NOTABLE.value:
        return SLOW_EPOCH_START.finding("pass", "", part="epoch_start")
    reason = (
        f"Waiting for first batches is {percent:.0f} % of {whole_in_words(run)}, but no end of an "
        "epoch was seen, so whether later epochs wait as well is not known."
    )
    return SLOW_EPOCH_START.finding("inconclusive", reason, part="epoch_start")


def _beside_s(session: Session, run: Run) -> float:
    """What else an epoch's work could run beside: the loop's steps and what follows them."""
    loop = session.diagnosed_loop()
    parts = ("steps", "evaluation", "epoch_end")
    return sum(
        row.seconds
        for row in run.parts
        if row.part in parts and loop is not None and row.loop_id == loop.id
    )


def _steps_wait(session: Session) -> bool:
    share = (session.breakdown or {}).get("input_wait")
    return share is not None and share.ci95_percent[0] >= INPUT_BOUND.value


def _loads_first(session: Session) -> bool:
    """Whether a generator does far more before its first batch than for a later one: what it loads
    there is no step's to wait for once it is loaded."""
    time, share = time_of_epochs(session), (session.breakdown or {}).get("input_wait")
    if time is None or time.first_batch_ms is None or share is None:
        return False
    generates = any(op.kind == "from_generator" for op in operations(session))
    return generates and time.first_batch_ms >= LOADING.value * share.ms


def _cure(session: Session) -> _Cure | None:
    """By what the pipeline is made of; None where the script wrote none of it."""
    written = operations(session)
    if not written:
        return None
    through = run_through(session, SLOW_EPOCH_START.id)
    generators = [op for op in written if op.kind == "from_generator"]
    shuffles = [op for op in written if op.kind == "shuffle"]
    repeated = (
        "Let one pipeline run through all epochs: `.repeat()` before its `prefetch`, and "
        "`steps_per_epoch` in `fit`, or a count of steps in your own loop."
    )
    if generators:
        # One pipeline through all epochs would begin it anew just as well.
        return _Cure(
            f"{call_name(generators[0])} starts its generator anew in each epoch: load what it "
            "needs once, outside of the function.",
            hides=False,
            untried=_LOADS,
        )
    if shuffles:
        return _smaller_buffer(session, shuffles[0], repeated, through)
    readers = [op for op in written if op.kind in READERS]
    if readers:
        return _files_at_once(session, readers, repeated, through)
    return _Cure(repeated, hides=True, edit=through)


def _smaller_buffer(
    session: Session, shuffle: Operation, repeated: str, through: Edit | None
) -> _Cure:
    """One pipeline through all epochs goes first, as it mixes as before."""
    size = smaller_size(session, shuffle)
    smaller = "a smaller one" if size is None else f"one of {size}"
    return _Cure(
        f"{call_name(shuffle)} fills its buffer anew in each epoch: {smaller} fills sooner. "
        f"{repeated}{_one_order(session, shuffle)}",
        hides=False,
        edit=through or smaller_buffer(session, shuffle, SLOW_EPOCH_START.id),
        effect="changes a hyper-parameter" if size is not None and through is None else None,
        condition=ENOUGH_MIXED if size is not None and through is None else None,
    )


def _one_order(session: Session, shuffle: Operation) -> str:
    """A cache behind the shuffle, which then has one order, as a sentence; nothing where it would
    keep what differs from epoch to epoch, or would be too large."""
    above, size = upstream(session, shuffle), cache_bytes(session, shuffle)
    if not reshuffles(shuffle) or any(map(differs_by_pass, above)):
        return ""
    if any(op.kind in ("from_generator", "repeat") or calls_python(op) for op in above):
        return ""
    if size is not None and not fits_in_memory(session, size):
        return ""
    fitting = ", if its elements fit in memory" if size is None else ""
    return (
        " Where one order will do for all epochs, `reshuffle_each_iteration=False` and a "
        f"`.cache()` behind it fill it only once{fitting}."
    )


def _files_at_once(
    session: Session, readers: list[Operation], repeated: str, through: Edit | None
) -> _Cure:
    in_turn = next((op for op in readers if read_in_turn(session, op)), None)
    return _Cure(
        "The files are opened anew in each epoch: several at once "
        "(`interleave(..., num_parallel_calls=tf.data.AUTOTUNE)`), or a `cache()` if they fit "
        f"in memory. {repeated}",
        hides=True,
        edit=files_at_once(session, in_turn, SLOW_EPOCH_START.id, whole_epoch=True)
        if in_turn
        else through,
    )
