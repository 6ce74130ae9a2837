"""Where no rule has a change to advise: what to try or to measure next.

None of it is a recommendation of a change: these are places to look at, and longer measurements.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from pipediag.facts.order import worth_doing
from pipediag.facts.script import failed_by_itself
from pipediag.facts.step import only_input_is_told
from pipediag.reporters.words.quantities import counted
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.trials import NO_BUDGET

LONGER_RUN_STEPS = 200
"""Enough for a 95 % interval of a few percent at the spread that short steps usually have."""
_MORE_TIME = 3.0
"""Times the budget that trials had: an interval gets narrower by the root of that."""

_BY_TORCH = (
    "PyTorch's own profiler divides the rest of the step: put `with torch.profiler.profile() as "
    "profile:` around a `fit` of a few steps, and "
    '`print(profile.key_averages().table(sort_by="self_cpu_time_total"))` behind it.'
)


def ways_on(session: Session) -> list[str]:
    """Sentences, the most useful first; none where something is worth doing, nothing is left, or
    the script failed, which comes before all speed."""
    failed = failed_by_itself(session) is not None
    if session.steps is None or failed or any(worth_doing(finding) for finding in session.findings):
        return []
    return list(_ways(session))


def _ways(session: Session) -> Iterator[str]:
    verdict = session.verdict
    budget = longer_budget(session)
    if budget is not None:
        yield (
            f"{counted(len(_left_open(session)), 'change')} could not be decided in the time for "
            f"trials: `--budget {budget}` gives them more."
        )
    if verdict.bottleneck == "inconclusive":
        told = only_input_is_told(session)
        yield _BY_TORCH if told else f"Measure longer: `--steps {longer_run(session)}`."
    yield from verdict.next_steps
    if verdict.next_steps and session.trials_missing == NO_BUDGET:
        yield "Leave out `--budget 0`: trials may show what no rule can know."


def longer_budget(session: Session) -> int | None:
    """Seconds to give trials that left a change open; None where they left none."""
    if session.trials is None or not _left_open(session):
        return None
    inconclusive = any(finding.trial.state == "inconclusive" for finding in session.findings)
    more_s = _MORE_TIME * session.trials.budget_s if inconclusive else 0.0
    return math.ceil(max(more_s, session.trials.epochs_need_s or 0.0))


def _left_open(session: Session) -> list[Finding]:
    epochs = too_long_to_try(session)
    return [
        finding
        for finding in session.findings
        if finding.trial.state == "inconclusive" or finding in epochs
    ]


def too_long_to_try(session: Session) -> list[Finding]:
    """Findings whose edits change whole epochs, of which the time for trials held too few."""
    if session.trials is None or session.trials.epochs_need_s is None:
        return []
    return [
        finding
        for finding in session.findings
        if finding.edit is not None
        and finding.edit.whole_epoch
        and finding.trial.state == "not_tried"
        and finding.effect_on_results != "not safe here"
    ]


def longer_run(session: Session) -> int:
    """Steps to ask for where those that were seen decide nothing."""
    seen = session.steps.count if session.steps is not None else 0
    return max(LONGER_RUN_STEPS, 4 * seen)
