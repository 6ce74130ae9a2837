"""The promise of a patch: what its measured changes gain in the run together, with an interval."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pipediag.estimates import with_interval
from pipediag.facts.run import SHORTEST_EPOCH_S, longest_pause_s, pauses_of_run, seen_pauses_s
from pipediag.facts.run_gain import LOWEST_SPEEDUP, SHORTEST_S, epochs_of_gain
from pipediag.session.edits import Change, ExtractStep, saves_pauses, timed_call
from pipediag.session.findings import Finding
from pipediag.session.ledger import EVALUATIONS, Run, RunGain
from pipediag.session.model import Session
from pipediag.session.trials import Combined
from pipediag.vocabulary import EVALUATING, RunPartName

_ONCE: tuple[RunPartName, ...] = (
    "startup",
    "before_training",
    "compile",
    "between_loops",
    "after_training",
)


def promised(session: Session) -> RunGain | None:
    """Return the session's gain for the run with all that is in its patch, or None.

    Where the patch holds less than what was tried together, only a single edit was measured so.
    What another part of the run gains by an edit of its own adds to that.
    """
    together, of_loop = session.combined, ("steps", None, None)
    written = _written(session)
    edits = set(written)
    gains: dict[object, RunGain | None] = {}
    faster, pauses = 1.0, None
    if together is not None and together.for_run and set(together.findings) <= edits:
        gains[of_loop] = _while_filling(session, together, together.for_run)
        faster = together.speedup or 1.0
        edits -= set(together.findings)
    left = [one for id, one in written.items() if id in edits and not _adds_to_another(one)]
    for one in sorted(left, key=lambda one: one.trial.basis == "pauses"):
        if one.trial.basis == "pauses" and one.for_run is not None and faster > 1.0:
            pauses = one.for_run
            continue
        # The gain of any other change has nothing in common with that of the loop's.
        own = one.part == "evaluation" or timed_call(one.edit) is not None
        place = (one.part, one.file, one.line) if own else of_loop
        if place in gains and one.part != "evaluation":
            return None
        # Of two gains of one evaluation the greater: that they add up was not measured.
        both = [gain for gain in (gains.get(place), one.for_run) if gain is not None]
        gains[place] = max(both, key=lambda gain: gain.speedup, default=None)
        if place is of_loop or _is_timed_in_steps(one):
            faster *= one.trial.speedup or 1.0
    found = [gain for gain in gains.values() if gain is not None]
    if len(found) < len(gains) or not found:
        return None
    every = found if pauses is None else [*found, pauses]
    if len(every) > 1 and any(one.basis != "measured" for one in every):
        return None
    whole = found[0] if len(found) == 1 else gain_of_separate(found)
    # Waits for first batches are no part of a step that was timed apart from its input.
    of_input = [one for one in written.values() if timed_call(one.edit) is None]
    step_waits = any(one.part != "epoch_start" for one in of_input)
    if whole and step_waits and of_loop in gains and any(_is_timed_in_steps(one) for one in left):
        whole = _with_waits_of_faster_steps(whole, found)
    saved = pauses is None and any(saves_pauses(one.edit) for one in written.values())
    if whole is None or saved:
        return whole
    # A pause is the shorter, the less its iterator has lived.
    return gain_of_both(whole, pauses) if pauses else _with_unsure_pauses(session, whole, faster)


def _written(session: Session) -> dict[str, Finding]:
    """Return the findings in the patch by their edits' ids. Of several with the same changes, which
    have one trial and one gain, it is the one that was tried together with others."""
    edits = session.patch.edits if session.patch is not None else []
    first = session.combined.findings if session.combined is not None else []
    found: dict[str, Finding] = {}
    known: list[tuple[Change, ...]] = []
    held = [(f.edit, f) for f in session.findings if f.edit and f.edit.id in edits]
    for edit, finding in sorted(held, key=lambda each: each[0].id not in first):
        if edit.changes not in known:
            known.append(edit.changes)
            found[edit.id] = finding
    return found


def _adds_to_another(finding: Finding) -> bool:
    """Return True if it was tried on top of another change of an evaluation, whose gain is had."""
    return finding.part == "evaluation" and bool(finding.trial.on_top_of)


def _is_timed_in_steps(finding: Finding) -> bool:
    timed = timed_call(finding.edit)
    return isinstance(timed, ExtractStep) or (timed is not None and finding.part == "steps")


def _with_waits_of_faster_steps(whole: RunGain, parts: Sequence[RunGain]) -> RunGain:
    """Return the gain with an interval for steps that get faster and may wait for input instead.

    Where the input keeps pace with them, both gains are had; where it doesn't, more than the better
    of the two is not sure.
    """
    if whole.ci95 is None:
        return whole
    surest = max(one.ci95[0] for one in parts if one.ci95)
    return whole.but(ci95=(min(whole.ci95[0], surest), whole.ci95[1]))


def gain_of_both(gain: RunGain, other: RunGain) -> RunGain:
    """Return the gain where `other` is one of the run that `gain` makes."""
    return _together((gain, other), lambda one, other: one * other)


def _together(gains: Sequence[RunGain], speedup_of: Callable[..., float]) -> RunGain:
    """Return the first gain with what all of them make of its run, by their speed-ups."""
    values = [(one.speedup, one.ci95 or (one.speedup, one.speedup)) for one in gains]
    speedup, ci95 = with_interval(speedup_of, *values)
    return gains[0].but(
        speedup=speedup,
        after_s=gains[0].before_s / speedup,
        ci95=ci95 if all(one.ci95 for one in gains) else None,
    )


def _with_unsure_pauses(session: Session, gain: RunGain, faster: float) -> RunGain:
    """Return the gain with the interval that it has as TensorFlow pauses about half of the time
    that it frees an epoch's iterator, in the run as it is and with the change.

    The ledger has the pauses that came; next time, others may. `faster` is the speed-up of the
    steps.
    """
    run, pauses = session.run, pauses_of_run(session)
    seen_s = seen_pauses_s(run) if run is not None else 0.0
    if gain.ci95 is None or not (seen_s or pauses):
        return gain
    before_s = after_s = 0.0
    if pauses is not None:
        shorter_s = pauses.life_s / max(faster, 1.0)
        longest_s = longest_pause_s(shorter_s)[1] if shorter_s >= SHORTEST_EPOCH_S else 0.0
        before_s = max(0.0, pauses.epochs * pauses.longest_s[1] - seen_s)
        after_s = max(0.0, pauses.epochs * longest_s - seen_s)

    def speedup(of_run: float, before_s: float, after_s: float, seen_s: float) -> float:
        left_s = max(gain.before_s / of_run + after_s - seen_s, SHORTEST_S)
        return max(gain.before_s + before_s - seen_s, SHORTEST_S) / left_s

    more = [(0.0, (0.0, most_s)) for most_s in (before_s, after_s, seen_s)]
    return gain.but(ci95=with_interval(speedup, (gain.speedup, gain.ci95), *more)[1])


def _while_filling(session: Session, combined: Combined, gain: RunGain) -> RunGain:
    """Return the gain of so many steps with the interval that it has while they fill a cache, where
    it is not known how many of the run's steps do so."""
    counted = session.run is None or epochs_of_gain(session, session.run) is not None
    if counted or combined.filling_speedup is None or gain.ci95 is None:
        return gain
    least = min((combined.filling_speedup, *(combined.filling_ci95 or ()), gain.ci95[0]))
    return gain.but(ci95=(least, gain.ci95[1]))


def gain_of_separate(gains: Sequence[RunGain]) -> RunGain | None:
    """Return the gain by measured changes of parts of the run that have nothing in common.

    None where nothing of the run would be left: such parts do have something in common.
    """

    def left(speedups: Iterable[float]) -> float:
        return 1.0 - sum(1.0 - 1.0 / max(one, LOWEST_SPEEDUP) for one in speedups)

    def together(*speedups: float) -> float:
        return 1.0 / max(left(speedups), SHORTEST_S)

    if left(one.speedup for one in gains) <= 0.0:
        return None
    once_s = sum(one.once_s or 0.0 for one in gains) or None
    return _together(gains, together).but(once_s=once_s, once_ci95_s=None)


def gain_of_whole(gain: RunGain | None, session: Session, whole_s: float) -> RunGain | None:
    """Return the gain of all that the script takes, where the ledger covers an epoch or some steps.

    What was seen to come once takes what it took, and all the rest gets as much faster as the gain
    says, but for evaluations that were seen in trials alone. What the change takes once more is
    added. None where what comes once took longer than all of the script does. `whole_s` is what the
    script takes without pipediag, in seconds.
    """
    run = session.run
    if gain is None or run is None or gain.scope == "run":
        return gain
    once_s = sum(span.duration_ms for span in run.spans if span.part in _ONCE) / 1000.0
    if once_s >= whole_s:
        return None
    evaluates = _share_of_unseen_evaluations(session, run)

    def after_s(speedup: float, more_s: float, evaluates: float = evaluates) -> float:
        rest_s = (whole_s - once_s) * (evaluates + (1.0 - evaluates) / speedup)
        return max(once_s + rest_s + more_s, SHORTEST_S)

    more_s = gain.once_s or 0.0
    least_s, most_s = gain.once_ci95_s or (more_s, more_s)
    after = after_s(gain.speedup, more_s)
    ends = gain.ci95 and (
        whole_s / after_s(gain.ci95[0], most_s),
        whole_s / after_s(gain.ci95[1], least_s, 0.0),
    )
    return gain.but(
        speedup=whole_s / after, ci95=ends, before_s=whole_s, after_s=after, scope="run"
    )


def _share_of_unseen_evaluations(session: Session, run: Run) -> float:
    """Return the most that evaluations which the ledger lacks take of the training's time: at least
    so many steps as were made, also in trials, lay between them."""
    loop, steps = session.diagnosed_loop(), session.steps
    if EVALUATIONS not in run.not_seen or loop is None or steps is None:
        return 0.0
    tried = sum(one.batches for one in session.trials.blocks) if session.trials is not None else 0
    places = {(one.file, one.line) for one in run.parts if one.part == "evaluation"}
    evaluating_s = 0.0
    for one in session.loops:
        seen = one.evaluation
        if one.role in EVALUATING and seen is not None and (one.file, one.line) not in places:
            evaluating_s += seen.step_ms * one.steps / 1e3
    step_s = (loop.steps + tried) * steps.mean_ms / 1e3
    return evaluating_s / max(evaluating_s + step_s, SHORTEST_S)
