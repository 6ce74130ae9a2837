"""The fixture `pipediag`: what fails a test, what skips it, and what a person reads then."""

from __future__ import annotations

import pytest

from pipediag.errors import PipediagError
from pipediag.session.store import save_session
from tests.factories import make_compute_bound_session, make_host, make_session, make_verdict
from tests.pytest_plugin.conftest import Library

pytest_plugins = ["pytester"]

NOT_INPUT_BOUND = """
def test_speed(pipediag):
    pipediag.assert_not_input_bound("data", "model")
"""


def judging(*limits: str) -> str:
    """A test that measures once."""
    lines = ["def test_speed(pipediag):", "    result = pipediag.profile('data', 'model')"]
    return "\n".join([*lines, *(f"    {one}" for one in limits)])


def output(pytester: pytest.Pytester, test: str, *options: str) -> str:
    pytester.makepyfile(test_it=test)
    return pytester.runpytest_inprocess("-rs", *options).stdout.str()


def test_what_keeps_up_passes_and_leaves_nothing(
    pytester: pytest.Pytester, library: Library
) -> None:
    library.session = make_compute_bound_session()
    pytester.makepyfile(test_it=NOT_INPUT_BOUND)
    pytester.runpytest_inprocess().assert_outcomes(passed=1)
    assert library.calls == [("analyze", ("data", "model"), {"epochs": 1000, "budget": 0.0})]
    assert not (pytester.path / "reports").exists()


def test_a_failure_says_what_to_act_on(pytester: pytest.Pytester, library: Library) -> None:
    verdict = make_verdict(file="train.py", line=12, next_steps=["Write it in TensorFlow."])
    library.session = make_session(verdict=verdict)
    said = output(pytester, NOT_INPUT_BOUND)

    [report] = (pytester.path / "reports" / "pytest").glob("*/report.html")
    assert (report.parent / "session.json").exists()
    told = [line.removeprefix("E   ") for line in said.splitlines() if line.startswith("E   ")]
    assert [line.strip() for line in told] == [
        "Failed: Input wait: 70.0 % of the step (95 % interval 69.0 to 71.0 %), over the limit of "
        "20 %.",
        f"Verdict: {verdict.summary} ({verdict.confidence} confidence)",
        "Line: train.py:12",
        "Do first: Write it in TensorFlow.",
        f"Report: {report.relative_to(pytester.path)}",
    ]


@pytest.mark.parametrize(("percent", "outcome"), [(60, "failed"), (70, "skipped"), (71, "passed")])
def test_the_interval_decides(
    pytester: pytest.Pytester, library: Library, percent: int, outcome: str
) -> None:
    test = NOT_INPUT_BOUND.replace('"model"', f'"model", max_percent={percent}')
    pytester.makepyfile(test_it=test)
    pytester.runpytest_inprocess().assert_outcomes(**{outcome: 1})


@pytest.mark.parametrize("limit", [20, 90])
def test_beside_other_programs_nothing_is_decided(
    pytester: pytest.Pytester, library: Library, limit: int
) -> None:
    library.session = make_session(host=make_host(cores_of_others=0.52, cores_allowed=2.0))
    said = output(pytester, NOT_INPUT_BOUND.replace('"model"', f'"model", {limit}'), "-vv")
    assert "1 skipped" in said
    assert "Other programs used 26 % of the CPUs; more than 25 % spoils a measurement." in said
    assert "Input wait: 70.0 % of the step" in said


def test_a_refusal_is_its_sentence(pytester: pytest.Pytester, library: Library) -> None:
    library.session = PipediagError("the model is not compiled, so it can't train.")
    said = output(pytester, NOT_INPUT_BOUND)
    assert "Failed: the model is not compiled, so it can't train." in said
    assert "During handling" not in said
    assert "measurements.py" not in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("", "PipediagError: No limit was given."),
        ("max_input_wait=3", 'has the unknown key "max-input-wait". Valid keys: '),
        ("max_overhead_percent='a'", "a wrong value: max-overhead-percent: "),
        ("rules={'no-rule': 'warn'}", '"no-rule", which is not a rule of pipediag'),
    ],
)
def test_a_limit_that_is_none_is_an_error_of_the_test(
    pytester: pytest.Pytester, library: Library, arguments: str, said: str
) -> None:
    test = judging(f"pipediag.assert_within(result, {arguments})")
    assert said in output(pytester, test)


@pytest.mark.parametrize(("percent", "outcome"), [(80, "passed"), (20, "failed")])
def test_the_projects_limits_are_those_of_check(
    pytester: pytest.Pytester, library: Library, percent: int, outcome: str
) -> None:
    library.session = make_session(findings=[])
    pytester.makepyprojecttoml(f"[tool.pipediag]\nmax-input-wait-percent = {percent}\n")
    pytester.makepyfile(test_it=judging("pipediag.assert_passes(result)"))
    pytester.runpytest_inprocess().assert_outcomes(**{outcome: 1})


def test_without_a_model_the_pipeline_is_measured_alone(
    pytester: pytest.Pytester, library: Library
) -> None:
    test = "def test_it(pipediag):\n    assert pipediag.profile('data', budget=3).verdict"
    pytester.makepyfile(test_it=test)
    pytester.runpytest_inprocess().assert_outcomes(passed=1)
    assert library.calls == [("analyze_input", ("data",), {"budget": 3})]


def test_a_recorded_session_can_be_judged_where_it_is(pytester: pytest.Pytester) -> None:
    recorded = pytester.path / "kept"
    recorded.mkdir()
    save_session(make_session(), recorded / "session.json")
    test = """
import pipediag as library

def test_it(pipediag):
    pipediag.assert_within(library.load("kept"), max_input_wait_percent=20)
"""
    said = output(pytester, test)
    assert "Session: kept" in said
    (recorded / "report.html").touch()
    assert "Report: kept/report.html" in output(pytester, test)
    assert not (pytester.path / "reports").exists()


def test_each_measurement_of_a_test_has_its_report(
    pytester: pytest.Pytester, library: Library
) -> None:
    test = """
import pytest

@pytest.mark.parametrize("name", ["a/b", "a:b"])
def test_speed(pipediag, name):
    for _ in range(2):
        with pytest.raises(pytest.fail.Exception):
            pipediag.assert_not_input_bound("data", "model")
"""
    pytester.makepyfile(test_it=test)
    pytester.runpytest_inprocess().assert_outcomes(passed=2)
    found = list((pytester.path / "reports" / "pytest").glob("**/report.html"))
    assert len(found) == 4
    assert sum(path.parent.name == "2" for path in found) == 2
