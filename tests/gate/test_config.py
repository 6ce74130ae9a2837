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


def test_a_named_file_without_the_table_is_an_error(tmp_path: Path) -> None:
    path = write_pyproject(tmp_path, "[project]\nname = 'x'\n")
    with pytest.raises(PipediagError, match=r"no \[tool\.pipediag\] table"):
        load_config(path, RULES)


def test_an_unknown_key_lists_the_valid_ones(tmp_path: Path) -> None:
    with pytest.raises(PipediagError, match='unknown key "max-wait"') as caught:
        load(tmp_path, "[tool.pipediag]\nmax-wait = 3\n")
    for key in ("max-input-wait-percent", "max-overhead-percent", "fail-on", "rules"):
        assert key in str(caught.value)


def test_the_python_spelling_of_a_key_is_unknown(tmp_path: Path) -> None:
    with pytest.raises(PipediagError, match='unknown key "fail_on"'):
        load(tmp_path, '[tool.pipediag]\nfail_on = "warn"\n')


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            'max-input-wait-percent = "twenty"',
            "max-input-wait-percent: .*, not 'twenty'",
        ),
        ("max-overhead-percent = 101", "less than or equal to 100, not 101"),
        ("max-overhead-percent = -1", "greater than or equal to 0, not -1"),
        ("max-overhead-percent = nan", "max-overhead-percent: .*, not nan"),
        ("max-confirmed-speedup-left = 0.9", "greater than or equal to 1, not 0.9"),
        ("max-slowdown-percent = 0", "greater than 0, not 0"),
        ("on-machine = 3", "on-machine: .*, not 3"),
        ("on-machine = {max-step-ms = 3}", "on-machine.fingerprint: Field required"),
        ("on-machine = {fingerprint = 'x', max-step-ms = 3, y = 1}", "on-machine.y: .* not perm"),
        ("on-machine = {fingerprint = 'x', max-step-ms = '3ms'}", "max-step-ms: .*, not '3ms'"),
        ('fail-on = "info"', "fail-on: .*, not 'info'"),
        ("allow-inconclusive = 1", "allow-inconclusive: .*, not 1"),
        ("rules = 3", "rules: .*, not 3"),
        ('rules = {missing-cache = "loud"}', "rules.missing-cache: .*, not 'loud'"),
        ("max-run-percent = {epochs = 5}", "max-run-percent.epochs: Input should be 'startup'"),
        ("max-run-percent = {epoch-start = 101}", "max-run-percent.epoch_start: .*, not 101"),
        ("max-run-percent = 5", "max-run-percent: .*, not 5"),
    ],
)
def test_a_wrong_value_says_what_is_expected(tmp_path: Path, table: str, message: str) -> None:
    with pytest.raises(PipediagError, match=message):
        load(tmp_path, f"[tool.pipediag]\n{table}\n")


@pytest.mark.parametrize(
    ("content", "message"),
    [("[tool.pipediag", "not valid TOML"), ("tool.pipediag = 3", "must be a table")],
)
def test_a_broken_file_is_named(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(PipediagError, match=message) as caught:
        load(tmp_path, content)
    assert "pyproject.toml" in str(caught.value)


def test_the_command_line_wins() -> None:
    config = GateConfig(fail_on="error", allow_inconclusive=False)
    assert config.override(fail_on="warn").fail_on == "warn"
    assert config.override(allow_inconclusive=True).allow_inconclusive
    assert GateConfig(fail_on="warn").override() == GateConfig(fail_on="warn")


def test_an_unknown_rule_names_its_file_and_lists_the_valid_ones(tmp_path: Path) -> None:
    with pytest.raises(PipediagError) as raised:
        load(tmp_path, '[tool.pipediag.rules]\nmissing-cash = "error"\n')
    assert str(raised.value).startswith(
        f'In {tmp_path / "pyproject.toml"}, [tool.pipediag.rules] names "missing-cash", which is '
    )
    assert "Valid rules: missing-cache, parallel-map, retracing, verdict." in str(raised.value)


def test_the_verdict_may_be_named_among_the_rules(tmp_path: Path) -> None:
    config = load(tmp_path, '[tool.pipediag.rules]\nverdict = "off"\n')
    assert config.rules == {"verdict": "off"}
