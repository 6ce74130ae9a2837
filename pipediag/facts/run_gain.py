"""The gain of the whole run where only a part of it gets faster, by Amdahl's law."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import hypot, inf, sqrt
from typing import Literal

from pipediag.estimates import Value, with_interval
from pipediag.facts.pipeline import passes_by_repeats, passes_of_an_epoch, passes_over_data
from pipediag.facts.run import (
    LONGEST_START_MS,
    fills_a_shuffle,
    first_waits,
    pauses_of_run,
    rows_of_loop,
    time_of_epochs,
    traces_of_step,
)
from pipediag.session.edits import (
    CompileCall,
    Edit,
    Insert,
    SetModel,
    adds_cache,
    traces_otherwise,
)
from pipediag.session.findings import Finding
from pipediag.session.ledger import (
    AN_EPOCHS_END,
    BETWEEN_ROUNDS,
    FURTHER_ROUNDS,
    MAKING,
    Run,
    RunGain,
    RunPart,
)
from pipediag.session.model import Session
from pipediag.session.record import Interval
from pipediag.session.trials import Basis, Combined, Trial, TrialRun
from pipediag.tensorflow_names import CACHES
from pipediag.vocabulary import EVALUATING, RunPartName

ONCE_OFF = 0.1
"""Half of the interval of what came once, as a part of it. Own choice: on one small machine the
imports of one script took 2.0 to 2.3 s while nothing else ran, and up to 3.5 s."""

OF_EVALUATION = 0.5
"""Time to compile the evaluation of a model, as a part of that for its training step, with an
interval from none to twice of it: it is compiled for a last smaller batch, too. Own choice."""

_FEWEST_FREED = 8
"""Own choice: of fewer iterators, none tells how often one pauses."""

SHORTEST_S, LOWEST_SPEEDUP = 1e-9, 1e-6


@dataclass(frozen=True)
class Taken:
    """Seconds of a part of the run, with half of their 95 % interval."""

    seconds: float
    off_s: float

    def __add__(self, other: Taken) -> Taken:
        """Add parts that were measured apart, so that the halves add in squares."""
        return Taken(self.seconds + other.seconds, hypot(self.off_s, other.off_s))

    @property
    def value(self) -> Value:
        return self.seconds, (self.seconds - self.off_s, self.seconds + self.off_s)

    def share(self, part: float) -> Taken:
        return Taken(self.seconds * part, abs(self.off_s * part))


def _taken(run: Run, rows: Iterable[RunPart]) -> Taken:
    def off_s(row: RunPart) -> float:
        if row.ci95_percent is None:
            return ONCE_OFF * row.seconds
        low, high = row.ci95_percent
        return (high - low) / 2.0 * run.whole_s / 100.0

    rows = list(rows)
    return Taken(sum(row.seconds for row in rows), hypot(*map(off_s, rows)))


def gain_for_run(session: Session, finding: Finding) -> RunGain | None:
    """Return the gain of the run by a finding's advice: as measured, or else at most."""
    run, trial = session.run, finding.trial
    # What was measured on top of others is of a run that they have made shorter.
    if run is None or finding.about_results or trial.on_top_of:
        return None
    if trial.basis in ("traces", "pauses") and trial.speedup is not None:
        return _becoming(run, run.whole_s / trial.speedup, "measured").but(ci95=trial.ci95)
    if trial.speedup is not None:
        of_trial = _epochs if trial.basis == "epoch" else _shortened
        beside = _saved_beside(session, run, [finding], trial)
        once = _once(session, run, [finding], trial)
        return _measured(run, of_trial(session, run, finding), trial, once, beside)
    if finding.for_run is not None and finding.for_run.basis == "at most":
        return finding.for_run
    shortened_s = _shortened(session, run, finding).seconds
    if finding.speedup_at_most is None or not _is_in(run, shortened_s):
        return None
    left_s = shortened_s / max(finding.speedup_at_most, LOWEST_SPEEDUP)
    _, (_, most_s) = _saved_beside(session, run, [finding], trial)
    after_s = max(run.whole_s - shortened_s - most_s + left_s, SHORTEST_S)
    return _becoming(run, after_s, "at most")


def _is_in(run: Run, seconds: float) -> bool:
    """Return True if so much was seen, and is no more than the run but for rounding of sums."""
    return 0.0 < seconds <= run.whole_s * (1.0 + 1e-9)


def with_saved_traces(session: Session, steps: Trial) -> Trial | None:
    """Return the trial with the speed-up of the run by the traces that go; `steps` has the steps'.

    The traces, the steps, and the speed of the steps are off by independent amounts. None where
    the run's traces, or those that are left, are not known.
    """
    run, loop = session.run, session.diagnosed_loop()
    row = traces_of_step(session, loop) if loop is not None else None
    if run is None or run.scope != "run" or row is None or not row.count or not steps.traces:
        return None
    if steps.speedup is None or steps.ci95 is None:
        return None
    saved = _taken(run, [row]).share(max(0.0, 1.0 - steps.traces / row.count))
    whole_s = run.whole_s

    def speedup(saved_s: float, steps_s: float, speedup: float) -> float:
        return whole_s / max(whole_s - saved_s + _slower_s(steps_s, speedup), SHORTEST_S)

    of_run = with_interval(
        speedup, saved.value, _steps(session, run).value, (steps.speedup, steps.ci95)
    )
    why = f"{steps.traces} traces instead of {row.count} served all steps of the trial."
    return _of_the_run(steps, "traces", of_run, why)


def _slower_s(steps_s: float, speedup: float) -> float:
    """Return the seconds that these steps take longer with a trial's speed-up."""
    return steps_s * (1.0 / max(speedup, LOWEST_SPEEDUP) - 1.0)


def _of_the_run(steps: Trial, basis: Basis, of_run: Value, why: str) -> Trial:
    """Return the trial of steps with the speed-up of the run."""
    speedup, ci95 = of_run
    low, high = steps.ci95 or (0.0, 0.0)
    ran = f"{why} The steps ran at {steps.speedup:.2f}x [{low:.2f}, {high:.2f}] of their speed."
    caveats = [*steps.caveats, ran]
    return steps.but(speedup=round(speedup, 4), ci95=ci95, basis=basis, caveats=caveats)


def with_pauses_left_out(session: Session, steps: Trial, tried: TrialRun) -> Trial | None:
    """Return the trial with the speed-up of the run whose iterators are freed without a pause.

    How often one pauses, for how long, and the speed of the steps are off by independent amounts.
    None where too few iterators were freed in the trials to tell how often.
    """
    run, pauses = session.run, pauses_of_run(session)
    if run is None or pauses is None or steps.speedup is None or steps.ci95 is None:
        return None
    if tried.iterators_freed < _FEWEST_FREED:
        return None
    steps_s = _steps(session, run).seconds

    def speedup(often: float, pause_s: float, speedup: float) -> float:
        paused_s = pauses.epochs * often * pause_s
        without_s = pauses.rest_s + _slower_s(steps_s, speedup)
        return (pauses.rest_s + paused_s) / max(without_s, SHORTEST_S)

    often = tried.iterators_paused / tried.iterators_freed
    of_run = with_interval(
        speedup,
        (often, _of_a_share(often, tried.iterators_freed)),
        (pauses.mean_s, pauses.longest_s),
        (steps.speedup, steps.ci95),
    )
    how_often = (
        f"TensorFlow paused when it freed {tried.iterators_paused} of {tried.iterators_freed} "
        "iterators after blocks of the trials, and would pause for up to "
        f"{pauses.longest_s[1]:.1f} s after an epoch of {pauses.life_s:.1f} s."
    )
    return _of_the_run(steps, "pauses", of_run, how_often)


def _of_a_share(share: float, count: int) -> Interval:
    """Return Wilson's 95 % interval of a share (J. Am. Stat. Assoc. 22, 1927)."""
    z2 = 1.96**2
    middle = (share + z2 / (2.0 * count)) / (1.0 + z2 / count)
    spread = share * (1.0 - share) / count + z2 / (4.0 * count**2)
    off = 1.96 * sqrt(spread) / (1.0 + z2 / count)
    return middle - off, middle + off


def gain_at_most(run: Run | None, saved_s: float | None) -> RunGain | None:
    """Return the gain of the run where so many seconds of it are saved at most."""
    if run is None or saved_s is None or not 0.0 < saved_s < run.whole_s:
        return None
    return _becoming(run, run.whole_s - saved_s, "at most")


_ALWAYS: tuple[RunPartName, ...] = ("startup", "compile")


def limit_of_run(session: Session) -> RunGain | None:
    """Return the gain of the run if nothing but the model's own work took time.

    That is imports, compiling, and what the device computes in the training's steps, by the
    profile. None where these are not known, and where a change of the computation itself was
    measured to gain more.
    """
    run, shares = session.run, session.breakdown
    if run is None or not shares:
        return None
    computed = shares["device_compute"].percent / 100.0 if "device_compute" in shares else 0.0
    kept_s = sum(row.seconds for row in run.parts if row.part in _ALWAYS)
    kept_s += computed * _steps(session, run).seconds
    limit = gain_at_most(run, run.whole_s - max(SHORTEST_S, kept_s))
    gains = [one.for_run for one in session.findings]
    gains.append(session.combined.for_run if session.combined is not None else None)
    best = max((one.speedup for one in gains if one and one.basis == "measured"), default=1.0)
    return limit if limit is not None and limit.speedup >= best else None


def gain_of_all(session: Session, combined: Combined) -> RunGain | None:
    """Return the gain of the run by all confirmed changes together."""
    run = session.run
    if run is None or combined.speedup is None:
        return None
    of_combined = [one for one in session.findings if one.edit and one.edit.id in combined.findings]
    cache = next((one for one in of_combined if one.edit and fills_a_cache(one.edit)), None)
    whole_epochs = combined.basis == "epoch" or cache is not None
    shortened = _epochs(session, run, cache) if whole_epochs else _steps(session, run)
    beside = _saved_beside(session, run, of_combined, combined)
    once = _once(session, run, of_combined, combined)
    gain = _measured(run, shortened, combined, once, beside)
    epochs = epochs_of_gain(session, run, cache)
    if gain is None or cache is None or combined.filling_speedup is None or epochs is None:
        return gain
    # What the other edits save in the epochs that fill the cache.
    first_s = _steps(session, run).seconds / epochs

    def with_first(speedup: float, filling: float) -> float:
        after_s = run.whole_s / speedup - first_s * (1.0 - 1.0 / filling)
        return run.whole_s / max(after_s, SHORTEST_S)

    low, high = combined.filling_ci95 or (combined.filling_speedup,) * 2
    speedup = with_first(gain.speedup, combined.filling_speedup)
    ends = gain.ci95 and (with_first(gain.ci95[0], low), with_first(gain.ci95[1], high))
    return gain.but(speedup=speedup, after_s=run.whole_s / speedup, ci95=ends)


def _saved_beside(
    session: Session, run: Run, findings: Sequence[Finding], trial: Trial | Combined
) -> Value:
    """Return the seconds that these changes save beside what their trial has compared."""
    speedup = trial.speedup or 1.0
    evaluations, (_, most_s) = _saved_in_evaluations(session, run, findings, speedup)
    waits_s = 0.0 if trial.basis == "epoch" else _waits_to_fill(session, run, findings)
    saved_s = max(0.0, -_slower_s(waits_s, speedup))
    return evaluations + saved_s, (0.0, most_s + waits_s)


def _waits_to_fill(session: Session, run: Run, findings: Iterable[Finding]) -> float:
    """Return the seconds of waits for first batches while a shuffle fills with what the changed
    operations make, as fast as they make what the steps wait for.

    0 where a cache is filled: what comes behind it is in its own gain.
    """
    ops = {op.id: op for op in session.ops}
    edits = [(one.op_id, one.edit) for one in findings if one.edit and one.part == "steps"]
    changed = [ops[id] for id, edit in edits if id in ops and edit.loop_id is None]
    fill_ms = session.steps.fill_ms if session.steps is not None else None
    caches = any(fills_a_cache(edit) for _, edit in edits)
    fills = bool(changed) and all(fills_a_shuffle(session, op) for op in changed)
    if caches or not fills or fill_ms is None or fill_ms < LONGEST_START_MS:
        return 0.0
    return _taken(run, first_waits(session)).seconds


def _saved_in_evaluations(
    session: Session, run: Run, findings: Iterable[Finding], speedup: float
) -> Value:
    """Return the seconds of evaluations whose pipelines are made by the changed calls, too.

    In the middle, each of their steps saves as much of its wait for input as a training step does
    of its time; with an interval from nothing to all of that wait.
    """
    edits = [one.edit for one in findings if one.edit is not None and one.part == "steps"]
    changes = [change for edit in edits if edit.loop_id is None for change in edit.changes]
    changed = {getattr(one, name, None) for one in changes for name in ("op_id", "after")}
    calls = {(op.file, op.line, op.kind) for op in session.ops if op.id in changed and op.file}
    # An edit of an evaluation that the patch holds has a gain of its own.
    confirmed = [one for one in session.findings if one.trial.state == "confirmed"]
    own = {one.edit.loop_id for one in confirmed if one.edit and one.condition is None}
    rows = [one for one in run.parts if one.part == "evaluation"]
    step_ms = session.steps.mean_ms if session.steps is not None else 0.0
    saved_ms = max(0.0, -_slower_s(step_ms, speedup))
    middle_s = most_s = 0.0
    for loop in session.loops:
        seen, pipeline = loop.evaluation, loop.pipeline
        if loop.role not in EVALUATING or loop.id in own or pipeline is None or seen is None:
            continue
        made = {(op.file, op.line, op.kind) for op in pipeline.ops}
        if calls.isdisjoint(made) or seen.consumer_ms is None:
            continue
        taken_s = sum(one.seconds for one in rows if (one.file, one.line) == (loop.file, loop.line))
        wait_ms = max(0.0, seen.step_ms - seen.consumer_ms)
        most_s += taken_s * wait_ms / max(seen.step_ms, SHORTEST_S)
        middle_s += taken_s * min(wait_ms, saved_ms) / max(seen.step_ms, SHORTEST_S)
    return middle_s, (0.0, most_s)


def _once(
    session: Session, run: Run, findings: Iterable[Finding], trial: Trial | Combined
) -> Value | None:
    """Return the seconds that the changed step takes more to trace and compile in the whole run.

    Each call of a `fit` may build its own model. Where one call was seen, others may do so too.
    """
    if trial.once_s is None:
        return None
    once_s, (low_s, high_s) = trial.once_s, trial.once_ci95_s or (trial.once_s, trial.once_s)
    if _compiles_evaluations(run, findings) and high_s > 0.0:
        once_s, high_s = once_s + OF_EVALUATION * high_s, (1.0 + 2.0 * OF_EVALUATION) * high_s
    loop = session.diagnosed_loop()
    anew = any(one.edit is not None and traces_otherwise(one.edit.changes) for one in findings)
    if loop is None or loop.keras is None or not anew:
        return once_s, (low_s, high_s)
    known = loop.planned_rounds if FURTHER_ROUNDS not in run.not_seen else None
    traced = (
        row.count or 1
        for row in run.parts
        if row.part == "compile" and (row.file, row.line) == (loop.file, loop.line)
        if (row.what or "").startswith("the step of")
    )
    # A batch of another size is one more trace, and no other model.
    times = min(max(traced, default=1), known or inf)
    most = known if known and BETWEEN_ROUNDS in run.not_seen else times
    return times * once_s, (min(times * low_s, most * low_s), max(times * high_s, most * high_s))


def _compiles_evaluations(run: Run, findings: Iterable[Finding]) -> bool:
    """Return True if these changes have XLA compile what evaluates, too, which no trial does."""
    edits = (one.edit for one in findings if one.edit is not None)
    changes = (each for edit in edits for each in edit.changes if isinstance(each, SetModel))
    compiles = any(each.settings.get("jit_compile") for each in changes)
    return compiles and any(row.part == "evaluation" for row in run.parts)


def _measured(
    run: Run,
    shortened: Taken,
    trial: Trial | Combined,
    once: Value | None,
    beside: Value = (0.0, (0.0, 0.0)),
) -> RunGain | None:
    """Return the gain where a part gets as much faster as its trial says.

    `once` is what tracing takes more, `beside` what other parts save. The trial, the length of what
    it shortens, that of the rest, and these two are off by independent amounts, which add in
    squares.
    None where no such part was seen, and where too few rounds of it were for what comes once, while
    more may come.
    """
    if trial.speedup is None or not _is_in(run, shortened.seconds):
        return None
    # An epoch, or so many steps, have no part of what comes once.
    once_s, once_ci95_s = once if once and run.scope == "run" else (0.0, (0.0, 0.0))
    all_off_s = _taken(run, run.parts).off_s
    rest_s = run.whole_s - shortened.seconds
    rest_off_s = sqrt(max(0.0, all_off_s**2 - shortened.off_s**2))

    def after(part_s: float, rest_s: float, speedup: float, *more_s: float) -> float:
        once_s, saved_s = more_s
        left_s = max(0.0, rest_s - saved_s)
        return max(left_s + part_s / max(speedup, LOWEST_SPEEDUP) + once_s, SHORTEST_S)

    after_s = after(shortened.seconds, rest_s, trial.speedup, once_s, beside[0])
    gain = _becoming(run, after_s, "measured")
    if trial.speedup > 1.0 and gain.speedup <= 1.0 and FURTHER_ROUNDS in run.not_seen:
        return None

    def speedup(part_s: float, rest_s: float, speedup: float, *more_s: float) -> float:
        part_s, rest_s = max(0.0, part_s), max(0.0, rest_s)
        return (part_s + rest_s) / after(part_s, rest_s, speedup, *more_s)

    ci95 = None
    if trial.ci95 is not None:
        _, ci95 = with_interval(
            speedup,
            shortened.value,
            Taken(rest_s, rest_off_s).value,
            (trial.speedup, trial.ci95),
            (once_s, once_ci95_s),
            beside,
        )
    if once is not None:
        gain = gain.but(once_s=once[0], once_ci95_s=once[1])
    return gain.but(ci95=ci95)


def _becoming(run: Run, after_s: float, basis: Literal["measured", "at most"]) -> RunGain:
    return RunGain(
        speedup=run.whole_s / after_s,
        before_s=run.whole_s,
        after_s=after_s,
        basis=basis,
        scope=run.scope,
        ends_seen=AN_EPOCHS_END not in run.not_seen,
    )


def _shortened(session: Session, run: Run, finding: Finding) -> Taken:
    """Return the rows of the finding's part at its place, or all of them where none is there."""
    caches, edit = _cache_of(finding) is not None, finding.edit
    if finding.part == "steps":
        return _epochs(session, run, finding) if caches else _steps(session, run)
    rows = [row for row in run.parts if row.part == finding.part]
    changes = edit.changes if edit is not None else ()
    outside_loops = finding.part in ("epoch_end", "after_training")
    if outside_loops and any(isinstance(one, CompileCall) for one in changes):
        return _taken(run, rows)
    loop_id = edit.loop_id if edit is not None else None
    loop = next((one for one in session.loops if one.id == loop_id), finding)
    own = [row for row in rows if (row.file, row.line) == (loop.file, loop.line)]
    shortened = _taken(run, own or rows)
    if loop_id is not None and edit is not None and fills_a_cache(edit):
        # An evaluation that fills its own cache takes what it took.
        times = max((row.count or 0 for row in own), default=0)
        known = run.scope == "run" and not {BETWEEN_ROUNDS, FURTHER_ROUNDS} & {*run.not_seen}
        return shortened.share(1.0 - 1.0 / times) if times and known else shortened
    return _after_the_first(session, shortened, run, finding) if caches else shortened


def _after_the_first(
    session: Session, shortened: Taken, run: Run, finding: Finding | None
) -> Taken:
    """Leave the first epoch out, which fills a cache: it takes what it took. Of steps whose epochs
    were not seen to their end, those of all planned ones are meant."""
    epochs = epochs_of_gain(session, run, finding)
    return shortened if epochs is None else shortened.share(1.0 - 1.0 / epochs)


def epochs_of_gain(session: Session, run: Run, finding: Finding | None = None) -> float | None:
    """Return the number of epochs over which a cache's gain is taken, at least 1; of a cache that
    each `fit` fills anew, the epochs of one.

    None where only some steps were seen of an unknown number of epochs, or an unknown part of what
    is repeated without end: the gain is then that of steps behind the first epoch.
    """
    epochs = run.epochs if run.scope == "run" else passes_over_data(session)
    loop = session.diagnosed_loop()
    if loop is not None and FURTHER_ROUNDS in run.not_seen:
        # The ledger plans the epochs of the last round alone, and has the steps of all.
        epochs = max(epochs or 1.0, loop.epoch_ends + 1.0)
    keras, edit = session.keras, finding.edit if finding is not None else None
    if keras is not None and edit is not None and edit.each_round:
        epochs = keras.epochs
    if run.scope != "run":
        return None if epochs is None else max(1.0, epochs)
    epochs, own_steps = epochs or 1.0, None
    if keras is None:
        counts = [row.count or 0 for row in rows_of_loop(session, "steps")]
        own_steps = max(counts, default=0) / epochs or None
    # Behind an endless `repeat`, an epoch ends where it is told to.
    passes = passes_of_an_epoch(session, own_steps)
    if passes is None and keras is None and passes_over_data(session) == inf:
        return None
    if passes is None:
        # As often as the repeats behind the edit's cache say.
        changes = edit.changes if edit is not None else ()
        ops = (session.operation(one.after) for one in changes if adds_cache(one))
        by_repeats = (passes_by_repeats(session, op, own_steps) for op in ops if op is not None)
        passes = max(by_repeats, default=1.0)
    return max(1.0, epochs * passes)


def _cache_of(finding: Finding | None) -> Edit | None:
    """Return the edit that adds a cache which the loop's first epoch fills, if it is one."""
    edit = finding.edit if finding is not None else None
    return edit if edit is not None and edit.loop_id is None and fills_a_cache(edit) else None


def fills_a_cache(edit: Edit) -> bool:
    """Return True if the first epoch fills a cache that the edit adds."""
    return any(isinstance(one, Insert) and one.kind in CACHES for one in edit.changes)


def _steps(session: Session, run: Run) -> Taken:
    """Return the loop's steps, all that a trial of steps says gets faster.

    An edit of a generator changes the waits for first batches too. Where these matter, whole epochs
    are compared: blocks of steps start too seldom to tell, and from smaller shuffle buffers.
    """
    return _taken(run, rows_of_loop(session, "steps"))


def _epochs(session: Session, run: Run, finding: Finding | None) -> Taken:
    """Return the loop's steps with the waits for first batches but the very first.

    The making of its iterators is in no trial. It gets shorter only after a cache, which runs
    nothing of what is before it: 5.3 and 0.3 ms an epoch, where its steps took 31 and 3 ms.
    """
    steps, waits = _steps(session, run), _taken(run, first_waits(session))
    time = time_of_epochs(session)
    later_s = time.first_batches_s if time is not None else 0.0
    later = waits.share(later_s / waits.seconds if later_s else 0.0)
    if (cache := _cache_of(finding)) is None:
        return steps + later
    making = (row for row in rows_of_loop(session, "epoch_start") if row.what == MAKING)
    filling = steps + _taken(run, making)
    if cache.each_round:
        return _after_the_first(session, filling + later, run, finding)
    return _after_the_first(session, filling, run, finding) + later
