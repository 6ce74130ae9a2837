"""The configuration, and limits on step, run and speed-ups left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipediag.gate.config import GateConfig, load_config
from pipediag.gate.evaluation import limit_checks
from pipediag.gate.result import Check
from pipediag.session.edits import CompileCall, Edit
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.trials import Combined, Trial, TrialRun
from tests.factories import make_finding, make_session
from tests.ledgers import make_gain, make_part, make_run
from tests.records import make_breakdown


def only(config: GateConfig, session: Session) -> Check:
    (check,) = limit_checks(session, config)
    return check


def speedup_check(session: Session) -> Check:
    return only(GateConfig(max_confirmed_speedup_left=1.2), session)


@pytest.mark.parametrize(
    ("limit", "outcome"),
    [(68.9, "fail"), (69.0, "inconclusive"), (70.9, "inconclusive"), (71.0, "pass")],
)
def test_input_wait_is_judged_by_its_whole_interval(limit: float, outcome: str) -> None:
    # The session's input wait is 70 %, interval 69 to 71 %.
    check = only(GateConfig(max_input_wait_percent=limit), make_session())
    assert check.outcome == outcome
    assert (check.value, check.interval, check.limit) == (70.0, (69.0, 71.0), limit)


def test_overhead_adds_four_classes_and_their_intervals() -> None:
    session = make_session(
        breakdown=make_breakdown(
            input_wait=20.0, dispatch=4.0, python=3.0, compile=2.0, device_wait=6.0
        )
    )
    check = only(GateConfig(max_overhead_percent=10), session)
    assert check.value == pytest.approx(15.0)
    assert check.interval == pytest.approx((11.0, 19.0))
    assert check.outcome == "fail"


def test_a_class_that_was_not_measured_is_not_zero() -> None:
    breakdown = {
        name: share for name, share in make_breakdown().items() if name in ("input_wait", "python")
    }
    config = GateConfig(max_overhead_percent=50, max_input_wait_percent=50)
    input_wait, overhead = limit_checks(make_session(breakdown=breakdown), config)
    assert input_wait.outcome == "fail"
    assert overhead.outcome == "inconclusive"
    assert "lacks dispatch, compile, device_wait" in overhead.sentence


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


def test_a_broken_limit_points_to_the_costliest_line() -> None:
    check = only(limits(epoch_start=20), session_of_a_run())

    assert (check.name, check.line) == ("max-run-percent.epoch-start", 12)
    assert check.sentence == (
        "Waiting for first batches: 40.0 % of the run "
        "(95 % interval 38.0 to 43.0 %), over the limit of 20 %."
    )


AN_EDIT = Edit("missing-cache:map_0", "a cache", ())


def confirmed(speedup: float, **overrides: Any) -> Finding:
    ci95 = (speedup - 0.1, speedup + 0.1)
    trial = Trial(state="confirmed", reason=None, speedup=speedup, ci95=ci95, blocks=8)
    return make_finding("missing-cache", trial=trial, **overrides)


def together(speedup: float, low: float, high: float) -> Session:
    combined = Combined(findings=["cache"], speedup=speedup, ci95=(low, high))
    return make_session(combined=combined, findings=[confirmed(1.9)])


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [(1.3, 1.7, "fail"), (1.1, 1.7, "inconclusive"), (1.05, 1.2, "pass")],
)
def test_all_confirmed_edits_together_are_checked(low: float, high: float, outcome: str) -> None:
    check = speedup_check(together((low + high) / 2, low, high))
    assert (check.outcome, check.interval, check.limit) == (outcome, (low, high), 1.2)


def test_alone_the_largest_counts() -> None:
    check = speedup_check(make_session(findings=[confirmed(1.4), confirmed(2.0)]))
    assert (check.value, check.outcome) == (2.0, "fail")


def a_run() -> TrialRun:
    return TrialRun(loop_id="loop_0", consumer="training", budget_s=60.0, used_s=20.0)


CALL = Edit("compiled", "a compiled call", (CompileCall("train.py", 9, "model"),))


@pytest.mark.parametrize(
    "overrides",
    [
        {"condition": "if the generator yields the same data in every epoch"},
        {"effect_on_results": "changes a hyper-parameter"},
        {"effect_on_results": "not safe here"},
        {"for_run": make_gain(0.9, 10.0)},
        {"part": "evaluation"},
        {"part": "epoch_end", "edit": CALL},
    ],
)
def test_what_is_not_to_be_written_or_is_of_another_part_than_the_steps_is_not_left(
    overrides: dict[str, Any],
) -> None:
    other = confirmed(5.0, **overrides)
    check = speedup_check(make_session(trials=a_run(), findings=[other]))
    assert (check.value, check.outcome) == (1.0, "pass")
    check = speedup_check(make_session(findings=[other, confirmed(1.4)]))
    assert (check.value, check.outcome) == (1.4, "fail")


def test_where_trials_confirmed_nothing_nothing_is_left() -> None:
    check = speedup_check(make_session(trials=a_run(), findings=[make_finding(edit=AN_EDIT)]))
    assert (check.value, check.outcome) == (1.0, "pass")


def test_where_there_was_something_to_try_and_no_trial_nothing_is_known() -> None:
    check = speedup_check(
        make_session(trials_missing="No budget.", findings=[make_finding(edit=AN_EDIT)])
    )
    assert check.outcome == "inconclusive"
    assert check.sentence == "Confirmed speed-up left was not measured: No budget."


RULES = ["parallel-map", "retracing", "missing-cache"]


def write_pyproject(folder: Path, table: str) -> Path:
    path = folder / "pyproject.toml"
    path.write_text(table, encoding="utf-8")
    return path


def test_every_key_is_read(tmp_path: Path) -> None:
    path = write_pyproject(
        tmp_path,
        """
        [tool.pipediag]
        max-input-wait-percent = 20
        max-overhead-percent = 12.5
        fail-on = "warn"
        allow-inconclusive = true
        max-confirmed-speedup-left = 1.2
        max-slowdown-percent = 8
        [tool.pipediag.max-run-percent]
        epoch-start = 10
        compile = 2.5
        [tool.pipediag.rules]
        parallel-map = "off"
        missing-cache = "error"
        """,
    )
    assert load_config(path, RULES) == GateConfig(
        max_input_wait_percent=20.0,
        max_overhead_percent=12.5,
        max_confirmed_speedup_left=1.2,
        max_slowdown_percent=8.0,
        max_run_percent={"epoch_start": 10.0, "compile": 2.5},
        fail_on="warn",
        allow_inconclusive=True,
        rules={"parallel-map": "off", "missing-cache": "error"},
    )


def test_the_nearest_pyproject_upwards_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_pyproject(tmp_path, "[tool.pipediag]\nmax-input-wait-percent = 7\n")
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert load_config(None, RULES).max_input_wait_percent == 7.0


def test_the_command_line_wins() -> None:
    config = GateConfig(fail_on="error", allow_inconclusive=False)
    assert config.override(fail_on="warn").fail_on == "warn"
    assert config.override(allow_inconclusive=True).allow_inconclusive
    assert GateConfig(fail_on="warn").override() == GateConfig(fail_on="warn")
