"""The gain of the whole run where only a part of it gets faster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import hypot, sqrt
from typing import Literal

from pipediag.facts.run import later_starts_s, rows_of_loop
from pipediag.session.edits import Edit, Insert, MoveLayers
from pipediag.session.findings import Finding
from pipediag.session.ledger import FURTHER_ROUNDS, MAKING, PAUSE, Run, RunGain, RunPart
from pipediag.session.model import Session
from pipediag.session.record import Interval
from pipediag.session.trials import Combined, Trial
from pipediag.tensorflow_names import CACHES
from pipediag.vocabulary import RunPartName

Basis = Literal["measured", "at most"]

ONCE_OFF = 0.1
"""Of what came once, how far it may be from what it takes in another run. Own choice: on one small
machine the imports of one script took 2.0 to 2.3 s while nothing ran beside it, and up to 3.5 s."""


@dataclass(frozen=True)
class Taken:
    """Seconds of a part of the run, with half of their 95 % interval."""

    seconds: float
    off_s: float
    """Half of its 95 % interval."""

    def __add__(self, other: Taken) -> Taken:
        """Both; they were measured apart, so that what they are off by adds in squares."""
        return Taken(self.seconds + other.seconds, hypot(self.off_s, other.off_s))

    def share(self, part: float) -> Taken:
        return Taken(self.seconds * part, abs(self.off_s * part))


def _taken(run: Run, rows: Iterable[RunPart]) -> Taken:
    rows = list(rows)
    return Taken(sum(row.seconds for row in rows), hypot(*(_off_s(run, row) for row in rows)))


def _off_s(run: Run, row: RunPart) -> float:
    if row.ci95_percent is None:
        return ONCE_OFF * row.seconds
    low, high = row.ci95_percent
    return (high - low) / 2.0 * run.whole_s / 100.0


def gain_for_run(session: Session, finding: Finding) -> RunGain | None:
    """Return the gain of the run by its advice: as measured, or else at most."""
    run, trial = session.run, finding.trial
    if run is None or finding.about_results:
        return None
    if trial.speedup is not None:
        tried = _kept(_tried(session, run, finding), run, finding.edit)
        gain = _measured(run, tried, trial) if 0.0 < tried.seconds <= run.whole_s else None
        return gain if gain is None or _is_told(run, gain, trial) else None
    shortened = _kept(_shortened(session, run, finding), run, finding.edit).seconds
    if finding.for_run is not None and finding.for_run.basis == "at most":
        return finding.for_run
    speedup = finding.speedup_at_most
    if speedup is None or not 0.0 < shortened <= run.whole_s:
        return None
    return _gain(run, shortened, speedup, "at most")


def _is_told(run: Run, gain: RunGain, trial: Trial | Combined) -> bool:
    """Return False if the rounds seen are too few for what comes once, and more may come."""
    of_once = (trial.speedup or 0.0) > 1.0 and gain.speedup <= 1.0
    return not (of_once and FURTHER_ROUNDS in run.not_seen)


def gain_at_most(run: Run | None, saved_s: float | None) -> RunGain | None:
    """Return what the run gains where so many seconds of it are saved at most."""
    return None if run is None or saved_s is None else _saving(run, saved_s, "at most")


def gain_of_all(session: Session, combined: Combined) -> RunGain | None:
    """Return the gain of the run by all confirmed changes together."""
    run = session.run
    if run is None or combined.speedup is None:
        return None
    edits = [one.edit for one in session.findings if one.edit and one.edit.id in combined.findings]
    cache = next(filter(fills_a_cache, edits), None)
    whole_epochs = combined.basis == "epoch"
    shortened = _epochs(session, run, cache) if whole_epochs else _steps(session, run)
    shortened = _kept(shortened, run, cache)
    if shortened.seconds <= 0.0:
        return None
    gain = _measured(run, shortened, combined)
    if cache is not None:
        gain = _with_faster_filling(gain, run, _steps(session, run).seconds, combined)
    return gain if _is_told(run, gain, combined) else None


def _with_faster_filling(gain: RunGain, run: Run, steps_s: float, combined: Combined) -> RunGain:
    """Count what the other edits save in the first epoch, which fills the cache."""
    if combined.filling_speedup is None or run.scope != "run":
        return gain
    first_s = steps_s / max(1.0, run.epochs or 1.0)

    def with_it(speedup: float, filling: float) -> float:
        after_s = run.whole_s / speedup - first_s * (1.0 - 1.0 / filling)
        return run.whole_s / max(after_s, 1e-9)

    low, high = combined.filling_ci95 or (combined.filling_speedup,) * 2
    speedup = with_it(gain.speedup, combined.filling_speedup)
    ends = gain.ci95 and (with_it(gain.ci95[0], low), with_it(gain.ci95[1], high))
    return gain.model_copy(
        update={"speedup": speedup, "after_s": run.whole_s / speedup, "ci95": ends}
    )


def gain_without(run: Run, rows: Iterable[RunPart]) -> RunGain | None:
    """Return the bound if these rows took no time; None where nothing would remain."""
    left_out = _taken(run, rows)
    gain = _saving(run, left_out.seconds, "measured")
    if gain is None:
        return None
    rest = _rest(run, left_out)

    def of(part_off_s: float, rest_off_s: float) -> float:
        rest_s = max(rest.seconds + rest_off_s, 1e-9)
        return gain.speedup - (rest_s + max(0.0, left_out.seconds + part_off_s)) / rest_s

    part_off = [of(off_s, 0.0) for off_s in (-left_out.off_s, left_out.off_s)]
    rest_off = [of(0.0, off_s) for off_s in (-rest.off_s, rest.off_s)]
    return gain.model_copy(update={"ci95": _limits(gain.speedup, part_off, rest_off)})


def _measured(run: Run, shortened: Taken, trial: Trial | Combined) -> RunGain:
    """Amdahl's law: the rest of the run takes what it took, and what the change traces otherwise
    comes once.

    The trial, the length of what it shortens, that of the rest and what comes once are off by
    independent amounts, which add in squares.
    """
    assert trial.speedup is not None
    # An epoch, or so many steps, have no part of it.
    once_s = (trial.once_s or 0.0) if run.scope == "run" else 0.0
    once_ci95_s = (trial.once_ci95_s if run.scope == "run" else None) or (once_s, once_s)
    rest = _rest(run, shortened)

    def after(part_s: float, rest_s: float, speedup: float, once_s: float) -> float:
        return max(rest_s + part_s / max(speedup, 1e-6) + once_s, 1e-9)

    after_s = after(shortened.seconds, rest.seconds, trial.speedup, once_s)
    gain = _becoming(run, after_s, "measured").model_copy(
        update={"once_s": trial.once_s, "once_ci95_s": trial.once_ci95_s}
    )
    if trial.ci95 is None:
        return gain

    def of(part_off_s: float, rest_off_s: float, speedup: float, once_s: float = once_s) -> float:
        part_s = max(0.0, shortened.seconds + part_off_s)
        rest_s = max(0.0, rest.seconds + rest_off_s)
        return gain.speedup - (rest_s + part_s) / after(part_s, rest_s, speedup, once_s)

    limits = _limits(
        gain.speedup,
        [of(0.0, 0.0, limit) for limit in trial.ci95],
        [of(off_s, 0.0, trial.speedup) for off_s in (-shortened.off_s, shortened.off_s)],
        [of(0.0, off_s, trial.speedup) for off_s in (-rest.off_s, rest.off_s)],
        [of(0.0, 0.0, trial.speedup, limit) for limit in once_ci95_s],
    )
    return gain.model_copy(update={"ci95": limits})


def _limits(speedup: float, *off: Sequence[float]) -> Interval:
    below = hypot(*(max(0.0, *one) for one in off))
    above = hypot(*(min(0.0, *one) for one in off))
    return speedup - below, speedup + above


def _rest(run: Run, shortened: Taken) -> Taken:
    """All of the run beside what is shortened; what that is off by is no part of it."""
    off_s = _taken(run, run.parts).off_s
    return Taken(run.whole_s - shortened.seconds, sqrt(max(0.0, off_s**2 - shortened.off_s**2)))


def _gain(run: Run, shortened_s: float, speedup: float, basis: Basis) -> RunGain:
    return _becoming(run, run.whole_s - shortened_s + shortened_s / max(speedup, 1e-6), basis)


def _saving(run: Run, saved_s: float, basis: Basis) -> RunGain | None:
    return _becoming(run, run.whole_s - saved_s, basis) if 0.0 < saved_s < run.whole_s else None


def _becoming(run: Run, after_s: float, basis: Basis) -> RunGain:
    return RunGain.model_validate(
        {
            "speedup": run.whole_s / after_s,
            "before_s": run.whole_s,
            "after_s": after_s,
            "basis": basis,
            "scope": run.scope,
        }
    )


def _tried(session: Session, run: Run, finding: Finding) -> Taken:
    if finding.trial.basis == "epoch":
        return _epochs(session, run, finding.edit)
    return _shortened(session, run, finding)


def _shortened(session: Session, run: Run, finding: Finding) -> Taken:
    if finding.part == "steps":
        return _steps(session, run)
    rows = [row for row in run.parts if row.part == finding.part]
    place = _place_of(session, finding)
    own = [row for row in rows if (row.file, row.line) == place]
    return _taken(run, own or rows)


def _kept(shortened: Taken, run: Run, edit: Edit | None) -> Taken:
    """Leave the first epoch out where that fills a cache: it takes what it took."""
    if edit is None or edit.loop_id is not None or not fills_a_cache(edit):
        return shortened
    epochs = (run.epochs or 1.0) if run.scope == "run" else None
    return shortened if epochs is None else shortened.share(1.0 - 1.0 / max(1.0, epochs))


def fills_a_cache(edit: Edit) -> bool:
    """Return True if the first epoch fills a cache that the edit adds."""
    return any(
        (isinstance(one, Insert) and one.kind in CACHES)
        or (isinstance(one, MoveLayers) and one.kept is not None)
        for one in edit.changes
    )


def _place_of(session: Session, finding: Finding) -> tuple[str | None, int | None]:
    loop_id = finding.edit.loop_id if finding.edit is not None else None
    loop = next((one for one in session.loops if one.id == loop_id), None)
    return (finding.file, finding.line) if loop is None else (loop.file, loop.line)


def _steps(session: Session, run: Run) -> Taken:
    return _taken(run, rows_of_loop(session, "steps"))


def _epochs(session: Session, run: Run, edit: Edit | None) -> Taken:
    """Of the same loop, with the waits for first batches; not its very first, in which the pipeline
    starts up.

    The making of its iterators is in no trial. It gets shorter behind a cache, which makes nothing
    of what is in front of it: 5.3 and 0.3 ms an epoch, where its steps took 31 and 3 ms. Other
    changes leave it as it is.
    """
    rows = rows_of_loop(session, "epoch_start")
    cached = edit is not None and fills_a_cache(edit)
    made = _taken(run, (row for row in rows if cached and row.what == MAKING))
    waits = _taken(run, (row for row in rows if row.what not in (MAKING, PAUSE)))
    later_s = later_starts_s(session) or 0.0
    later = waits.share(later_s / waits.seconds if later_s else 0.0)
    return _steps(session, run) + made + later


_ONCE: tuple[RunPartName, ...] = (
    "startup",
    "before_training",
    "compile",
    "between_loops",
    "after_training",
)


def gain_of_whole(gain: RunGain | None, run: Run | None, whole_s: float) -> RunGain | None:
    """The same gain, of all that the script takes from start to exit; as it is where it is of that.

    What was seen to come once takes what it took, and all the rest gets as much faster as the gain
    says (Amdahl's law). What the change takes once more is added.

    Args:
        gain: of `run`.
        run: the ledger, which may not know how long the script would train.
        whole_s: what the script takes without pipediag, in seconds.

    Returns:
        None where there is none, or what comes once took longer than all of the script does.
    """
    if gain is None or run is None or gain.scope == "run":
        return gain
    once_s = sum(span.duration_ms for span in run.spans if span.part in _ONCE) / 1000.0
    if once_s >= whole_s:
        return None

    more_s = gain.once_s or 0.0
    least_s, most_s = gain.once_ci95_s or (more_s, more_s)

    def after_s(speedup: float, more_s: float) -> float:
        return max(once_s + (whole_s - once_s) / speedup + more_s, 1e-9)

    after = after_s(gain.speedup, more_s)
    ends = gain.ci95 and (
        whole_s / after_s(gain.ci95[0], most_s),
        whole_s / after_s(gain.ci95[1], least_s),
    )
    return gain.model_copy(
        update={
            "speedup": whole_s / after,
            "ci95": ends,
            "before_s": whole_s,
            "after_s": after,
            "scope": "run",
        }
    )
