"""What the benchmarks conclude, and that scripts and expectations fit together."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.bounds import measured_bounds
from benchmarks.diagnosis import SCRIPTS, judge, labelled
from benchmarks.hook_cost import hook_cost
from benchmarks.on_the_way import OnTheWay
from benchmarks.promises import Row
from benchmarks.promises import compared as compared_promise
from benchmarks.public_scripts.made_data import KINDS
from benchmarks.public_scripts.scripts import (
    SourceError,
    changed,
    from_notebook,
    public_scripts,
)
from benchmarks.run_ledger import Judged, Parts, Stamps, compared, compared_with_native
from pipediag.runner.native_runs import Obtained
from pipediag.session.findings import Finding, Patch
from pipediag.session.ledger import Run, RunGain, RunPart
from pipediag.session.model import Session
from pipediag.session.trials import Trial
from pipediag.trials.statistics import Estimate
from tests.factories import make_finding, make_loop, make_session, make_verdict
from tests.samples.expectation import Expectation, all_expectations, marked_lines, read_expectation
from tests.trials.bench import make_edit


@pytest.fixture
def expected(tmp_path: Path) -> Expectation:
    script = (
        "import keras\n\ndata = data.map(f)  # pipediag: map\nmodel.fit(data)  # pipediag: fit\n"
    )
    (tmp_path / "train.py").write_text(script, encoding="utf-8")
    path = tmp_path / "train.expect.toml"
    path.write_text(
        'shows = "s"\norigin = "o"\nmeasured = "m"\n'
        '[verdict]\nbottleneck = ["input"]\nline = "map"\nwhere = "steps"\nwhere_line = "fit"\n'
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
    part = {"where": "steps", "where_percent": 60.0, "where_file": "train.py", "where_line": 4}
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


def test_a_bound_is_broken_where_the_whole_interval_lies_above_it() -> None:
    measured = [("a", 1.9), ("b", 2.05), ("c", 2.2), ("a", 1.5)]
    found = session(
        *(confirmed("x", speed, edit=make_edit(e), speedup_at_most=2.0) for e, speed in measured),
        make_finding(edit=make_edit("untried"), speedup_at_most=2.0),
    )
    assert [held for _, held in measured_bounds(found)] == [True, True, False]


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [(1.7, 1.9, "kept"), (2.3, 2.5, "more"), (1.2, 1.7, "less"), (2.1, 2.5, "kept")],
)
def test_a_promise_is_kept_where_the_intervals_overlap(
    low: float, high: float, outcome: str
) -> None:
    gain = RunGain(
        speedup=2.0, ci95=(1.8, 2.2), before_s=20, after_s=10, basis="measured", scope="run"
    )
    patch = Patch(diff="-a", edits=["a"], files=[], left_out=[])
    found = make_session(findings=[confirmed("x", edit=make_edit("a"), for_run=gain)], patch=patch)
    native = Obtained(Estimate((low + high) / 2, low, high, 3), script_s=20.0)
    row = compared_promise(found, native, Row("one", ["x"], "", [], [], "a machine"))
    assert row.outcome == outcome
    assert row.good == (outcome != "less")


@pytest.mark.parametrize(("hooked_us", "judgement"), [(0, "met"), (5, "met"), (30, "missed")])
def test_the_cost_of_hooks_is_found_on_a_machine_that_drifts(
    hooked_us: int, judgement: str
) -> None:
    stretches = np.arange(120)
    durations = 1e6 * (1 + 0.0002 * stretches) + 1e3 * hooked_us * (stretches % 2 == 0)
    stamps = np.concatenate(([0], np.cumsum(durations.repeat(100)))).astype(np.int64)
    cost = hook_cost(stamps, np.append(stretches.repeat(100) % 2 == 1, [True]))
    assert cost.hooks_us == pytest.approx(hooked_us, abs=1.0)
    assert cost.judgement == judgement


LEGS: tuple[Parts, ...] = (
    {"startup": 2.0, "before_training": 1.0, "compile": 1.0, "steps": 4.0, "epoch_end": 1.0},
    {"between_loops": 2.0, "compile": 1.0, "steps": 6.0},
    {"after_training": 1.5},
)


def ledger(parts: Parts, projected: float | None = None) -> Run:
    total = sum(parts.values())
    return Run(
        scope="run",
        total_s=total,
        projected_total_s=projected,
        pipediag_s=3.0,
        parts=[
            RunPart(part=part, seconds=s, percent=100 * s / total, basis="measured")
            for part, s in parts.items()
        ],
    )


def test_a_ledger_is_compared_with_the_same_and_with_the_native_run() -> None:
    stamps = Stamps(began_s=100.0, begun=2, legs=LEGS)
    # The stamps have 3 s of steps more than the ledger: pipediag's own work within the script.
    ended = ledger({**stamps.parts(), "steps": 7.0})
    # Without those, 4 s from the start-up to the end of the first training: 1 s too many.
    halfway = OnTheWay(ledger({"startup": 9.0, "steps": 5.0}, projected=14.0), int(103e9), 1)
    one = compared(ended, stamps, halfway)
    assert all(error == pytest.approx(0.0) for error in one.same_run.values())
    assert one.same_total_error == pytest.approx(25.0)
    # The native run has 7 s there.
    stopped = ledger({"startup": 99.0, "steps": 7.0, "epoch_end": 0.7}, projected=106.7)
    one = compared_with_native(one, ended, stopped, 1, stamps)
    assert one.total_error == pytest.approx(10.0)
    misses = Judged.of("folds", [one]).misses
    assert "the projected total is +25.0 % off the same run" in misses
    assert not any("the same run's stamps" in miss for miss in misses)


@pytest.mark.parametrize("script", sorted(SCRIPTS.glob("*.py")), ids=lambda script: script.stem)
def test_a_labelled_script_has_a_docstring_and_an_expectation(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text))
    assert "import pipediag" not in text
    assert script.with_suffix(".expect.toml").exists()


@pytest.mark.parametrize("expected", all_expectations(SCRIPTS), ids=lambda expected: expected.name)
def test_an_expectation_fits_its_script_and_itself(expected: Expectation) -> None:
    lines = (expected.verdict_line, expected.where_line, expected.loop_line)
    named = {*lines, *expected.rule_lines.values()} - {None}
    assert named <= set(marked_lines(expected.script))
    trials = expected.trials
    assert not set(trials.confirmed) & {*expected.must_be_silent, *expected.must_not_fail}
    assert trials.none or trials.confirmed or trials.not_confirmed


def test_each_name_is_used_once() -> None:
    names = [expected.name for expected in labelled()]
    assert len(names) == len(set(names))


def test_the_table_of_public_scripts_is_whole() -> None:
    for script in public_scripts():
        assert len(script.sha256) == 64
        assert len(script.commit) == 40
        truth = script.truth
        assert all([script.changed, truth.bottleneck, truth.advice, truth.how]), script.name
        assert {word.partition(":")[0] for word in script.data} <= set(KINDS)
    with pytest.raises(SourceError, match="nobody"):
        public_scripts(["nobody"])


def test_what_stays_of_a_public_script_keeps_its_line() -> None:
    cells = [["%load_ext x\n", "a = 1"], ["!pip install x\n", "b = a % 2"]]
    notebook = {"cells": [{"cell_type": "code", "source": lines} for lines in cells]}
    text = from_notebook(json.dumps(notebook))
    assert text.split("\n") == ["# %load_ext x", "a = 1", "", "# !pip install x", "b = a % 2", ""]
    script = SimpleNamespace(name="x", put=((2, 3, "ours"),), swap=((4, "old", "new"),), until=5)
    assert changed(script, "a\nb\nc\nd = old\ne") == "a\nours\n\nd = new\n"
    script.put = ((1, 1, "x\ny"),)
    with pytest.raises(SourceError, match="too few"):
        changed(script, "a\nb")
