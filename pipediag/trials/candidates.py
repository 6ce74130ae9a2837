"""Edits that are tried, in which order, and how several become one variant."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean

from pipediag.estimates import FEWEST_ROUNDS, estimate
from pipediag.facts.limits import INPUT_BOUND
from pipediag.facts.order import known_gain
from pipediag.facts.run import (
    FIRST_BATCHES,
    faster_loop,
    faster_part,
    faster_steps,
    making_ms,
    part_of_calls,
    pauses_of_run,
    time_of_epochs,
)
from pipediag.session.edits import (
    Change,
    Check,
    CompileCall,
    Edit,
    ExtractStep,
    SetParameters,
    changes_together,
    saves_pauses,
    timed_call,
    touched,
)
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.record import Interval
from pipediag.session.recorded_loops import TimedPairs
from pipediag.session.trials import Trial
from pipediag.trials import Variant
from pipediag.vocabulary import ON_TOP

RETUNE = "Changes a hyper-parameter: retune it yourself."


@dataclass(frozen=True)
class Candidate:
    """An edit that may be tried, with what its finding says of it."""

    edit: Edit
    changes_hyper_parameter: bool
    safe: bool
    fails: bool = True
    """False where its finding only informs."""
    condition: str | None = None
    """A condition that only the user can decide before it is used."""
    at_most: float = 1.0
    """Upper bound on the gain of the run or its part, or the expected one; 1 if not known."""
    same_as: tuple[str, ...] = ()
    """Ids of other findings' edits that make the same changes."""
    problem: tuple[str, str] | None = None
    """Rule and operation of its finding: what else they advise solves the same in another way."""

    @property
    def variant(self) -> Variant:
        return Variant(self.edit.id, self.edit.changes, self.edit.check)

    @property
    def left_out_of_combination(self) -> str | None:
        """Return why it needs the user's decision before it is combined with others, or None."""
        if self.changes_hyper_parameter:
            return RETUNE
        if self.condition is not None:
            return f"Only {self.condition}: that is for you to decide."
        return None

    @property
    def changes_model(self) -> bool:
        return "model" in touched(self.edit.changes)


def candidates(findings: Iterable[Finding]) -> list[Candidate]:
    """Return the edits of findings that fail or inform, each once, in the order of the findings,
    but one that only informs goes before one that could gain less."""
    found: dict[str, Candidate] = {}
    for finding in _by_bounds(findings):
        edit = finding.edit
        if edit is None or finding.status not in ("fail", "informative"):
            continue
        if is_of_prediction(finding) or edit.id in found:
            continue
        first = next((one for one in found.values() if one.edit.changes == edit.changes), None)
        if first is not None:
            found[first.edit.id] = replace(first, same_as=(*first.same_as, edit.id))
            continue
        found[edit.id] = Candidate(
            edit=edit,
            changes_hyper_parameter=finding.effect_on_results == "changes a hyper-parameter",
            safe=finding.effect_on_results != "not safe here",
            fails=finding.status == "fail",
            condition=finding.condition,
            at_most=_at_most(finding),
            problem=(finding.rule, finding.op_id) if finding.op_id is not None else None,
        )
    return list(found.values())


def _by_bounds(findings: Iterable[Finding]) -> list[Finding]:
    ordered: list[Finding] = []
    for finding in findings:
        bound = _bound(finding) or 0.0
        less = (place for place, other in enumerate(ordered) if _at_most(other) < bound)
        ordered.insert(next(less, len(ordered)), finding)
    return ordered


def _bound(finding: Finding) -> float | None:
    """Return the possible or expected gain of a finding that only informs; None if not known."""
    bounds = map(finding.evidence.get, ("at_most_if_the_same_ratio", "gain_if_half_of_them_pause"))
    return next((one for one in bounds if isinstance(one, float)), None)


def _at_most(finding: Finding) -> float:
    return _bound(finding) or known_gain(finding) or 1.0


def together(chosen: list[Candidate]) -> Variant:
    """Return one variant with the changes of several edits, in the order given."""
    return Variant(
        ON_TOP.join(one.edit.id for one in chosen),
        changes_together([one.edit for one in chosen]),
        chosen[0].edit.check if len(chosen) == 1 else _check_for(chosen),
    )


def _check_for(chosen: list[Candidate]) -> Check | None:
    # Elements are the same as before only as far as every edit that touches them promises it.
    promised = {one.edit.check for one in chosen if "elements" in touched(one.edit.changes)}
    promised.discard("repeats")  # each was checked by itself
    if not promised or None in promised:
        return None
    return "shape" if "shape" in promised else "equal"


def is_of_prediction(finding: Finding) -> bool:
    """Return True if its edit is tried at calls of `predict`, and not in the training loop."""
    return timed_call(finding.edit) is not None


def with_prediction_trial(session: Session, finding: Finding) -> Finding:
    """Return the finding with its trial, if pairs of calls were timed in the running script."""
    change = timed_call(finding.edit)
    if isinstance(change, ExtractStep):
        return _with_timed_step(session, finding)
    if change is None:
        return finding
    called = (change.model, change.method) if isinstance(change, CompileCall) else (None, None)
    place = (change.file, change.line, *called)
    timed = (one for one in session.predictions if one.is_timed)
    found = next((o for o in timed if (o.file, o.line, o.model, o.method) == place), None)
    if found is None:
        return finding
    loop = next((one for one in session.loops if one.id == found.loop_id), None)
    if loop is None and finding.part == "steps":
        loop = session.diagnosed_loop()

    def faster(left: float) -> float:
        if session.run is not None and finding.part == part_of_calls(found):
            return faster_part(session.run, found, left)
        return faster_loop(session, loop, found, left) if loop else 1.0 / max(left, 1e-3)

    objects = max(float(found.objects), _epochs(session) if found.made_again else 1.0)
    return _with_pairs(finding, found, faster, once_s=objects * found.traced_ms / 1e3 or None)


def _epochs(session: Session) -> float:
    run = session.run
    return max(1.0, (run.epochs if run is not None else None) or 1.0)


def _with_timed_step(session: Session, finding: Finding) -> Finding:
    loop = session.diagnosed_loop()
    step = loop.graph_step if loop is not None else None
    if step is None or session.steps is None or not step.is_timed:
        return finding
    calls = _epochs(session) if step.called_again else 1.0
    faster = partial(faster_steps, session, fmean(step.own_ms))
    trace_s = calls * step.traced_ms / 1e3
    unseen = step.traces - step.shapes
    ends_s = (trace_s * step.shapes, trace_s * (step.traces + unseen)) if unseen else None
    return _with_pairs(finding, step, faster, once_s=trace_s * step.traces, once_ci95_s=ends_s)


def _with_pairs(
    finding: Finding,
    timed: TimedPairs,
    faster: Callable[[float], float],
    *,
    once_s: float | None = None,
    once_ci95_s: Interval | None = None,
) -> Finding:
    """Return the finding with the trial that pairs of times make; `faster` returns the speed-up by
    the part that is left of what was timed."""
    pairs = zip(timed.own_ms, timed.other_ms, strict=True)
    ratio = estimate([faster(other / max(own, 1e-3)) for own, other in pairs])
    trial = Trial(
        state=ratio.state,
        reason=None,
        speedup=round(ratio.value, 4),
        ci95=ratio.interval,
        blocks=ratio.rounds,
        once_s=once_s,
        once_ci95_s=once_ci95_s,
    )
    return finding.model_copy(update={"trial": trial})


WAITS = 2 * FEWEST_ROUNDS + 4
"""Fewest waits in a trial of one edit: one in each block, and two to build each variant."""

SPARE = 0.5
"""Share of the budget that waiting may take: the rest is for the steps behind it. Own choice."""

SPARE_WHERE_LONG = 0.85
"""Share of the budget that waiting may take where waits are `INPUT_BOUND` of an epoch or more: an
edit that shortens them then comes before one that makes a step faster. Few blocks of steps lie
between so few waits. Own choice."""

_EDITS = 3
"""Edits for which whole epochs have to leave time, if there are as many: without long waits, all
edits of a step are tried. Own choice."""

_MOST_OF_IT = 50.0
"""Percent of an epoch in waits, from which an edit of them is tried first alone. Own choice."""

LONGEST_FILL_S = 0.25
"""Longest time to fill a shuffle buffer, about the length of a block's warm-up. Own choice."""

_FEWEST_BATCHES = 2


@dataclass(frozen=True)
class Epoch:
    """An epoch that would be worth trying as a whole."""

    examples: float
    budget_s: float
    """Time for trials that its waits need."""
    behind: str | None = None
    """Label of an edit of the model that could gain more, and is compared in blocks of steps."""


def epoch_worth_trying(session: Session) -> Epoch | None:
    """Return the epoch to try; None where its start is less than `FIRST_BATCHES` of it, its length
    is not known, or only edits of the steps are to be tried, which long starts would prevent."""
    loop, steps = session.diagnosed_loop(), session.steps
    batches, wait_ms = _batches_of_an_epoch(session), start_ms(session)
    if loop is None or steps is None or not batches or not wait_ms or not loop.batch_size:
        return None
    share = 100.0 * wait_ms / (wait_ms + batches * steps.mean_ms)
    if share < FIRST_BATCHES.value:
        return None
    listed = candidates(one for one in session.findings if one.edit and one.edit.loop_id is None)
    long = share < INPUT_BOUND.value and wait_ms > LONGEST_FILL_S * 1000.0
    if long and not any(one.edit.whole_epoch for one in listed):
        return None
    spare = SPARE if share < INPUT_BOUND.value else SPARE_WHERE_LONG
    # The gain from pauses is only an expectation, and their edit is tried last.
    bounded = [one for one in listed if not saves_pauses(one.edit)]
    best = max(bounded, key=lambda one: one.at_most, default=None)
    behind, alone = None, False
    if best is not None and share >= _MOST_OF_IT:
        alone = best.edit.whole_epoch
    elif best is not None and best.changes_model and best.fails:
        behind = best.edit.label if best.left_out_of_combination is None else None
    to_try = sum(
        one.fails and one.edit.instead_of is None and not one.changes_hyper_parameter
        for one in listed
    )
    more = 0 if alone else min(_EDITS, max(1, to_try)) - 1
    # An edit of long waits has a long wait in its first block alone.
    waits = WAITS - FEWEST_ROUNDS if alone else WAITS + more * (2 * FEWEST_ROUNDS + 2)
    wait_s = wait_ms / 1000.0
    if (pauses := pauses_of_run(session)) is not None:
        # Each of these epochs frees its iterator, which pauses for less than it lived.
        wait_s += min(pauses.expected_s, wait_s / spare)
    return Epoch(float(batches * loop.batch_size), wait_s * waits / spare, behind)


def start_ms(session: Session) -> float | None:
    """Return the time in which an epoch's iterators are made and its first batch is waited for."""
    time = time_of_epochs(session)
    wait_ms = time.first_batch_ms if time is not None else None
    if wait_ms is None and session.steps is not None:
        wait_ms = session.steps.fill_ms
    return None if wait_ms is None else wait_ms + making_ms(session)


def _batches_of_an_epoch(session: Session) -> float | None:
    """Return the batches of an epoch as planned, or else as seen; None for a loop of one epoch."""
    loop, run = session.diagnosed_loop(), session.run
    if loop is None or run is None:
        return None
    keras = loop.keras
    if keras is not None and keras.epochs == 1:
        return None
    if keras is not None and keras.steps_per_epoch:
        return keras.steps_per_epoch
    if keras is not None and keras.epochs and loop.planned_steps:
        return loop.planned_steps / keras.epochs
    if loop.epoch_steps:
        return loop.epoch_steps
    return loop.steps / run.epochs_seen if run.epochs_seen and run.epochs_seen >= 1.0 else None


SHORTER_SHUFFLES = (
    "Shuffle buffers were made smaller in all variants, as each block fills them anew."
)


def shorter_shuffles(session: Session) -> tuple[Change, ...]:
    """Return smaller buffers for shuffles that take longer than `LONGEST_FILL_S` to fill: a full
    one passes elements on at the same cost whatever its size."""
    steps = session.steps
    changes: list[Change] = []
    for op in session.ops:
        size = op.parameters.get("buffer_size")
        if op.kind != "shuffle" or not isinstance(size, int):
            continue
        if steps is None or not op.elements:
            continue
        elements_per_s = op.elements / steps.mean_ms * 1000
        wanted = round(max(elements_per_s * LONGEST_FILL_S, op.elements * _FEWEST_BATCHES, 1))
        if wanted < size:
            changes.append(SetParameters(op.id, {"buffer_size": wanted}))
    return tuple(changes)
