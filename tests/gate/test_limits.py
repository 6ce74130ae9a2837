"""The configuration, and limits on step, run, idle devices, times and speed-ups left."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from pipediag.errors import PipediagError
from pipediag.gate.config import GateConfig, OnMachine, load_config
from pipediag.gate.limits import limit_checks
from pipediag.gate.result import Check
from pipediag.session.devices import DeviceActivity, DeviceGap
from pipediag.session.edits import Edit
from pipediag.session.findings import Finding
from pipediag.session.loops import Perturbation
from pipediag.session.model import Session
from pipediag.session.trials import Combined, Trial, TrialRun
from tests.factories import make_device, make_finding, make_session
from tests.ledgers import make_part, make_run
from tests.records import make_breakdown


def only(config: GateConfig, *sessions: Session) -> Check:
    (check,) = limit_checks(sessions, config)
    return check


def idle_check(*sessions: Session, most: float) -> Check:
    return only(GateConfig(max_device_idle_percent=most), *sessions)


def time_check(session: Session, most: float, fingerprint: str = "0123456789abcdef") -> Check:
    limits = OnMachine(fingerprint=fingerprint, max_step_ms=most)
    return only(GateConfig(on_machine=limits), session)


def speedup_check(*sessions: Session) -> Check:
    return only(GateConfig(max_confirmed_speedup_left=1.2), *sessions)


@pytest.mark.parametrize(
    ("limit", "outcome"),
    [
        (20.0, "fail"),
        (68.9, "fail"),
        (69.0, "inconclusive"),
        (70.0, "inconclusive"),
        (70.9, "inconclusive"),
        (71.0, "pass"),
        (80.0, "pass"),
    ],
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
    input_wait, overhead = limit_checks([make_session(breakdown=breakdown)], config)
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


@pytest.mark.parametrize(
    ("limit", "outcome"),
    [(37.9, "fail"), (38.0, "inconclusive"), (42.9, "inconclusive"), (43.0, "pass")],
)
def test_a_part_is_judged_by_its_whole_interval(limit: float, outcome: str) -> None:
    check = only(limits(epoch_start=limit), session_of_a_run())

    assert check.outcome == outcome
    assert (check.value, check.interval, check.limit) == (40.0, (38.0, 43.0), limit)


def test_a_broken_limit_points_to_the_costliest_line() -> None:
    check = only(limits(epoch_start=20), session_of_a_run())

    assert (check.name, check.line) == ("max-run-percent.epoch-start", 12)
    assert check.sentence == (
        "Waiting for first batches: 40.0 % of the run "
        "(95 % interval 38.0 to 43.0 %), over the limit of 20 %."
    )


def gap(ms: float, step: int | None, line: int | None = None) -> DeviceGap:
    file = None if line is None else "train.py"
    return DeviceGap(start_ms=0.0, duration_ms=ms, cause="input", step=step, file=file, line=line)


def gpu(*gaps_ms: float, busy: float = 60.0, **overrides: Any) -> DeviceActivity:
    """Idle for the rest of 100 ms; a gap in each step."""
    values: dict[str, Any] = {
        "name": "GPU:0",
        "kind": "gpu",
        "busy_ms": busy,
        "idle_ms": 100.0 - busy,
        "busy_percent": busy,
        "idle_percent": 100.0 - busy,
        "gaps": [gap(ms, step) for step, ms in enumerate(gaps_ms)],
    }
    return make_device(**{**values, **overrides})


def session_with(*devices: DeviceActivity, ratio: float | None = 1.0) -> Session:
    perturbation = Perturbation(baseline_step_ms=10.0, profiled_step_ms=None, ratio=ratio)
    return make_session(devices=list(devices), perturbation=perturbation)


STEADY = gpu(10.0, 10.0, 10.0, 10.0)


@pytest.mark.parametrize(("most", "outcome"), [(39.9, "fail"), (40.0, "pass")])
def test_steps_that_are_alike_leave_nothing_open(most: float, outcome: str) -> None:
    check = idle_check(session_with(STEADY), most=most)
    assert (check.outcome, check.value, check.interval) == (outcome, 40.0, (40.0, 40.0))
    assert check.sentence.startswith("Device idle (GPU:0): 40.0 % of the profile")


@pytest.mark.parametrize(("most", "outcome"), [(25, "fail"), (26, "inconclusive"), (55, "pass")])
def test_what_steps_differ_by_is_in_the_interval(most: float, outcome: str) -> None:
    check = idle_check(session_with(gpu(8.0, 12.0, 8.0, 12.0)), most=most)
    # Of four with a spread of 2.31 ms the sum has an error of 4.62; Student's 3 degrees: 3.1824.
    reach = 3.1824 * math.sqrt(16.0 / 3.0) * 2.0
    assert check.interval == pytest.approx((40.0 - reach, 40.0 + reach), rel=1e-4)
    assert check.outcome == outcome


def test_what_the_profiler_may_have_put_in_is_in_the_interval() -> None:
    check = idle_check(session_with(STEADY, ratio=1.5), most=20.0)
    # Of a step that natively took two thirds of the time, 60 % of the profile is 90 %.
    assert check.interval == pytest.approx((10.0, 40.0))
    assert check.outcome == "inconclusive"


@pytest.mark.parametrize(
    "device",
    [
        gpu(20.0, 20.0),
        gpu(4.0, 4.0, 4.0, 4.0),
        gpu(gaps=[gap(10.0, None)] * 4),
    ],
    ids=["too few steps", "most is in gaps that were not kept", "steps are not known"],
)
def test_one_run_whose_spread_is_not_known_decides_nothing(device: DeviceActivity) -> None:
    check = idle_check(session_with(device), most=90.0)
    assert check.outcome == "inconclusive"
    assert "several runs (--repeats 3)" in check.sentence


def test_it_points_to_what_delayed_the_device_longest() -> None:
    gaps = [gap(9.0, 0, 7), gap(10.0, 1, 12), gap(11.0, 2), gap(10.0, 3, 9)]
    check = idle_check(session_with(gpu(gaps=gaps)), most=5.0)
    assert (check.outcome, check.file, check.line) == ("fail", "train.py", 12)


@pytest.mark.parametrize(
    ("most", "outcome"), [(9.8, "fail"), (10.0, "inconclusive"), (10.1, "pass")]
)
def test_on_its_machine_the_step_is_limited(most: float, outcome: str) -> None:
    check = time_check(make_session(), most)
    assert (check.outcome, check.value, check.interval) == (outcome, 10.0, (9.9, 10.1))
    assert "10 ms (95 % interval 9.9 to 10.1 ms)" in check.sentence


AN_EDIT = Edit("missing-cache:map_0", "a cache", ())


def confirmed(speedup: float, **overrides: Any) -> Finding:
    trial = Trial(
        state="confirmed",
        reason=None,
        speedup=speedup,
        ci95=(speedup - 0.1, speedup + 0.1),
        blocks=8,
    )
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


def load(folder: Path, table: str) -> GateConfig:
    return load_config(write_pyproject(folder, table), RULES)


def test_every_key_is_read(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        """
        [tool.pipediag]
        max-input-wait-percent = 20
        max-overhead-percent = 12.5
        fail-on = "warn"
        allow-inconclusive = true
        max-confirmed-speedup-left = 1.2
        max-device-idle-percent = 40
        max-slowdown-percent = 8
        [tool.pipediag.on-machine]
        fingerprint = "0123"
        max-step-ms = 12.5
        [tool.pipediag.max-run-percent]
        epoch-start = 10
        compile = 2.5
        [tool.pipediag.rules]
        parallel-map = "off"
        missing-cache = "error"
        """,
    )
    assert config == GateConfig(
        max_input_wait_percent=20.0,
        max_overhead_percent=12.5,
        max_confirmed_speedup_left=1.2,
        max_device_idle_percent=40.0,
        max_slowdown_percent=8.0,
        on_machine=OnMachine(fingerprint="0123", max_step_ms=12.5),
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


def test_a_number_that_python_does_not_write_out_is_refused(tmp_path: Path) -> None:
    huge = f"0x{'f' * 4_000}"
    for value in (huge, f"[{huge}]"):
        with pytest.raises(PipediagError, match="max-input-wait-percent"):
            load(tmp_path, f"[tool.pipediag]\nmax-input-wait-percent = {value}\n")


def test_the_command_line_wins() -> None:
    config = GateConfig(fail_on="error", allow_inconclusive=False)
    assert config.override(fail_on="warn").fail_on == "warn"
    assert config.override(allow_inconclusive=True).allow_inconclusive
    assert GateConfig(fail_on="warn").override() == GateConfig(fail_on="warn")
