"""What to change first, and what to do where nothing is to be changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipediag.facts.order import concluded
from pipediag.reporters import markdown
from pipediag.reporters.html import render
from pipediag.reporters.terminal.summary import render as render_summary
from pipediag.reporters.words import advice
from pipediag.reporters.words.advice import answer, gain, next_command, title, what_else
from pipediag.session.edits import Insert
from pipediag.session.findings import Finding, Patch
from pipediag.session.model import Script, Session
from pipediag.session.trials import Trial
from pipediag.vocabulary import TrialState
from tests import factories, records
from tests.factories import make_finding, make_session, make_verdict
from tests.ledgers import make_gain
from tests.reporters import trial_sessions
from tests.reporters.pages import Page, on_terminal
from tests.reporters.sessions import nothing_measured
from tests.trials.bench import make_edit

GAIN = make_gain(1.5, 30.0, ci95=(1.4, 1.6))


def session(finding: Finding, **overrides: Any) -> Session:
    return factories.make_session(findings=[finding], **overrides)


def parts(made: Session) -> tuple[str, str]:
    found = answer(made)
    return str(found.gain).replace("\xa0", " "), found.why.replace("\xa0", " ")


def tried(trial: Trial) -> Session:
    finding = factories.make_finding(edit=trial_sessions.PARALLEL, trial=trial, for_run=GAIN)
    return session(finding, trials=trial_sessions.make_run())


def test_a_gain_is_of_the_run_and_its_reason_is_the_comparison() -> None:
    number, why = parts(tried(trial_sessions.CONFIRMED))
    assert number == "1.5x [1.40, 1.60] for the run (30.0 s to 20.0 s), measured"
    assert "alternated" in why
    assert "8 times" in why


def test_without_a_ledger_a_gain_is_of_a_step() -> None:
    finding = factories.make_finding(edit=trial_sessions.PARALLEL, trial=trial_sessions.CONFIRMED)
    assert str(gain(finding)).replace("\xa0", " ") == "1.9x [1.9, 2.0] in a step, measured"
    bounded = factories.make_finding(speedup_at_most=3.0)
    assert str(gain(bounded)) == "at most 3.0x in a step"
    assert gain(factories.make_finding(speedup_at_most=None)) is None


def test_changes_that_were_measured_together_are_one_answer_with_their_patch() -> None:
    made = trial_sessions.patched()
    found = answer(made)
    assert len(found.changes) == len(made.combined.findings) == 2
    assert found.patch == made.patch
    assert found.gain.number == "3.1x"


def test_a_summary_states_a_condition_that_it_cuts_from_the_advice() -> None:
    advised = f"{'Keep it, ' * 30}please. Do this only if it stays."
    for text, said in ((advised, "if it stays"), ("Do this only if it stays.", None)):
        finding = factories.make_finding(advice=text, condition="if it stays", speedup_at_most=2.0)
        found = advice.answer(factories.make_session(findings=[finding]))
        assert found.condition == said


@pytest.mark.parametrize(
    ("scope", "kind", "said"),
    [("1000_steps", "cache", True), ("1000_steps", "prefetch", False), ("run", "cache", False)],
)
def test_a_gain_that_begins_behind_the_filling_of_a_cache_says_so(
    scope: Any, kind: str, said: bool
) -> None:
    edit = make_edit("cache", changes=(Insert("map", kind),))
    trial = Trial(state="confirmed", reason=None, speedup=32.0, ci95=(28.0, 38.0), blocks=5)
    finding = factories.make_finding("cache", edit=edit, trial=trial, condition=None)
    session = factories.make_session(
        run=factories.make_run(scope=scope),
        loops=[factories.make_loop(keras=None)],
        steps=factories.make_steps(boundaries=0),  # how many epochs there are is not known
        findings=[finding],
    )
    assert (advice.answer(session).condition is not None) == said


def test_grouped_by_what_a_reader_does_with_them_in_the_order_of_the_session() -> None:
    session = factories.make_session(
        findings=[
            factories.make_finding("small", severity="warn", speedup_at_most=1.1),
            factories.make_finding("fine", status="pass"),
            factories.make_finding("large", severity="warn", speedup_at_most=3.0),
            factories.make_finding("severe", severity="error", speedup_at_most=None),
            factories.make_finding("known", status="informative"),
            factories.make_finding("proved", status="informative", trial=trial_sessions.CONFIRMED),
            factories.make_finding("in vain", status="informative", trial=trial_sessions.REFUTED),
            factories.make_finding("broken", status="error"),
            factories.make_finding("unsure", status="inconclusive"),
            factories.make_finding("absent", status="not-applicable"),
        ]
    )
    groups = advice.group(session)
    assert [finding.rule for finding in groups.to_do] == [
        *("small", "large", "severe", "proved", "in vain")
    ]
    assert [finding.rule for finding in groups.to_know] == ["known"]
    assert {finding.rule for finding in groups.unsettled} == {"broken", "unsure"}
    assert [finding.rule for finding in groups.fine] == ["fine", "absent"]


def with_severity(severity: str = "ok", **finding: Any) -> Session:
    found = make_finding("a-rule", edit=make_edit("a-rule"), **finding)
    return make_session(
        verdict=make_verdict(bottleneck="compute", severity=severity), findings=[found]
    )


def make_trial(speedup: float, state: TrialState = "confirmed") -> Trial:
    return Trial(state=state, reason=None, speedup=speedup)


@pytest.mark.parametrize(
    ("finding", "severity", "text"),
    [
        ({"trial": make_trial(1.2)}, "moderate", "a change makes it faster"),
        ({"trial": make_trial(1.19)}, "ok", ""),
        ({"trial": make_trial(2.0, "inconclusive")}, "ok", ""),
        ({"trial": make_trial(2.0), "subject": "correctness"}, "ok", ""),
        ({"speedup_at_most": 1.2}, "moderate", "a change may make it faster"),
        ({"speedup_at_most": 1.19}, "ok", ""),
        ({"speedup_at_most": 6.7, "status": "informative"}, "ok", ""),
        ({"speedup_at_most": 6.7, "subject": "correctness"}, "ok", ""),
    ],
)
def test_a_large_gain_is_not_told_beside_that_nothing_is_severe(
    finding: dict[str, Any], severity: str, text: str
) -> None:
    found = title(with_severity(**{"speedup_at_most": None, **finding}))
    assert found.severity == severity
    assert text in (*found.beside, "")


@pytest.mark.parametrize(
    ("bottleneck", "where", "expected"),
    [
        ("compute", None, "Compute-bound"),
        ("compute", "evaluation", "Evaluation"),
        ("input", "epoch_start", "Input-bound"),
        ("compute", "epoch_start", "Waiting for first batches"),
    ],
)
def test_the_first_words_are_about_what_the_verdict_is_about(
    bottleneck: str, where: str | None, expected: str
) -> None:
    found = make_session(verdict=make_verdict(bottleneck=bottleneck, where=where))
    assert title(found).label == expected


def inconclusive(**overrides: Any) -> Session:
    verdict = make_verdict(bottleneck="inconclusive", severity="unknown")
    return make_session(**{"verdict": verdict, "findings": [], **overrides})


RAISED = Script(path="train.py", args=[], outcome="raised", status=1)
TORCH = {
    "environment": records.make_environment(keras_backend="torch"),
    "breakdown": records.make_breakdown(input_wait=1.0),
}
LEFT_OPEN = make_session(
    verdict=make_verdict(severity="ok"),
    findings=[make_finding(trial=trial_sessions.UNDECIDED)],
    trials=trial_sessions.make_run(budget_s=60.0),
)


@pytest.mark.parametrize(
    "made",
    [
        make_session(),
        factories.make_compute_bound_session(),
        nothing_measured(),
        inconclusive(script=RAISED, breakdown=None),
    ],
)
def test_nothing_where_there_is_something_to_do_nothing_to_gain_or_no_run(made: Session) -> None:
    assert what_else(made) == []


def run_of(path: str, **overrides: Any) -> Session:
    values: dict[str, Any] = {"path": path, "args": [], "outcome": "stopped", **overrides}
    return make_session(script=Script(**values))


@pytest.mark.parametrize(
    ("made", "directory", "command"),
    [
        (run_of("my train.py", args=["--lr", "1e-3"]), "reports/my train",
         "pipediag analyze 'my train.py' --lr 1e-3"),
        (run_of("package.train", module=True), "out", "pipediag analyze -o out -m package.train"),
        (factories.make_compute_bound_session(), None, "pipediag check reports/train"),
        (inconclusive(steps=records.make_steps(count=10)), None,
         "pipediag analyze --steps 200 train.py"),
        (make_session(
            script=Script(path="train.py", args=[], outcome="finished", status=0),
            findings=[make_finding(edit=make_edit("map"))],
        ), None, "pipediag analyze --rerun train.py"),
        (make_session(patch=Patch(edits=["map"], diff="+x\n")), "my out", "pipediag fix 'my out'"),
        (LEFT_OPEN, None, "pipediag analyze --budget 180 train.py"),
    ],
)  # fmt: skip
def test_the_next_command(made: Session, directory: str | None, command: str) -> None:
    _, found = next_command(made, Path(directory) if directory else None)
    assert found == command


@pytest.mark.parametrize(
    "made", [inconclusive(script=RAISED, breakdown=None), inconclusive(**TORCH)]
)
def test_no_command_would_end_otherwise(made: Session) -> None:
    assert next_command(made, None) is None


def test_an_analysis_that_a_program_called_is_made_by_no_command() -> None:
    called = run_of("notebook.py", call="analyze")
    patched = called.but(patch=Patch(diff="-a\n+b\n"))
    assert next_command(called, Path("saved")) is None
    assert next_command(patched, None) is None
    _, found = next_command(patched, Path("saved"))
    assert found == "pipediag fix saved"


@pytest.mark.parametrize(
    ("trial", "status"),
    [
        (trial_sessions.REFUTED, "fail"),
        (trial_sessions.REFUTED, "informative"),
        (trial_sessions.UNDECIDED, "fail"),
    ],
)
@pytest.mark.parametrize("beside", [[], [make_finding("parallel-map", edit=make_edit("map"))]])
def test_no_report_advises_what_its_trial_left_open_or_refuted(
    trial: Trial, status: str, beside: list[Finding]
) -> None:
    """Neither above the findings nor in them, but for a card that says that it is not advised."""
    advised = "Mend it by a cache."
    edit = trial_sessions.CACHE
    finding = make_finding("missing-cache", advice=advised, edit=edit, trial=trial, status=status)
    made = make_session(findings=[], trials=trial_sessions.make_run())
    session = concluded(made, [finding, *beside])
    page = Page(render(session))
    top, *_ = page.find("section")
    assert advised not in top.words()
    for card in page.find("article"):
        said, _, after = " ".join(card.words().split()).partition(advised)
        assert not after or said.endswith(
            ("Not worth it here: ", "because its trial was inconclusive: ")
        )
    assert advised not in on_terminal(
        lambda console: render_summary(session, console, output_directory=None), width=200
    )
    assert advised not in markdown.render(session)
