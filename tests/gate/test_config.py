from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.errors import PipediagError
from pipediag.gate.config import GateConfig, OnMachine, load_config

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


def test_the_python_spelling_of_a_key_is_unknown(tmp_path: Path) -> None:
    with pytest.raises(PipediagError, match='unknown key "fail_on"'):
        load(tmp_path, '[tool.pipediag]\nfail_on = "warn"\n')


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
