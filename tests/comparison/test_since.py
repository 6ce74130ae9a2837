from __future__ import annotations

from pipediag.comparison.since import since
from tests import factories, records
from tests.comparison.sides import run_of
from tests.records import make_steps

GONE = factories.make_finding("missing-cache", title="Work is repeated", line=12)
NEW = factories.make_finding("small-batch", title="The batch is small", line=13)


def test_step_and_run_and_what_came_and_went() -> None:
    lines = since(run_of(20.0, findings=[GONE]), run_of(10.0, findings=[NEW]))
    assert lines == [
        "Step: 20 to 10 ms, -50.0 %",
        "Run: 40 to 20 s, -50.0 %",
        f"Gone: missing-cache at {factories.SCRIPT}:12: Work is repeated.",
        f"New: small-batch at {factories.SCRIPT}:13: The batch is small.",
    ]


def test_the_change_is_that_of_the_figures_beside_it() -> None:
    earlier = run_of(20.0, steps=make_steps(mean_ms=20.0, samples_ms=[10.0] * 39 + [410.0]))
    step, *_ = since(earlier, run_of(10.0))
    assert step == "Step: 20 to 10 ms, -50.0 %"


def test_two_scripts_are_not_before_and_after() -> None:
    script = factories.make_session().script
    other = script.model_copy(update={"args": ["--small"]})
    assert since(run_of(20.0, script=script), run_of(10.0, script=other)) == []


def test_nor_are_two_machines_or_a_run_that_failed() -> None:
    elsewhere = records.make_environment(fingerprint="another")
    assert since(run_of(20.0), run_of(10.0, environment=elsewhere)) == []
    script = run_of().script.model_copy(update={"outcome": "failed", "status": 1})
    failed = run_of(20.0, script=script, steps=None, run=None)
    assert since(failed, run_of(10.0, script=script)) == []
