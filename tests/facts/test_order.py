"""What to deal with first."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipediag.facts.order import SourcePlace, concluded, culprit_place, in_order, worth_doing
from pipediag.facts.run_gain import gain_at_most
from pipediag.gate.config import GateConfig
from pipediag.gate.evaluation import finding_checks
from pipediag.reporters.words.advice import group
from pipediag.session.findings import Finding
from pipediag.session.model import Script, Session
from pipediag.session.trials import Trial
from pipediag.trials.candidates import candidates
from pipediag.vocabulary import (
    Bottleneck,
    FindingSeverity,
    FindingStatus,
    FindingSubject,
    RunPartName,
    TrialState,
)
from tests import factories
from tests.factories import make_finding, make_session, make_verdict
from tests.ledgers import make_part, make_run
from tests.trials.bench import make_edit

SPEEDUPS = st.none() | st.floats(min_value=0.5, max_value=50.0)
TRIALS = st.builds(
    Trial, state=st.sampled_from(get_args(TrialState)), reason=st.none(), speedup=SPEEDUPS
)
RULES = [f"rule-{index}" for index in range(6)]
FINDINGS = st.lists(
    st.builds(
        make_finding,
        st.sampled_from(RULES),
        status=st.sampled_from(get_args(FindingStatus)),
        severity=st.sampled_from(get_args(FindingSeverity)),
        subject=st.sampled_from(get_args(FindingSubject)),
        speedup_at_most=SPEEDUPS,
        trial=TRIALS,
        needs_first=st.none() | st.sampled_from(RULES),
    ),
    max_size=9,
).map(lambda found: [_numbered(finding, index) for index, finding in enumerate(found)])


def _numbered(finding: Finding, index: int) -> Finding:
    return finding.but(title=f"Title {index}", advice=f"{index}.", edit=make_edit(f"edit{index}"))


def made(rule: str, **overrides: Any) -> Finding:
    return make_finding(
        rule,
        **{"advice": rule, "severity": "warn", "speedup_at_most": None, "op_id": None, **overrides},
    )


def tried(state: TrialState, speedup: float | None = None) -> Trial:
    return Trial(state=state, reason=None, speedup=speedup)


def rules_of(findings: list[Finding]) -> list[str]:
    return [finding.rule for finding in in_order(findings)]


def steps_of(findings: list[Finding]) -> list[str]:
    return concluded(mild(), findings).verdict.next_steps


def mild(**overrides: Any) -> Session:
    """One whose verdict needs no advice where no finding has any."""
    return make_session(verdict=make_verdict(severity="ok"), **overrides)


def test_of_a_script_that_failed_no_speed_is_advised_first() -> None:
    script = Script(path="t.py", args=[], outcome="raised", status=1, detail="ValueError: no rows")
    failed = make_session(script=script, steps=None, breakdown=None)
    slow = make_finding("script-work", advice="Keep it as a file.")
    wrong = make_finding("embedding-ids", subject="correctness", advice="Mend the ids.")

    assert steps_of([slow, wrong]) == ["Mend the ids.", "Keep it as a file."]
    assert concluded(failed, [slow, wrong]).verdict.next_steps == ["Mend the ids."]


@given(FINDINGS)
def test_the_first_advice_is_the_first_finding_to_act_on_wherever_it_is_read(
    findings: list[Finding],
) -> None:
    session = concluded(make_session(findings=[]), findings)
    acting = [finding for finding in session.findings if worth_doing(finding)]
    steps = session.verdict.next_steps
    assert sorted(f.title for f in session.findings) == sorted(f.title for f in findings)
    if not acting:
        return
    first = acting[0]
    assert steps[0] == first.advice
    assert session.findings[0] == first
    assert group(session).to_do[0] == first
    assert candidates(session.findings)[0].edit == first.edit
    level = GateConfig(rules=dict.fromkeys(RULES, "error"))
    named = [check for check in finding_checks(session, level) if check.outcome == "fail"]
    assert first.status != "fail" or named[0].name == first.rule


def test_what_makes_results_wrong_comes_first_whatever_its_trial_says() -> None:
    findings = [
        made("fast", trial=tried("confirmed", 3.0)),
        made("gpu", subject="precondition", severity="error"),
        made("frozen", subject="correctness", trial=tried("refuted", 0.8)),
    ]
    assert rules_of(findings) == ["frozen", "gpu", "fast"]
    assert steps_of(findings)[0] == "frozen"


def test_confirmed_by_measured_gain_then_untried_by_severity_and_by_what_is_known_of_it() -> None:
    findings = [
        made("refuted", speedup_at_most=9.0, trial=tried("refuted", 1.0)),
        made("open", severity="error", trial=tried("inconclusive", 1.2)),
        made("notes", severity="info", speedup_at_most=8.0),
        made("unknown"),
        made("batch", speedup_at_most=1.9),
        made("eager", speedup_at_most=9.0),
        made("little", severity="info", trial=tried("confirmed", 1.1)),
        made("much", trial=tried("confirmed", 1.9)),
        made("known", status="informative", severity="info", trial=tried("confirmed", 1.5)),
        made("passed", status="pass", severity="info"),
    ]
    ordered = ["much", "known", "little", "eager", "batch", "unknown", "notes"]
    assert rules_of(findings) == [*ordered, "open", "refuted", "passed"]
    assert steps_of(findings) == ordered[:5]


def test_gains_that_cannot_be_told_apart_are_ordered_alike_in_every_run() -> None:
    def confirmed(rule: str, low: float, high: float, **overrides: Any) -> Finding:
        trial = tried("confirmed", (low + high) / 2).but(ci95=(low, high))
        return made(rule, status="fail", trial=trial, **overrides)

    unconditional = confirmed("parallel-map", 2.8, 3.4)
    conditional = confirmed("missing-cache", 2.9, 3.6, condition="if the map is the same")
    informing = confirmed("host-overhead", 3.0, 3.5).but(status="informative")
    larger = confirmed("small-batch", 3.7, 4.0)

    twice = confirmed("missing-cache", 12.0, 13.0, condition="if the map is the same")
    assert rules_of(in_order([twice, unconditional])) == ["missing-cache", "parallel-map"]
    nearly = confirmed("missing-cache", 3.6, 3.8, condition="if the map is the same")
    assert rules_of(in_order([nearly, unconditional])) == ["parallel-map", "missing-cache"]

    ordered = in_order([conditional, informing, unconditional, larger])

    assert rules_of(ordered) == ["small-batch", "parallel-map", "missing-cache", "host-overhead"]

    edit = make_edit("parallel-map:map")
    left_out = unconditional.but(edit=edit)
    ordered = in_order([conditional, left_out], dropped={edit.id})
    assert [one.rule for one in ordered] == ["missing-cache", "parallel-map"]


def test_what_was_confirmed_on_top_of_others_comes_behind_them() -> None:
    hidden = made("hidden", trial=tried("confirmed", 5.0).but(on_top_of=["first"]))
    findings = [hidden, made("first", trial=tried("confirmed", 2.0)), made("untried")]
    assert rules_of(findings) == ["first", "hidden", "untried"]


def test_a_small_gain_that_no_trial_confirmed_is_nothing_to_do_first() -> None:
    """Twice as fast in a tenth of the run is 1.05x for all of it."""
    run = make_run(make_part("compile", 10.0, file="train.py", line=20))
    small = made("small", part="compile", line=20, speedup_at_most=2.0)
    session = concluded(mild(run=run), [small])
    assert [finding.rule for finding in session.findings] == ["small"]
    assert session.verdict.next_steps == []
    assert steps_of([small]) == ["small"]
    seen = small.but(trial=tried("confirmed", 2.0))
    assert concluded(mild(run=run), [seen]).verdict.next_steps == ["small"]


def test_what_was_confirmed_by_itself_waits_for_nothing() -> None:
    proved = made("proved", needs_first="first", trial=tried("confirmed", 1.5))
    assert rules_of([made("first"), proved]) == ["proved", "first"]


@pytest.mark.parametrize(
    ("where", "evaluation_s", "of", "first"),
    [
        # The part that the verdict names goes before a smaller measured gain of another part,
        ("evaluation", 60.0, "steps", "costly-evaluation"),
        # but what is confirmed of that very part, or larger, goes first.
        ("evaluation", 60.0, "evaluation", "host-overhead"),
        ("steps", 60.0, "steps", "host-overhead"),
        ("evaluation", 2.0, "steps", "host-overhead"),
    ],
)
def test_a_confirmed_gain_of_a_part_and_advice_on_an_evaluation(
    where: RunPartName, evaluation_s: float, of: RunPartName, first: str
) -> None:
    run = make_run(make_part("evaluation", evaluation_s), make_part("steps", 20.0))
    session = make_session(run=run)
    verdict = session.verdict.but(where=where)
    session = session.but(verdict=verdict)
    seen = made("host-overhead", part=of, trial=tried("confirmed", 1.3))
    advised = made(
        "costly-evaluation", part="evaluation", for_run=gain_at_most(run, 0.8 * evaluation_s)
    )
    assert concluded(session, [seen, advised]).findings[0].rule == first


def test_advice_on_an_operation_that_a_trial_made_fast_is_no_next_step() -> None:
    found = made("parallel", op_id="map", trial=tried("confirmed", 4.0))
    less = made("lock", op_id="map", speedup_at_most=2.0)
    more = made("rewrite", op_id="map", speedup_at_most=9.0)
    elsewhere = made("batch", op_id="batch", speedup_at_most=2.0)
    assert steps_of([less, more, elsewhere, found]) == ["parallel", "rewrite", "batch"]


def place(verdict: dict[str, Any], **session: Any) -> SourcePlace | None:
    blank: dict[str, Any] = {"file": None, "line": None, "op_id": None}
    made = factories.make_verdict(**{**blank, **verdict})
    return culprit_place(factories.make_session(**{"verdict": made, "findings": [], **session}))


NAMED = {"file": "/p/train.py", "line": 12, "op_id": "map_0"}
OF_RUN = {"where_file": "/p/train.py", "where_line": 40}
ADVISED = {
    "findings": [
        make_finding(file="/p/other.py", line=1, trial=tried("refuted")),
        make_finding(file="/p/model.py", line=7, op_id=None),
    ]
}
SLOW_LOOP = {"loops": [factories.make_loop(file="/p/train.py", line=30)]}


@pytest.mark.parametrize(
    ("verdict", "session", "expected"),
    [
        ({**NAMED, "where": "steps"}, {}, SourcePlace("/p/train.py", 12, "map_0")),
        ({**NAMED, **OF_RUN, "where": "epoch_end"}, {}, SourcePlace("/p/train.py", 40)),
        ({}, ADVISED, SourcePlace("/p/model.py", 7)),
        ({"severity": "high"}, SLOW_LOOP, SourcePlace("/p/train.py", 30)),
        ({"severity": "ok"}, SLOW_LOOP, None),
    ],
)
def test_the_culprit_is_named_advised_or_the_slow_loop(
    verdict: dict[str, Any], session: dict[str, Any], expected: SourcePlace | None
) -> None:
    assert place(verdict, **session) == expected


def severe(verdict: dict[str, Any], **overrides: Any) -> Any:
    made = factories.make_verdict(**{"severity": "high", **verdict})
    return factories.make_session(**{"verdict": made, "findings": [], **overrides})


REFUTED = factories.make_finding(
    edit=make_edit("edit"), trial=Trial(state="refuted", reason=None, speedup=1.0)
)
TOO_LITTLE = factories.make_finding(speedup_at_most=1.01)


@pytest.mark.parametrize("findings", [[], [REFUTED], [TOO_LITTLE]])
@pytest.mark.parametrize("severity", ["high", "moderate"])
@pytest.mark.parametrize("bottleneck", get_args(Bottleneck))
@pytest.mark.parametrize("missing", [{}, {"host": None, "pipeline": None}, {"breakdown": None}])
def test_every_severe_verdict_leads_on(
    bottleneck: str, severity: str, missing: dict[str, Any], findings: list[Finding]
) -> None:
    session = severe({"bottleneck": bottleneck, "severity": severity}, **missing)
    assert concluded(session, findings).verdict.next_steps


@pytest.mark.parametrize("part", sorted(get_args(RunPartName)))
def test_every_part_of_the_run_leads_on(part: str) -> None:
    run = factories.make_run(parts=[factories.make_part(part, 8.0)])
    session = severe({"where": part, "where_file": factories.SCRIPT, "where_line": 31}, run=run)
    assert concluded(session, []).verdict.next_steps
