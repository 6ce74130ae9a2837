"""Waits for the first batch of each epoch that are not a shuffle filling with costly elements."""

from __future__ import annotations

from dataclasses import dataclass

from pipediag.facts.limits import INPUT_BOUND, Threshold
from pipediag.facts.pipeline import (
    call_name,
    last_before_prefetch,
    operations,
    place_name,
)
from pipediag.facts.run import (
    later_starts_s,
    rows_of_loop,
    starts_s,
    time_of_epochs,
    whole_in_words,
)
from pipediag.rules.reading import files_at_once, read_in_turn
from pipediag.rules.relevance import NOTABLE, THRESHOLDS, weigh_rows
from pipediag.rules.rule import Meta
from pipediag.rules.shuffling import ENOUGH_MIXED, smaller_buffer, smaller_size
from pipediag.session.edits import Edit, Insert
from pipediag.session.findings import Finding
from pipediag.session.ledger import Run
from pipediag.session.model import Session
from pipediag.tensorflow_names import READERS
from pipediag.vocabulary import EffectOnResults, RunPartName

LONGEST_EPOCH_S = 4.0
"""Steps of an epoch that is tried, in seconds: each block is an epoch from end to end, and a trial
has several. Own choice, for a budget of a minute."""
LOADING = Threshold(
    "a generator's first batch over a steady wait", 10.0, "times", "own choice: below, it informs"
)
SLOW_EPOCH_START = Meta(
    id="epoch-start",
    name="Slow start of the epoch",
    title_failed="Start the pipeline once for all epochs",
    title_passed="Epochs start without a long wait",
    why="With each epoch files are opened anew, a generator begins at its first line, buffers fill "
    "from nothing, and no step runs meanwhile.",
    edit="One pipeline through all epochs: `repeat()` at its end, before `prefetch`, and "
    "`steps_per_epoch` in `fit`. Load what a generator needs once, outside of it.",
    cost="With `repeat()` the steps of an epoch must be counted. A smaller buffer shuffles less.",
    needs=("loop", "run"),
    thresholds=(*THRESHOLDS, INPUT_BOUND, LOADING),
    effect_on_results="same up to order or rounding",
    frees=("input_wait",),
    sees_class_only=True,
    untried="Whole epochs have to be run from end to end, which is tried only where that is quick.",
    tried_when_informing=True,
)


@dataclass(frozen=True)
class _Cure:
    """What ends or shortens the waits."""

    advice: str
    hides: bool
    """True where the work stays, and only runs beside what else there is in an epoch."""
    edit: Edit | None = None
    effect: EffectOnResults | None = None
    """The edit's, where that is not the rule's."""
    condition: str | None = None
    """What only the user can decide before the edit is used."""
    untried: str | None = None
    """Why there is no edit, where the rule's own reason is not it."""


def check_slow_epoch_start(session: Session) -> list[Finding]:
    """Return a finding on the diagnosed loop."""
    run, loop = session.run, session.diagnosed_loop()
    assert run is not None
    assert loop is not None
    later_s, time = later_starts_s(session), time_of_epochs(session)
    if later_s is None:
        return [_unseen(session, run)]
    cure = _cure(session) or _Cure("", hides=False)
    rows = rows_of_loop(session, "epoch_start")
    saved_s = min(later_s, _beside_s(session)) if cure.hides else later_s
    weight = weigh_rows(run, rows, saved_s)
    status, sentence = weight.status, weight.sentence
    steps_wait = _steps_wait(session) and not _loads_first(session)
    if status == "fail" and (not cure.advice or steps_wait):
        status, sentence = (
            "informative",
            "The steps wait for input as well: a faster pipeline may shorten both, so do that "
            "first."
            if cure.advice
            else "The wait is that of a pipeline that the script did not write.",
        )
    return [
        SLOW_EPOCH_START.finding(
            status,
            "" if status == "pass" else f"{sentence} {cure.advice}".strip(),
            place=(loop.file, loop.line),
            evidence={
                **weight.evidence,
                "first_batch_ms": time.first_batch_ms if time is not None else None,
                "times": sum(row.count or 0 for row in rows) or None,
            },
            effect=cure.effect,
            condition=cure.condition,
            edit=cure.edit,
            untried=cure.untried,
            part="epoch_start",
            for_run=weight.for_run,
            speedup_at_most=weight.speedup_at_most,
        )
    ]


def _unseen(session: Session, run: Run) -> Finding:
    percent = 100.0 * starts_s(session) / run.whole_s if run.whole_s > 0 else 0.0
    if percent < NOTABLE.value:
        return SLOW_EPOCH_START.finding("pass", part="epoch_start")
    reason = (
        f"Waiting for first batches is {percent:.0f} % of {whole_in_words(run)}, but no end of an "
        "epoch was seen, so whether later epochs wait as well is not known."
    )
    return SLOW_EPOCH_START.finding("inconclusive", reason, part="epoch_start")


_BESIDE: tuple[RunPartName, ...] = ("steps", "evaluation", "epoch_end")


def _beside_s(session: Session) -> float:
    """Return what else an epoch's work could run beside: the steps and what follows them."""
    return sum(row.seconds for part in _BESIDE for row in rows_of_loop(session, part))


def _steps_wait(session: Session) -> bool:
    share = (session.breakdown or {}).get("input_wait")
    return share is not None and share.ci95_percent[0] >= INPUT_BOUND.value


def _loads_first(session: Session) -> bool:
    """Return True if a generator does far more before its first batch than for a later one.

    What it loads there is no step's to wait for once it is loaded.
    """
    time, share = time_of_epochs(session), (session.breakdown or {}).get("input_wait")
    if time is None or time.first_batch_ms is None or share is None:
        return False
    generates = any(op.kind == "from_generator" for op in operations(session))
    return generates and time.first_batch_ms >= LOADING.value * share.ms


def _cure(session: Session) -> _Cure | None:
    """Return the cure by what the pipeline is made of; None where the script wrote none of it."""
    written = operations(session)
    if not written:
        return None
    through = run_through(session, SLOW_EPOCH_START.id)
    repeated = (
        "Let one pipeline run through all epochs: `.repeat()` before its `prefetch`, and "
        "`steps_per_epoch` in `fit`, or a count of steps in your own loop."
    )
    if generators := operations(session, "from_generator"):
        # One pipeline through all epochs would begin it anew just as well.
        return _Cure(
            f"{call_name(generators[0])} starts its generator anew in each epoch: load what it "
            "needs once, outside of the function.",
            hides=False,
            untried="What the generator loads has to leave its function.",
        )
    if shuffles := operations(session, "shuffle"):
        # One pipeline through all epochs goes before a smaller buffer, as it mixes as before.
        size = smaller_size(session, shuffles[0])
        smaller = "a smaller one" if size is None else f"one of {size}"
        mixes_less = size is not None and through is None
        return _Cure(
            f"{call_name(shuffles[0])} fills its buffer anew in each epoch: {smaller} fills "
            f"sooner. {repeated}",
            hides=False,
            edit=through or smaller_buffer(session, shuffles[0], SLOW_EPOCH_START.id),
            effect="changes a hyper-parameter" if mixes_less else None,
            condition=ENOUGH_MIXED if mixes_less else None,
        )
    readers = operations(session, *READERS)
    if not readers:
        return _Cure(repeated, hides=True, edit=through)
    in_turn = next((op for op in readers if read_in_turn(session, op)), None)
    at_once = in_turn and files_at_once(session, in_turn, SLOW_EPOCH_START.id, whole_epoch=True)
    return _Cure(
        "The files are opened anew in each epoch: several at once "
        "(`interleave(..., num_parallel_calls=tf.data.AUTOTUNE)`), or a `cache()` if they fit "
        f"in memory. {repeated}",
        hides=True,
        edit=at_once or through,
    )


def run_through(session: Session, rule: str) -> Edit | None:
    """Return a `repeat` at the end, before a prefetch; None where an epoch is long or repeats.

    None too where nothing says how many steps an epoch has: with a few too many, the pipeline as
    written would come to an end within its block as well.
    """
    loop, run, last = session.diagnosed_loop(), session.run, last_before_prefetch(session)
    if loop is None or run is None or last is None or operations(session, "repeat"):
        return None
    if loop.planned_steps is None and not (loop.keras and loop.keras.steps_per_epoch):
        return None
    epoch_s = sum(row.seconds for row in rows_of_loop(session, "steps"))
    if run.scope != "epoch":
        if run.scope != "run" or not run.epochs or run.epochs < 1.0:
            return None
        epoch_s /= run.epochs
    if epoch_s > LONGEST_EPOCH_S:
        return None
    return Edit(
        id=f"{rule}:repeat:{last.id}",
        label=f"one pipeline through all epochs, by a repeat behind the {place_name(last)}",
        changes=(Insert(last.id, "repeat"),),
        caveat="Measured from the second step of an epoch to the second of the next.",
        whole_epoch=True,
        runs_through=True,
    )
