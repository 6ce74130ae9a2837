"""Limits on parts of the run."""

from __future__ import annotations

import pytest

from pipediag.facts.names import RUN_PART
from pipediag.gate.config import GateConfig
from pipediag.gate.evaluation import evaluate
from pipediag.gate.run_limits import run_limit_checks
from pipediag.session.model import Session
from pipediag.vocabulary import RUN_PARTS, RunPartName
from tests.factories import make_session
from tests.ledgers import make_part, make_run


def session_of_a_run() -> Session:
    """Forty percent of it waits for first batches, on two rows; a tenth compiles."""
    return make_session(
        run=make_run(
            make_part("epoch_start", 30.0, line=12, ci95_percent=(28.0, 33.0)),
            make_part("epoch_start", 10.0, what="making the iterator", line=20),
            make_part("compile", 10.0),
        )
    )


def limits(**percents: float) -> GateConfig:
    return GateConfig.model_validate({"max-run-percent": percents})


@pytest.mark.parametrize(
    ("limit", "outcome"),
    [(37.9, "fail"), (38.0, "inconclusive"), (42.9, "inconclusive"), (43.0, "pass")],
)
def test_a_part_is_judged_by_its_whole_interval(limit: float, outcome: str) -> None:
    (check,) = run_limit_checks([session_of_a_run()], limits(epoch_start=limit))

    assert check.outcome == outcome
    assert (check.value, check.interval, check.limit) == (40.0, (38.0, 43.0), limit)


@pytest.mark.parametrize(("limit", "outcome"), [(9.9, "fail"), (10.0, "pass")])
def test_what_was_timed_once_is_what_it_is(limit: float, outcome: str) -> None:
    (check,) = run_limit_checks([session_of_a_run()], limits(compile=limit))

    assert (check.outcome, check.interval) == (outcome, (10.0, 10.0))


@pytest.mark.parametrize(
    ("limit", "outcome"), [(8.9, "fail"), (9.1, "inconclusive"), (11.1, "pass")]
)
def test_a_projection_without_limits_is_a_tenth_in_doubt(limit: float, outcome: str) -> None:
    row = make_part("compile", 10.0, basis="projected")
    (check,) = run_limit_checks([make_session(run=make_run(row))], limits(compile=limit))

    assert (check.outcome, check.interval) == (outcome, (9.0, 11.0))


def test_a_broken_limit_points_to_the_costliest_line() -> None:
    (check,) = run_limit_checks([session_of_a_run()], limits(epoch_start=20))

    assert (check.name, check.line) == ("max-run-percent.epoch-start", 12)
    assert check.sentence == (
        "Waiting for first batches: 40.0 % of the run "
        "(95 % interval 38.0 to 43.0 %), over the limit of 20 %."
    )


def test_a_part_that_never_came_passes() -> None:
    (check,) = run_limit_checks([session_of_a_run()], limits(evaluation=0))
    assert check.outcome == "pass"


def test_without_a_ledger_nothing_is_decided() -> None:
    session = make_session(run=None, run_missing="Nothing was told of it.")
    (check,) = run_limit_checks([session], limits(compile=5))

    assert check.outcome == "inconclusive"
    assert check.sentence == "Tracing and compiling was not measured: Nothing was told of it."


@pytest.mark.parametrize("part", RUN_PARTS)
def test_each_part_can_be_limited(part: RunPartName) -> None:
    assert part in RUN_PART
    (check,) = run_limit_checks([session_of_a_run()], GateConfig(max_run_percent={part: 100.0}))
    assert check.name == f"max-run-percent.{part.replace('_', '-')}"


def test_the_gate_asks_them_beside_a_verdict_about_the_steps() -> None:
    names = [check.name for check in evaluate(session_of_a_run(), limits(compile=5)).checks]

    assert "max-run-percent.compile" in names
    assert "verdict" in names
