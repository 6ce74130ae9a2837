"""The one order of findings, decided where a session is concluded.

The findings are stored in this order, and whoever reads them (terminal, page, tables, gate, trials)
takes them as they stand. Among those that fail:

1. What makes results wrong: no speed weighs against it.
2. What all other advice waits for, such as a GPU that TensorFlow does not see.
3. What a trial confirmed, by the measured gain; a finding that merely informed counts too. Only the
   advice on the part of the run that the verdict names goes before it, where that part is not the
   steps, nothing is confirmed of it, and it could gain more. Gains whose intervals overlap count as
   equal, so that two runs of one script name the same one first.
4. What was not tried: the most severe first, then by its upper bound.
5. What was not tried and makes the run less than a tenth faster at most (`WORTH_DOING`), and what a
   trial confirmed of the steps where the run is too short to make up for what is traced once. It is
   listed with the findings and is no next step.
6. What a trial left open, and last what it refuted.

Gains are those of the whole run, as far as its ledger covers it. A finding that names another one
to deal with first stands after that one. After all of them comes what does not fail, by status.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass

from pipediag.facts.limits import WORTH_DOING, bound
from pipediag.facts.names import RUN_PART, exact_time, length, place
from pipediag.facts.pipeline import delay_ms, kind_name
from pipediag.facts.run import rows_to_have_back, whole_in_words
from pipediag.facts.run_gain import gain_for_run
from pipediag.facts.script import failed_by_itself
from pipediag.facts.step import GROUPS, class_ms
from pipediag.session.edits import Insert
from pipediag.session.findings import Finding
from pipediag.session.model import Session, hot_line
from pipediag.vocabulary import SEVERITY_ORDER, STATUS_ORDER, FindingSubject, Group, RunPartName

LINES_AROUND = 3
"""Lines above and below a place, in which it is recognised, and how a chain of calls goes on."""

MOST_NEXT_STEPS = 5

SELDOM_CONFIRMED = frozenset({"tf-data-defaults", "sequential-files"})
"""Rules whose edits were confirmed in at most half of their trials on the labelled scripts."""
SELDOM_PART = 0.3
"""Part of their upper bounds, which are those of all input, that counts here. Own choice."""

_OF_A_CONDITION = 0.5
"""The power of its gain by which a change that only the user can decide counts against one that
needs no decision: of 4x, 2x. Own choice."""

_BEFORE_SPEED: tuple[FindingSubject, ...] = ("correctness", "precondition")
"""Subjects of the advice on a script that failed before it was measured."""

(
    _WRONG_RESULTS,
    _PRECONDITION,
    _CONFIRMED,
    _UNTRIED,
    _TOO_LITTLE,
    _OPEN,
    _REFUTED,
    _NOT_FAILED,
) = range(8)


@dataclass(frozen=True)
class SourcePlace:
    """A line, and the operation whose call stands there, where it is one."""

    file: str
    line: int | None
    op_id: str | None = None


def culprit_place(session: Session) -> SourcePlace | None:
    """Return what the verdict names; else what the first advice is about; else the slow loop.

    None where nothing is slow and nothing is advised, and where no place is known. The operation
    that the step or an epoch's start waits for goes before the place of that part of the run, which
    is only the call in which the time passes.
    """
    verdict = session.verdict
    places = [
        (verdict.file, verdict.line, verdict.op_id),
        (verdict.where_file, verdict.where_line, None),
    ]
    if verdict.where not in (None, "steps", "epoch_start"):
        places.reverse()
    advised = next((one for one in session.findings if worth_doing(one)), None)
    if advised is not None:
        places.append((advised.file, advised.line, advised.op_id))
    loop = session.diagnosed_loop()
    if loop is not None and verdict.severity in ("high", "moderate"):
        places.append((loop.file, loop.line, None))
    found = (SourcePlace(file, line, op) for file, line, op in places if file is not None)
    return next(found, None)


def concluded(session: Session, findings: Iterable[Finding]) -> Session:
    """Return the session with these findings in their order, and what to do first."""
    # What a change saves depends on what the others are of.
    findings = list(findings)
    session = session.but(findings=findings)
    with_gains = (one.but(for_run=gain_for_run(session, one)) for one in findings)
    combined = session.combined
    dropped = {one.edit for one in combined.dropped} if combined is not None else set()
    ordered = in_order(with_gains, session.verdict.where, dropped)
    failed = failed_by_itself(session) is not None
    advised = [one for one in ordered if one.subject in _BEFORE_SPEED] if failed else ordered
    steps = _next_steps(advised) or what_remains(session)
    return session.but(findings=ordered, verdict=session.verdict.but(next_steps=steps))


def in_order(
    findings: Iterable[Finding],
    where: RunPartName | None = None,
    dropped: Container[str] = frozenset(),
) -> list[Finding]:
    """Return the findings, what to deal with first at the head; equal ones keep their order.

    Args:
        where: the part of the run that the verdict names.
        dropped: ids of edits that were confirmed and left out of the combined change.
    """
    ordered = sorted(findings, key=_place)
    first = [finding for finding in ordered if _group(finding) < _CONFIRMED]
    confirmed = [finding for finding in ordered if _group(finding) == _CONFIRMED]
    behind = [finding for finding in ordered if _group(finding) > _CONFIRMED]
    # What gains nothing without others comes behind them.
    on_top = [finding for finding in confirmed if finding.trial.on_top_of]
    alone = [finding for finding in confirmed if not finding.trial.on_top_of]
    confirmed = [*_with_equal_gains(alone, dropped), *on_top]
    named = [one for one in behind if _group(one) == _UNTRIED and one.part == where]
    if confirmed and named and all(one.part != where for one in confirmed):
        best = max(named, key=_gain)
        if best.for_run is not None and _gain(best) > max(map(_gain, alone), default=1.0):
            first, behind = [*first, best], [one for one in behind if one is not best]
    ordered = [*first, *confirmed, *behind]
    worth = [one for one in ordered if worth_doing(one)]
    little = [one for one in ordered if to_act_on(one) and not worth_doing(one)]
    others = [one for one in ordered if not to_act_on(one)]
    return [*_after_what_they_wait_for(worth), *_after_what_they_wait_for(little), *others]


def _with_equal_gains(waiting: list[Finding], dropped: Container[str]) -> list[Finding]:
    """Return what was confirmed, those whose intervals overlap in a fixed order.

    What fails goes before what informs, what the patch holds before what was left out of it, what
    needs no decision before what does, what takes no memory before a cache, and then the rules go
    by name.
    """

    def consequences(finding: Finding) -> tuple[bool, bool, bool, bool, str]:
        left_out = finding.edit is not None and finding.edit.id in dropped
        changes = finding.edit.changes if finding.edit is not None else ()
        caches = any(isinstance(one, Insert) and one.kind == "cache" for one in changes)
        needs_decision = finding.condition is not None
        return finding.status != "fail", left_out, needs_decision, caches, finding.rule

    ordered: list[Finding] = []
    while waiting:
        lowest = _gain_range(waiting[0])[0]
        if waiting[0].condition is not None:
            lowest = min(lowest, lowest**_OF_A_CONDITION)
        equal = [finding for finding in waiting if _gain_range(finding)[1] >= lowest]
        chosen = min(equal, key=consequences)
        waiting.remove(chosen)
        ordered.append(chosen)
    return ordered


def _gain_range(finding: Finding) -> tuple[float, float]:
    """Return the 95 % interval of the gain that orders a finding, or its value twice."""
    found = finding.for_run.ci95 if finding.for_run is not None else finding.trial.ci95
    return found or (_gain(finding), _gain(finding))


def to_act_on(finding: Finding) -> bool:
    """Return True if its advice is to be followed as far as is known."""
    if finding.status == "informative":
        return finding.trial.state == "confirmed"
    return finding.status == "fail" and (
        finding.about_results or finding.trial.state in ("confirmed", "not_tried")
    )


def worth_doing(finding: Finding) -> bool:
    """Return True if it is to be acted on, for more than a small gain that was not measured."""
    return _group(finding) <= _UNTRIED


def is_for_you_to_decide(finding: Finding) -> bool:
    """Return True if its edit is right only under a condition, or changes what the model learns."""
    return finding.condition is not None or (
        finding.effect_on_results == "changes a hyper-parameter"
    )


def costs_the_run(finding: Finding) -> bool:
    """Return True if the run takes as long as before or longer, by the middle of its gain."""
    return finding.for_run is not None and finding.for_run.speedup <= 1.0


def _place(finding: Finding) -> tuple[int, int, float]:
    group = _group(finding)
    if group == _CONFIRMED:
        return group, 0, -_gain(finding)
    if group == _NOT_FAILED:
        return group, STATUS_ORDER.index(finding.status), -_gain(finding)
    return group, SEVERITY_ORDER.index(finding.severity), -_gain(finding)


def _group(finding: Finding) -> int:
    if not to_act_on(finding):
        if finding.status != "fail":
            return _NOT_FAILED
        return _REFUTED if finding.trial.state == "refuted" else _OPEN
    if finding.subject == "correctness":
        return _WRONG_RESULTS
    if finding.subject == "precondition":
        return _PRECONDITION
    if finding.trial.state == "confirmed" and not finding.about_results:
        return _TOO_LITTLE if costs_the_run(finding) else _CONFIRMED
    known = known_gain(finding)
    return _UNTRIED if known is None or known >= WORTH_DOING else _TOO_LITTLE


def _gain(finding: Finding) -> float:
    known = known_gain(finding)
    if known is None:
        return 1.0
    seldom = finding.trial.speedup is None and finding.rule in SELDOM_CONFIRMED
    return 1.0 + (known - 1.0) * (SELDOM_PART if seldom else 1.0)


def known_gain(finding: Finding) -> float | None:
    """Return the gain or upper bound of the run, or else of the part, if speed is the point."""
    if finding.about_results:
        return None
    if finding.for_run is not None:
        return finding.for_run.speedup
    measured = finding.trial.speedup
    return finding.speedup_at_most if measured is None else measured


def _after_what_they_wait_for(findings: list[Finding]) -> list[Finding]:
    waiting = list(findings)
    ordered: list[Finding] = []
    while waiting:
        free = (one for one in waiting if not _waits(one, waiting))
        # Where two name each other, the first of them stays the first.
        chosen = next(free, waiting[0])
        waiting.remove(chosen)
        ordered.append(chosen)
    return ordered


def _waits(finding: Finding, others: Sequence[Finding]) -> bool:
    """Return True if one of the others comes first.

    Wrong results wait for nothing, nor does what a trial saw to help by itself.
    """
    if finding.about_results or finding.trial.state == "confirmed":
        return False
    return any(other.rule == finding.needs_first != finding.rule for other in others)


def _is_settled(finding: Finding, others: Sequence[Finding]) -> bool:
    """Return True if a confirmed change of the same operation buys as much as this advice could."""
    if finding.op_id is None or finding.subject != "speed" or finding.trial.state == "confirmed":
        return False
    gains = [
        _gain(one)
        for one in others
        if one.op_id == finding.op_id
        and one.trial.state == "confirmed"
        and not (one.about_results or one.trial.on_top_of)
    ]
    return bool(gains) and _gain(finding) <= max(gains)


def _next_steps(ordered: Sequence[Finding]) -> list[str]:
    worth = [finding for finding in ordered if worth_doing(finding)]
    acting = [finding for finding in worth if not _is_settled(finding, worth)]
    leading = [finding for finding in acting if not _waits(finding, acting)] or acting
    advice = dict.fromkeys(finding.advice for finding in leading if finding.advice)
    return list(advice)[:MOST_NEXT_STEPS]


_REMAINING: dict[Group, tuple[str, str]] = {
    "compute": (
        "computing on the device",
        "Make the model smaller, or look for its longest kernels under device idle time.",
    ),
    "transfer": (
        "copies and communication between replicas",
        "Keep what does not change on the device, and compare the steps of all workers.",
    ),
    "overhead": (
        "launching operations and Python",
        "`pipediag trace REPORT/trace/{loop} -o DIR` writes a timeline that shows what each call "
        "does.",
    ),
}
"""Names of what remains of the step, and what to do about it."""


def what_remains(session: Session) -> list[str]:
    """Return sentences for a severe verdict without advice, the most useful first."""
    if session.verdict.severity not in ("high", "moderate"):
        return []
    failure = failed_by_itself(session)
    if failure is not None:
        return [f"{failure} Make the script run first, then measure again."]
    found = [*_in_the_run(session), *_in_the_step(session)]
    return found or ["Measure longer with `--steps`: it is not clear where the time goes."]


def _in_the_run(session: Session) -> Iterator[str]:
    verdict, run = session.verdict, session.run
    if run is None or verdict.where in (None, "steps"):
        return
    taken_s = sum(row.seconds for row in rows_to_have_back(run, verdict.where))
    at = place(verdict.where_file, verdict.where_line)
    yield (
        f"What remains ({RUN_PART[verdict.where].lower()}): {length(taken_s)} of "
        f"{whole_in_words(run)} ({length(run.whole_s)}){f', most of it{at}' if at else ''}"
        f"{_at_most(run.whole_s, taken_s)}."
    )


def _in_the_step(session: Session) -> Iterator[str]:
    bound_by, pipeline = session.verdict.bottleneck, session.pipeline
    op = session.operation(pipeline.bottleneck_op_id) if pipeline is not None else None
    if session.steps is None or session.breakdown is None or bound_by == "inconclusive":
        return
    step_ms, hot = session.steps.mean_ms, None
    if bound_by == "input":
        what, ms = "waiting for input", class_ms(session, ["input_wait"])
        hint = "Time `for batch in dataset` without training: this is the time to reduce."
        if op is not None:
            what = f"{kind_name(op)}{place(op.file, op.line)}, which sets the pace of the input"
            hint = "Do its work once before training, and read the results."
            ms, hot = min(delay_ms(session, op) or ms, ms), hot_line(session.host, "source")
    else:
        group: Group = "overhead" if bound_by == "balanced" else bound_by
        what, hint = _REMAINING[group]
        loop = session.diagnosed_loop()
        hint = hint.format(loop=loop.id if loop is not None else "")
        ms = class_ms(session, GROUPS[group])
        hot = hot_line(session.host, "main") if group == "overhead" else None
    if hot is not None:
        at = place(hot.file, hot.line).strip()
        hint = f"Start {at}, where its Python was in {hot.percent:.0f} % of the samples."
    yield (
        f"What remains is {what}: {exact_time(ms)} of a step of {exact_time(step_ms)}"
        f"{_at_most(step_ms, ms)}. {hint}"
    )


def _at_most(whole: float, removable: float) -> str:
    factor = bound(whole, removable)
    return "" if factor is None else f", so at most {factor:.3g}x if it took no time"
