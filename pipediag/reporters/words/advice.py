"""The answer that heads every report: what is slow, what to change first, and why to believe it."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pipediag.facts.names import RUN_PART, default_directory
from pipediag.facts.order import known_gain, to_act_on, worth_doing
from pipediag.facts.run_gain import epochs_of_gain, fills_a_cache
from pipediag.facts.script import edits_for_second_run, failed_by_itself
from pipediag.facts.step import only_input_is_told
from pipediag.reporters.words import labels, run, trials
from pipediag.reporters.words.quantities import counted, speedup, speedup_interval
from pipediag.session.devices import TraceReport
from pipediag.session.edits import timed_call
from pipediag.session.findings import Finding, Patch
from pipediag.session.ledger import RunGain
from pipediag.session.loops import Steps
from pipediag.session.model import Session
from pipediag.session.trials import NO_BUDGET, NOT_TRIED, Combined, Trial
from pipediag.vocabulary import VerdictSeverity

LONGEST_HEADING = 150
"""Characters: two lines of a heading on a page."""
_LONGEST_BRIEF = 200
"""Characters of what a summary says in one place: three lines of a narrow terminal."""
MUCH = 1.2
"""Own choice, as much as an input wait at the limit from which it is the bottleneck would gain."""
LONGER_RUN_STEPS = 200
"""Enough for a 95 % interval of a few percent at the spread that short steps usually have."""
_SENTENCE = re.compile(r"(?<=[.!?]) (?=[A-Z`])")
_MORE_TIME = 3.0
"""Times the budget that trials had: an interval gets narrower by the root of that."""
_BY_TORCH = (
    "PyTorch's own profiler divides the rest of the step: put `with torch.profiler.profile() as "
    "profile:` around a `fit` of a few steps, and "
    '`print(profile.key_averages().table(sort_by="self_cpu_time_total"))` after it.'
)


def healthy(session: Session) -> bool:
    """Return True if nothing is slow, nothing is advised and no trial left anything open."""
    return (
        session.verdict.severity == "ok"
        and session.breakdown is not None
        and not any(map(worth_doing, session.findings))
        and not what_else(session)
    )


@dataclass(frozen=True)
class Title:
    """The verdict in a word or two, what is said beside it, and the severity that colours both."""

    severity: VerdictSeverity
    label: str
    beside: tuple[str, ...] = ()


def title(session: Session) -> Title:
    """Return what is slow: a part of the run, or else what limits its steps."""
    if healthy(session):
        return Title("ok", "Healthy")
    verdict = session.verdict
    where = verdict.where
    label = labels.BOTTLENECK[verdict.bottleneck]
    if where not in (None, "steps") and (where, verdict.bottleneck) != ("epoch_start", "input"):
        label = RUN_PART[where]
    # The confidence is that of the steps; the run's parts were timed.
    low = verdict.confidence == "low" and where in (None, "steps", "epoch_start")
    severity, text = _severity(session)
    return Title(severity, label, (text, "low confidence") if low else (text,))


def _severity(session: Session) -> tuple[VerdictSeverity, str]:
    """Return the verdict's own, or `moderate` where nothing is severe and a change gains much.

    A step that computes all the time is no fault of the pipeline's, and may still compute what it
    need not.
    """
    confirmed = [
        finding.trial.speedup or 1.0
        for finding in session.findings
        if finding.trial.state == "confirmed" and to_act_on(finding) and not finding.about_results
    ]
    untried = [
        known_gain(finding) or 1.0
        for finding in session.findings
        if finding.trial.state == "not_tried" and worth_doing(finding) and finding.status == "fail"
    ]
    severity = session.verdict.severity
    if severity == "ok" and max(confirmed, default=1.0) >= MUCH:
        return "moderate", "a change makes it faster"
    if severity == "ok" and max(untried, default=1.0) >= MUCH:
        return "moderate", "a change may make it faster"
    return severity, labels.SEVERITY[severity]


def heading(session: Session) -> str:
    """Return the one sentence on top: what is slow and where, or that nothing is."""
    if healthy(session):
        return "No change was found that makes it faster."
    return lead(session.verdict.summary)[0]


def lead(text: str) -> tuple[str, str]:
    """Return the first sentence and the rest; of a long one, as much as says the same by itself."""
    first, *others = _SENTENCE.split(text, maxsplit=1)
    rest = " ".join(others)
    if len(first) > LONGEST_HEADING and "; " in first:
        short, _, behind = first.partition("; ")
        return f"{short}.", f"{behind[:1].upper()}{behind[1:]} {rest}".strip()
    return first, rest


def brief(text: str) -> str:
    """Return as many sentences as a summary has room for, at least the first."""
    first, *others = _SENTENCE.split(text)
    for at, sentence in enumerate(others):
        if len(first) + len(sentence) >= _LONGEST_BRIEF:
            return f"{first} The report has the code." if "`" in " ".join(others[at:]) else first
        first = f"{first} {sentence}"
    return first


@dataclass(frozen=True)
class Groups:
    """The findings of a session or of a profile, by what a reader does with them."""

    to_do: list[Finding] = field(default_factory=list)
    to_know: list[Finding] = field(default_factory=list)
    unsettled: list[Finding] = field(default_factory=list)
    fine: list[Finding] = field(default_factory=list)


def group(session: Session | TraceReport) -> Groups:
    """Return the findings in groups, each in the session's order: the verdict decided that."""
    groups = Groups()
    for finding in session.findings:
        if finding.status in ("inconclusive", "error"):
            groups.unsettled.append(finding)
        elif finding.status in ("pass", "not-applicable"):
            groups.fine.append(finding)
        elif finding.status == "fail" or finding.trial.state != "not_tried":
            # What was tried stands with its outcome, so that nothing refuted is good to know.
            groups.to_do.append(finding)
        else:
            groups.to_know.append(finding)
    return groups


@dataclass(frozen=True)
class Gain:
    """Gain of a change: one number, with what it is of."""

    number: str
    """`2.4x`."""
    bounds: str
    """`[2.0, 2.9]`; empty where there is no interval."""
    of_what: str
    """`for the run: 33.9 s to 13.9 s`, `in a step`."""
    known_by: str
    """`measured`, `estimated` or `at most`."""
    left_percent: float | None = None
    """The length of the run with the change, in percent; None where it is of something else."""

    def __str__(self) -> str:
        bound = "at most " if self.known_by == "at most" else ""
        known = "" if bound else f", {self.known_by}"
        return f"{bound}{' '.join(filter(None, (self.number, self.bounds)))} {self.of_what}{known}"

    @property
    def brief(self) -> str:
        """`2.4x [2.0, 2.9] for the run, measured`: without the times of the run."""
        return str(replace(self, of_what=self.of_what.partition(" (")[0]))


def gain(finding: Finding) -> Gain | None:
    """Return what a finding's change buys in all of the run, or else in the part it is about."""
    if finding.about_results:
        return None
    found, trial = finding.for_run, finding.trial
    if found is not None and (found.basis == "measured" or trial.speedup is None):
        known_by = "at most" if found.basis == "at most" else trials.known_by(trial)
        return gain_of_run(found, known_by)
    if trial.speedup is not None:
        bounds, known_by = trials.interval(trial) or "", trials.known_by(trial)
        part = "an epoch" if trial.basis == "epoch" else "a step"
        on_top = " that the other changes leave" if trial.on_top_of else ""
        return Gain(speedup(trial.speedup), bounds, f"in {part}{on_top}", known_by)
    if finding.speedup_at_most is None:
        return None
    part = "a step" if finding.part == "steps" else RUN_PART[finding.part].lower()
    return Gain(speedup(finding.speedup_at_most), "", f"in {part}", "at most")


def gain_of_run(found: RunGain, known_by: str) -> Gain:
    """Return a gain of the run, in words."""
    bounds = speedup_interval(found.ci95) if found.ci95 is not None else ""
    of_run = found.scope == "run" and found.before_s > 0
    left = 100.0 * found.after_s / found.before_s if of_run else None
    return Gain(speedup(found.speedup), bounds, run.of_what(found), known_by, left)


@dataclass(frozen=True)
class Answer:
    """Answer of the report: the first change, its gain, and why to believe it."""

    finding: Finding
    changes: tuple[str, ...]
    """The changes that the gain is of, where it is of several."""
    patch: Patch | None
    gain: Gain | None
    why: str
    """One sentence: what was compared with what, or why nothing was."""
    condition: str | None
    """`if the generator yields the same data`, and from when on the gain is had; None for none, or
    where the advice says it."""
    edits: frozenset[str] = frozenset()
    """Ids of the edits that the gain is of, where it is of several."""

    def holds(self, finding: Finding) -> bool:
        """Return True if it is the finding's answer, too."""
        if finding is self.finding:
            return True
        return finding.edit is not None and finding.edit.id in self.edits


def answer(session: Session) -> Answer | None:
    """Return None where nothing is worth doing; never what its own trial left open or refuted.

    Where the change was measured together with others, the gain is of all of them, and so is the
    patch: they are what `pipediag fix` applies.
    """
    finding = next((one for one in session.findings if worth_doing(one)), None)
    if finding is None:
        return None
    together, own = session.combined, finding.edit.id if finding.edit is not None else None
    edits = frozenset(together.findings if together and together.speedup is not None else ())
    if together is None or own not in edits or len(edits) < 2:
        condition, why = _condition(session, finding, [finding]), _why(session, finding)
        return Answer(finding, (), finding.patch, gain(finding), why, condition)
    changes = tuple(trials.change(session, one, with_effect=True) for one in together.findings)
    shared = set(Combined.model_fields) & set(Trial.model_fields)
    trial = finding.trial.model_copy(update=together.model_dump(include=shared))
    all_of_them = finding.model_copy(update={"for_run": together.for_run, "trial": trial})
    of_them = [one for one in session.findings if one.edit and one.edit.id in edits]
    condition, why = _condition(session, finding, of_them), _why(session, all_of_them)
    patch = session.patch or finding.patch
    return Answer(finding, changes, patch, gain(all_of_them), why, condition, edits)


def _condition(session: Session, first: Finding, findings: Sequence[Finding]) -> str | None:
    """Return the condition of the first finding, and that all their gain begins behind the epoch
    that fills a cache, where it does not include that epoch."""
    own = first.condition
    found = [own] if own is not None and own.removeprefix("if ") not in brief(first.advice) else []
    filled = any(one.edit and fills_a_cache(one.edit) for one in findings)
    counted = session.run is None or epochs_of_gain(session, session.run) is not None
    if filled and not counted and findings[0].trial.speedup is not None:
        found.append("once the cache is filled")
    return ", ".join(found) or None


def nothing_worth_doing(session: Session) -> str | None:
    """Return the sentence in place of the first advice.

    None where there is an advice, or nothing was found.
    """
    found = [one for one in session.findings if to_act_on(one)]
    if not found or any(map(worth_doing, found)):
        return None
    best = max(found, key=lambda one: known_gain(one) or 1.0)
    known = gain(best)
    if known is None or (known_gain(best) or 1.0) <= 1.0:
        return "Nothing: none of the changes found would make it faster."
    return f"Nothing: the best change found gains no more than {known}."


def _why(session: Session, finding: Finding) -> str:
    trial = finding.trial
    if finding.about_results:
        known = trials.outcome(finding)
        found = f" Its trial: {known.numbers}." if known and known.numbers else ""
        return f"It is about correct results, which come before speed.{found}"
    if trial.speedup is None or not trial.blocks:
        reason = trial.reason if trial != NOT_TRIED else session.trials_missing
        bound = "An upper bound; not tried." if gain(finding) else "Not tried."
        return f"{bound} {reason}" if reason else bound
    if timed_call(finding.edit) is not None:
        return f"Both ways were timed where your script does this, {counted(trial.blocks, 'time')}."
    if trials.is_estimate(trial):
        return f"{trials.estimate_basis(trial)} Over {counted(trial.blocks, 'round')}."
    return (
        "Measured in your loop: original and changed version alternated "
        f"{counted(trial.blocks, 'time')}."
    )


def what_else(session: Session) -> list[str]:
    """Return what to try or to measure where no rule has a change, the most useful first.

    None of it is advice for a change: these are places to look at, and longer measurements. There
    are none where something is worth doing, nothing is left, or the script failed.
    """
    failed = failed_by_itself(session) is not None
    if session.steps is None or failed or any(map(worth_doing, session.findings)):
        return []
    found: list[str] = []
    verdict = session.verdict
    budget = _longer_budget(session)
    if budget is not None:
        undecided = [_undecided(finding) for finding in _left_open(session)]
        more = f"; {len(undecided) - 2} more" if len(undecided) > 2 else ""
        found.append(
            f"Undecided: {'; '.join(undecided[:2])}{more}. `--budget {budget}` gives the trials "
            "more time."
        )
    if verdict.bottleneck == "inconclusive":
        alone = only_input_is_told(session)
        longer = f"Measure longer: `--steps {_longer_run(session.steps)}`."
        found.append(_BY_TORCH if alone else longer)
    found += verdict.next_steps
    if verdict.next_steps and session.trials_missing == NO_BUDGET:
        found.append("Run it without `--budget 0`: trials may find more.")
    return found


def _longer_budget(session: Session) -> int | None:
    """Return seconds to give trials that left a change open; None where they left none."""
    tried = session.trials
    if tried is None or not _left_open(session):
        return None
    return math.ceil(_MORE_TIME * (tried.given_s or tried.budget_s))


def _left_open(session: Session) -> list[Finding]:
    return [finding for finding in session.findings if finding.trial.state == "inconclusive"]


def _undecided(finding: Finding) -> str:
    """Return `a cache after the map at train.py:12, 1.04x [0.97, 1.11]`."""
    bounds = speedup_interval(finding.trial.ci95) if finding.trial.ci95 else ""
    measured = f", {speedup(finding.trial.speedup)} {bounds}" if finding.trial.speedup else ""
    return f"{finding.edit.label if finding.edit else finding.title}{measured.rstrip()}"


def _longer_run(steps: Steps) -> int:
    return max(LONGER_RUN_STEPS, 4 * steps.count)


def next_command(session: Session, directory: Path | None) -> tuple[str, str] | None:
    """Return the purpose of the next command, and that: another analysis, the patch, or the gate.

    None where no step was measured, where the script failed by itself, or where the same command
    would end the same way. Of an analysis that a program called there is the patch alone, once it
    is saved: no command would make it again.
    """
    if session.steps is None or failed_by_itself(session) is not None:
        return None
    script = session.script
    usual = default_directory(script.path, module=script.module)
    place = directory or usual
    patch = _patch_command(session, place)
    if script.call is not None:
        return None if directory is None else patch
    undecided = session.verdict.bottleneck == "inconclusive"
    budget = _longer_budget(session)
    options: list[str] = []
    if undecided and not only_input_is_told(session):
        purpose, options = "Measure longer", ["--steps", str(_longer_run(session.steps))]
    elif edits_for_second_run(session):
        purpose, options = "Try it in the loop", ["--rerun"]
    elif patch is not None:
        return patch
    elif any(map(worth_doing, session.findings)):
        purpose = "Check your edit"
    elif budget is not None:
        purpose, options = "Decide what is open", ["--budget", str(budget)]
    elif undecided:
        return None  # no gate has a verdict to keep
    else:
        return "Keep it so in CI", shlex.join(["pipediag", "check", str(place)])
    options += [] if place == usual else ["-o", str(place)]
    ran = [*(["-m"] if script.module else []), script.path, *script.args]
    return purpose, shlex.join(["pipediag", "analyze", *options, *ran])


def _patch_command(session: Session, place: Path) -> tuple[str, str] | None:
    """Return how to get the patch, with the first change also where only the user can decide it."""
    first = next(filter(worth_doing, session.findings), None)
    edits = session.patch.edits if session.patch is not None else []
    command = ["pipediag", "fix", str(place)]
    in_patch = first is None or (first.edit is not None and first.edit.id in edits)
    own = first is not None and first.patch is not None and first.patch.diff is not None
    if first is not None and first.edit is not None and own and not in_patch:
        command += ["--with", first.rule]
    confirmed = own and first is not None and first.trial.state == "confirmed"
    if not confirmed and (session.patch is None or session.patch.diff is None):
        return None
    return "Get the patch" if own or in_patch else "Patch the rest", shlex.join(command)
