"""Waits for the first batch of each epoch that are not a shuffle filling with costly elements."""

from __future__ import annotations

from dataclasses import dataclass

from pipediag.facts.graph_ops import calls_python, differs_by_pass
from pipediag.facts.later_epochs import later_starts_s, time_of_epochs
from pipediag.facts.limits import INPUT_BOUND, Threshold
from pipediag.facts.pipeline import call_name, operations, reshuffles, upstream
from pipediag.facts.run import starts_s, whole_in_words
from pipediag.rules.pipeline.all_epochs import run_through
from pipediag.rules.pipeline.cache_size import cache_bytes, fits_in_memory
from pipediag.rules.pipeline.files_at_once import files_at_once, read_in_turn
from pipediag.rules.pipeline.smaller_buffer import ENOUGH_MIXED, smaller_buffer, smaller_size
from pipediag.rules.rule import Meta
from pipediag.rules.run.relevance import AT_MOST, NOTABLE, THRESHOLDS, weigh
from pipediag.session.edits import Edit
from pipediag.session.findings import Finding
from pipediag.session.ledger import Run
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.tensorflow_names import READERS
from pipediag.vocabulary import EffectOnResults

LOADING = Threshold(
    "a generator's first batch beside the wait of a steady step",
    10.0,
    "times",
    "own choice: below it, where the steps wait as well, the advice only informs",
)
META = Meta(
    id="slow-epoch-start",
    name="Slow start of the epoch",
    title_failed="Each epoch waits for its pipeline to start anew",
    title_passed="Epochs start without a long wait",
    looks_at="How long all epochs but the first wait for their first batch, and what stands in the "
    "pipeline: a shuffle, a generator, files. The first wait is the pipeline's start, and stays.",
    why="With each epoch a new iterator starts: files are opened, a generator begins at its first "
    "line, buffers fill from nothing, and no step runs meanwhile.",
    edit="One pipeline through all epochs: `repeat()` at its end, before `prefetch`, and "
    "`steps_per_epoch` in `fit` (or a count of steps in your loop). Load what a generator needs "
    "once, outside of it. A smaller shuffle buffer fills sooner; several files are opened sooner "
    "at once than in turn. With `reshuffle_each_iteration=False` and a cache behind it, a buffer "
    "is filled once.",
    cost="With `repeat()` the end of the data is no longer the end of an epoch: its steps have to "
    "be "
    "counted. A smaller buffer shuffles less, and one order for all epochs not at all after the "
    "first.",
    bound=f"{AT_MOST} What only moves beside the steps is hidden by them as long as they last.",
    needs=("loop", "run"),
    thresholds=(*THRESHOLDS, INPUT_BOUND, LOADING),
    severity="warn",
    effect_on_results="same up to order or rounding",
    frees=("input_wait",),
    sees_class_only=True,
    untried="An epoch of one pipeline through all of them has to be run from end to end, several "
    "times, which is tried only where that is quick.",
    tried_when_informing=True,
    tried_where="A smaller buffer, files opened at once and one pipeline through all epochs are "
    "applied and measured where epochs are short and their steps known. Otherwise none.",
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


def check(session: Session) -> list[Finding]:
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
        META.finding(
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
        return META.finding("pass", "", part="epoch_start")
    reason = (
        f"Waiting for first batches is {percent:.0f} % of {whole_in_words(run)}, but no end of an "
        "epoch was seen, so whether later epochs wait as well is not known."
    )
    return META.finding("inconclusive", reason, part="epoch_start")


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
    through = run_through(session, META.id)
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
        edit=through or smaller_buffer(session, shuffle, META.id),
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
        edit=files_at_once(session, in_turn, META.id, whole_epoch=True) if in_turn else through,
    )
