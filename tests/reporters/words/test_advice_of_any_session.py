"""Whatever was found and tried: a severe verdict leads on, and only what may help is advised."""

from __future__ import annotations

import io
from typing import Any, get_args

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from pipediag.facts.order import concluded, to_act_on
from pipediag.reporters import markdown
from pipediag.reporters.html.page import render
from pipediag.reporters.terminal.summary import render as render_summary
from pipediag.reporters.words.first_advice import first_advice
from pipediag.reporters.words.ways_on import ways_on
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.trials import NO_BUDGET, Trial
from pipediag.vocabulary import (
    Bottleneck,
    FindingSeverity,
    FindingStatus,
    FindingSubject,
    RunPartName,
    TrialState,
    VerdictSeverity,
)
from tests import factories
from tests.reporters import trial_sessions
from tests.reporters.html.pages import Page

RULES = ("parallel-map", "missing-cache", "small-batch", "host-overhead")
EDITS = (trial_sessions.PARALLEL, trial_sessions.CACHE, trial_sessions.BATCH, trial_sessions.JIT)


@st.composite
def trials(draw: st.DrawFn, status: FindingStatus) -> Trial:
    """What does not ask for a change is not tried."""
    state: TrialState = draw(st.sampled_from(get_args(TrialState)))
    if status not in ("fail", "informative"):
        state = "not_tried"
    if state == "not_tried":
        return Trial(state=state, reason="It was not tried.")
    speedup = draw(st.floats(0.5, 20.0))
    return Trial(
        state=state,
        reason="The time for trials was used up." if state == "inconclusive" else None,
        speedup=speedup,
        ci95=(0.9 * speedup, 1.1 * speedup),
        blocks=6,
        consumer=draw(st.sampled_from(["training", "pipeline alone"])),
    )


@st.composite
def sessions(draw: st.DrawFn) -> Session:
    made = []
    for rule, edit in zip(RULES, EDITS, strict=True):
        status = draw(st.none() | st.sampled_from(get_args(FindingStatus)))
        if status is None:
            continue
        finding = factories.make_finding(
            rule,
            advice=f"Mend it by {rule.rpartition('-')[2]}.",
            edit=edit,
            status=status,
            trial=draw(trials(status)),
            severity=draw(st.sampled_from(get_args(FindingSeverity))),
            subject=draw(st.sampled_from(get_args(FindingSubject))),
            part=draw(st.sampled_from(get_args(RunPartName))),
            speedup_at_most=draw(st.none() | st.floats(1.0, 9.0)),
            needs_first=draw(st.none() | st.sampled_from(RULES)),
        )
        made.append(finding)
    verdict = factories.make_verdict(
        bottleneck=draw(st.sampled_from(get_args(Bottleneck))),
        severity=draw(st.sampled_from(get_args(VerdictSeverity))),
        where=draw(st.none() | st.sampled_from(get_args(RunPartName))),
    )
    left_out: dict[str, Any] = {
        name: None for name in ("host", "pipeline", "run", "ceiling") if draw(st.booleans())
    }
    tried = any(finding.trial.state != "not_tried" for finding in made)
    session = factories.make_session(
        **{"run": factories.make_run(), **left_out},
        verdict=verdict,
        trials=trial_sessions.make_run() if tried else None,
        trials_missing=None if tried else draw(st.sampled_from([NO_BUDGET, "It has no loop."])),
    )
    return concluded(session, made)


def not_to_act_on(session: Session) -> list[Finding]:
    return [
        one
        for one in session.findings
        if one.trial.state in ("refuted", "inconclusive") and not one.about_results
    ]


@given(sessions())
def test_a_severe_verdict_is_never_a_dead_end(session: Session) -> None:
    if session.verdict.severity in ("high", "moderate"):
        assert first_advice(session) is not None or ways_on(session)


@given(sessions())
def test_only_what_may_help_is_to_be_acted_on(session: Session) -> None:
    first = first_advice(session)
    left = not_to_act_on(session)
    assert not any(map(to_act_on, left))
    assert first is None or first.finding not in left
    assert not {one.advice for one in left} & set(session.verdict.next_steps)


@settings(max_examples=20)
@given(sessions())
def test_no_report_advises_what_its_trial_left_open_or_refuted(session: Session) -> None:
    """Neither above the findings nor in them, but for a card that says that it is not advised."""
    page = Page(render(session))
    top, *_ = page.find("section")
    cards = [" ".join(card.words().split()) for card in page.find("article")]
    terminal = io.StringIO()
    render_summary(session, Console(file=terminal, width=200), output_directory=None)
    for finding in not_to_act_on(session):
        assert finding.advice not in top.words()
        for card in cards:
            said, _, _ = card.partition(finding.advice)
            assert said == card or said.endswith(
                ("Not worth it here: ", "left open whether it helps: ")
            )
        assert finding.advice not in terminal.getvalue()
        assert finding.advice not in dict(markdown.files(session))["report.md"]
