"""The run and its steps in words: parts, gains and upper bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipediag.facts.names import RUN_PART, STEP_CLASS, in_sentence, length
from pipediag.facts.run import LoopTime, loop_time
from pipediag.facts.step import most_of_free_input
from pipediag.reporters.words.quantities import (
    NO_BREAK,
    counted,
    percent,
    seconds,
    speedup,
    speedup_interval,
)
from pipediag.session.ledger import (
    AFTERWARDS,
    AN_EPOCHS_END,
    BETWEEN_ROUNDS,
    COMES_ONCE,
    FURTHER_ROUNDS,
    MAY_END_SOONER,
    Run,
    RunGain,
    RunPart,
)
from pipediag.session.model import Session
from pipediag.vocabulary import RUN_PARTS, PartBasis, RunPartName, RunScope

RUN_PART_MEANING: dict[RunPartName, str] = {
    "startup": "the interpreter, and what the script imports",
    "before_training": "the script's own code until its first step: reading data, building",
    "compile": "tracing and compiling functions, without the step that runs in the same call",
    "epoch_start": "from an epoch's first request for a batch until it is there",
    "steps": "training steps; the next section divides one",
    "evaluation": "validation, `evaluate`, `predict`, loops that train nothing",
    "epoch_end": "callbacks and other code from one epoch's last step to the next one's first",
    "between_loops": "the script's own code between two trainings",
    "after_training": "what the script does after its last step",
}

_MOST_ROWS = 5
_LEAST_PERCENT = 1.0
"""Places shown of one part beside its largest: so many, and of the run so much."""
_ONCE_SHOWN_S = 0.05
"""Less is nothing beside seconds with one decimal."""
_SHORT = {
    AN_EPOCHS_END: "the ends of epochs (validation, callbacks)",
    AFTERWARDS: "what follows this training",
    FURTHER_ROUNDS: "further rounds of a loop around this training",
}
"""Short words for the parts of a run that were not seen."""
SCOPES: dict[RunScope, str] = {"run": "the run", "epoch": "an epoch", "1000_steps": "1,000 steps"}


@dataclass(frozen=True)
class Part:
    """One part of the run, and the places in it that take most."""

    name: RunPartName
    seconds: float
    percent: float
    basis: PartBasis
    """`projected` where any of it is."""
    rows: tuple[RunPart, ...]
    """Rows of the part, where they say more than the part's name."""


def parts_of(rows: Sequence[RunPart]) -> list[Part]:
    """Return the parts that take any time, in the order in which a run comes to them."""
    found = ((name, [row for row in rows if row.part == name]) for name in RUN_PARTS)
    return [_part(name, of_part) for name, of_part in found if of_part]


def _part(name: RunPartName, rows: list[RunPart]) -> Part:
    shown = [row for row in rows if row.what is not None or row.line is not None]
    shown.sort(key=lambda row: -row.seconds)
    smaller = [row for row in shown[1:_MOST_ROWS] if row.percent >= _LEAST_PERCENT]
    return Part(
        name=name,
        seconds=sum(row.seconds for row in rows),
        percent=sum(row.percent for row in rows),
        basis="projected" if any(row.basis == "projected" for row in rows) else "measured",
        rows=(*shown[:1], *smaller),
    )


def row_title(row: RunPart) -> str:
    """Return what a place is called, with how often it came."""
    what = row.what or ("the loop" if row.loop_id and row.line else "the rest")
    often = f", {row.count:,} times" if row.count is not None and row.count > 1 else ""
    return f"{what}{often}"


def whole(run: Run) -> str:
    """Return how long the run is, or what the ledger speaks of: `33.9 s, 8 epochs`."""
    if run.scope != "run":
        return f"{SCOPES[run.scope]}, {seconds(run.whole_s)}"
    epochs = _epochs(run)
    epochs += " as given by --epochs" if run.epochs_given else ""
    if run.projected_total_s is None:
        return f"{seconds(run.total_s)}{epochs}"
    not_seen = {*run.not_seen}
    least = "at least " if not_seen & {AN_EPOCHS_END, FURTHER_ROUNDS, BETWEEN_ROUNDS} else ""
    seen = f"{seconds(run.total_s)} measured, the rest projected"
    if AN_EPOCHS_END in not_seen:
        seen += "; no epoch's end was seen"
    if MAY_END_SOONER in not_seen:
        least, seen = "", f"{seen}; EarlyStopping may end it sooner"
    return f"{least}{seconds(run.projected_total_s)}{epochs} ({seen})"


def title(run: Run) -> str:
    """Return `The run: 33.9 s, 8 epochs`, or `An epoch, 2.10 s`."""
    text = whole(run)
    return f"The run: {text}" if run.scope == "run" else f"{text[:1].upper()}{text[1:]}"


def _epochs(run: Run) -> str:
    # Only where the loop itself, or `fit`, says how many there are to be.
    if not run.epochs or not run.epochs_planned:
        return ""
    # The last epoch of a run that did not come to its end may not have ended either.
    begun = " begun" if run.projected_total_s is None and run.projected_missing else ""
    return f", {counted(round(run.epochs), 'epoch')}{begun}"


def unseen(run: Run) -> str | None:
    """Return `Not seen: what the script does after this training.`; None for nothing."""
    parts = [_SHORT.get(what, what) for what in run.not_seen if what != COMES_ONCE]
    return f"Not seen: {'; '.join(parts)}." if parts else None


def remarks(run: Run) -> list[str]:
    """Return what to know of the ledger, as sentences."""
    found = [run.projected_missing] if run.projected_missing else []
    if COMES_ONCE in run.not_seen:
        found.append("Not included: what happens once, such as start-up.")
    if run.seen:
        total = seconds(run.total_s)
        found.append(f"All of the run that was seen, {total}: {in_one_line(run.seen)}.")
    if run.pipediag_s >= 0.1:
        found.append(f"pipediag's own time, {seconds(run.pipediag_s)}, is not included.")
    return found


def in_one_line(rows: Sequence[RunPart], most: int | None = None, least: float = 1.0) -> str:
    """Return `evaluation 28 %, steps 19 %, ...`, the largest part first."""
    parts = sorted(parts_of(rows), key=lambda part: -part.seconds)
    named = [
        f"{RUN_PART[part.name].lower()}{NO_BREAK}{percent(part.percent)}"
        for part in parts[:most]
        if part.percent >= least
    ]
    return ", ".join(named)


def gain(found: RunGain | None) -> str | None:
    """Return `1.50x for the run (24.6 s to 16.2 s)`; None where that is not known."""
    if found is None:
        return None
    bounds = f" {speedup_interval(found.ci95)}" if found.ci95 else ""
    basis = "" if found.basis == "measured" else f"{found.basis} "
    return f"{basis}{speedup(found.speedup)}{bounds} {of_what(found)}"


def of_what(found: RunGain) -> str:
    """Return `for the run (24.6 s to 16.2 s)`, with what else to know of the two times."""
    times = [f"{seconds(found.before_s)} to {seconds(found.after_s)}"]
    # The time of a whole run holds it.
    once_s = found.once_s or 0.0
    if found.scope != "run" and abs(once_s) >= _ONCE_SHOWN_S:
        amount = f"{seconds(abs(once_s))} {'more' if once_s > 0 else 'less'}"
        times.append(f"and {amount} once, to trace and compile")
    if not found.ends_seen:
        times.append("without the ends of epochs")
    return f"for {SCOPES[found.scope]} ({', '.join(times)})"


def free_input(session: Session) -> str | None:
    """Return `at most 3.1x; then device compute is the limit`; None where no bound is known."""
    most = most_of_free_input(session)
    if most is None:
        return None
    behind = session.ceiling.next_bottleneck if session.ceiling is not None else None
    then = f"; then {in_sentence(STEP_CLASS[behind])} is the limit" if behind else ""
    time = loop_time(session)
    waits = ", with its waits for first batches" if time and time.first_batches_s else ""
    return f"at most {speedup(most)}{f' for the loop{waits}' if time else ''}{then}"


def time_of_loop(session: Session) -> str | None:
    """Return where the loop's time goes, as one sentence; None where that is not known."""
    time = loop_time(session)
    if time is None:
        return None
    steps = percent(100.0 * time.steps_s / time.total_s)
    rest = _elsewhere(time)
    return (
        f"The loop takes {length(time.total_s)} from its first step on: {steps} in steps"
        f"{'; ' + rest if rest else ''}."
    )


def _elsewhere(time: LoopTime) -> str:
    """Return where the loop's time went apart from its steps, the largest part first."""
    parts = {
        "waiting for the first batch of each epoch": time.first_batches_s,
        "between epochs (validation, callbacks and other work)": time.between_s,
        "in slower steps and work that no measured step contained": time.slower_s,
    }
    shares = {what: 100.0 * part / time.total_s for what, part in parts.items()}
    named = sorted((what for what in shares if shares[what] >= 1.0), key=lambda what: -shares[what])
    return ", ".join(f"{shares[what]:.0f} % is {what}" for what in named)
