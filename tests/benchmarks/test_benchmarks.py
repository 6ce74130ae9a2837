"""What the benchmarks conclude, and that scripts and expectations fit together."""

from __future__ import annotations

import ast
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from benchmarks import aa
from benchmarks.diagnosis import SCRIPTS, judge
from benchmarks.public_scripts.made_data import KINDS
from benchmarks.public_scripts.scripts import SourceError, public_scripts
from pipediag.session.findings import Finding
from pipediag.session.messages import RunSettings, TrialsAwaited
from pipediag.session.model import Session
from pipediag.session.trials import Trial
from pipediag.trials import ExecutorLostError
from tests.factories import make_finding, make_loop, make_session, make_verdict
from tests.recordings import make_recording
from tests.samples.expectation import SAMPLES, Expectation, all_expectations, read_expectation


@pytest.fixture
def expected(tmp_path: Path) -> Expectation:
    script = (
        "import keras\n\ndata = data.map(f)  # pipediag: map\nmodel.fit(data)  # pipediag: fit\n"
    )
    (tmp_path / "train.py").write_text(script, encoding="utf-8")
    path = tmp_path / "train.expect.toml"
    path.write_text(
        'measured = "m"\n'
        '[verdict]\nbottleneck = ["input"]\nline = "map"\nwhere = ["steps"]\nwhere_line = "fit"\n'
        '[loop]\nkind = ["keras"]\nline = "fit"\n'
        '[trials]\nconfirmed = ["parallel-map"]\nnot_confirmed = ["small-batch"]\n',
        encoding="utf-8",
    )
    return read_expectation(path)


def confirmed(rule: str, speedup: float = 2.0, **more: Any) -> Finding:
    ci95 = (speedup - 0.1, speedup + 0.1)
    trial = Trial(state="confirmed", reason=None, speedup=speedup, ci95=ci95, basis="step")
    return make_finding(rule=rule, trial=trial, **more)


def session(*findings: Finding, **verdict: Any) -> Session:
    place = {"file": "train.py", "line": 3, "op_id": "map_0", "bottleneck": "input"}
    part = {"where": "steps", "where_file": "train.py", "where_line": 4}
    return make_session(
        verdict=make_verdict(**{**place, **part, **verdict}),
        loops=[make_loop(file="train.py", line=4)],
        findings=list(findings),
    )


@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        (session(confirmed("parallel-map")), None),
        (session(confirmed("missing-cache"), confirmed("parallel-map")), "confirmed_right"),
        (session(confirmed("parallel-map"), line=4), "line_right"),
        (session(confirmed("parallel-map"), bottleneck="compute"), "verdict_right"),
        (session(confirmed("parallel-map"), where_line=3), "where_right"),
    ],
)
def test_a_session_is_right_if_verdict_places_and_first_confirmed_finding_are(
    expected: Expectation, found: Session, wrong: str | None
) -> None:
    outcome = judge(expected, found, trials=True)
    checked = ("verdict_right", "line_right", "where_right", "confirmed_right")
    assert [name for name in checked if not getattr(outcome, name)] == ([wrong] if wrong else [])
    assert outcome.right_at_first_place == (wrong is None)
    assert bool(outcome.misses) == (wrong is not None)


def test_a_run_without_trials_and_a_false_confirmation(expected: Expectation) -> None:
    assert judge(expected, session(make_finding()), trials=False).misses == ()
    false = judge(expected, session(confirmed("small-batch")), trials=True)
    assert false.false == ("small-batch",)
    assert not false.right_at_first_place


LABELLED = [*sorted(SCRIPTS.glob("*.py")), *sorted(SAMPLES.glob("*.py"))]


@pytest.mark.parametrize("script", LABELLED, ids=lambda script: script.stem)
def test_a_labelled_script_has_a_docstring_and_an_expectation(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text))
    assert "import pipediag" not in text
    assert script.with_suffix(".expect.toml").exists()


@pytest.mark.parametrize(
    "expected",
    [*all_expectations(SCRIPTS), *all_expectations()],
    ids=lambda expected: expected.name,
)
def test_an_expectation_fits_its_script_and_itself(expected: Expectation) -> None:
    verdict, rules, trials = expected.verdict, expected.rules, expected.trials
    loop_line = expected.loop.line if expected.loop else None
    named = {verdict.line, verdict.where_line, loop_line, *rules.lines.values()} - {None}
    assert named <= set(expected.marks)
    assert not set(trials.confirmed) & {*rules.silent, *rules.not_fail, *trials.not_confirmed}
    assert not (trials.none and trials.confirmed)
    assert trials.none or not trials.unless
    if expected.script.parent == SCRIPTS:
        assert trials.none or trials.confirmed or trials.not_confirmed


def test_the_table_of_public_scripts_is_whole() -> None:
    for script in public_scripts():
        assert len(script.sha256) == 64
        assert len(script.commit) == 40
        truth = script.truth
        assert all([script.changed, truth.bottleneck, truth.advice, truth.how]), script.name
        assert {word.partition(":")[0] for word in script.data} <= set(KINDS)
    with pytest.raises(SourceError, match="nobody"):
        public_scripts(["nobody"])


def test_edits_that_do_nothing_are_tried_in_a_loop_as_it_was_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def gone(*_: object) -> None:
        raise ExecutorLostError("the script's process is gone.")

    def supervise(settings: RunSettings, **told: Any) -> None:
        recording = make_recording()
        settings.recording_path.write_text(json.dumps(asdict(recording)), encoding="utf-8")
        told["on_trials"](TrialsAwaited(recording.loops[0].id, False, False, 0), gone)

    monkeypatch.setattr(aa, "supervise", supervise)
    tried = aa.tried_live(Path("train.py"), budget_s=1.0)
    assert {trial.state for trial in tried.values()} == {"not_tried"}
