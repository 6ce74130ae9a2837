"""What check and compare cannot use is told in one line, with what would be right."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pipediag.cli.main import main
from pipediag.rules.registry import BY_ID
from pipediag.session.record import to_json
from pipediag.vocabulary import RUN_PARTS
from tests.comparison.sides import run_of
from tests.encoding.poisoned import POISON, acting, commands

Told = Callable[..., str]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.json").write_text(to_json(run_of()), encoding="utf-8")
    return tmp_path


@pytest.fixture
def told(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Told:
    """Calls pipediag, which ends with 2; its one line."""

    def call(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["pipediag", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        shown = capsys.readouterr()
        assert ended.value.code == 2, shown
        assert shown.out == ""
        assert "error in pipediag" not in shown.err
        [line] = shown.err.splitlines()
        assert line.startswith("pipediag: ")
        assert line.endswith(".")
        assert not acting(line)
        assert not commands(line)
        assert len(line) < 4_500
        return line

    return call


CONFIGURATIONS = {
    "unknown rule": ('rules = { slow-map = "warn" }', ["slow-map", *BY_ID]),
    "unknown level": ('rules = { small-batch = "fatal" }', ["small-batch", "fatal"]),
    "unknown key": ("max-wait = 3", ["max-wait", "max-input-wait-percent", "max-overhead-percent"]),
    "unknown part": ("max-run-percent = { import = 3 }", ["import", *RUN_PARTS]),
    "a unit": ('max-input-wait-percent = "20 %"', ["max-input-wait-percent", "20 %"]),
    "a ratio in percent": ("max-confirmed-speedup-left = 0.2", ["greater than or equal to 1"]),
    "no number": ("max-overhead-percent = nan", ["max-overhead-percent", "nan"]),
    "a key that acts": (f"{json.dumps(POISON[:200])} = 1", ["unknown key", "fail-on"]),
    "a rule that acts": (
        f"rules = {{ {json.dumps(POISON[:200])} = 1 }}",
        ["has a wrong value: rules."],
    ),
}


@pytest.mark.parametrize(("table", "said"), CONFIGURATIONS.values(), ids=CONFIGURATIONS)
def test_a_configuration(here: Path, told: Told, table: str, said: list[str]) -> None:
    (here / "pyproject.toml").write_text(f"[tool.pipediag]\n{table}\n", encoding="utf-8")
    line = told("check", "good.json")
    assert [one for one in said if one not in line] == []


@pytest.mark.parametrize("kind", ["unknown rule", "unknown key", "a unit"])
def test_a_configuration_is_said_before_the_script_runs(here: Path, told: Told, kind: str) -> None:
    table, said = CONFIGURATIONS[kind]
    (here / "pyproject.toml").write_text(f"[tool.pipediag]\n{table}\n", encoding="utf-8")
    (here / "train.py").write_text("open('it ran', 'w')\n", encoding="utf-8")
    line = told("analyze", "--fail-on", "error", "train.py")
    assert [one for one in said if one not in line] == []
    assert not (here / "it ran").exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("tool = 3", "must be a table"),
        ("[tool]\npipediag = 3", "must be a table"),
        ("[tool.pipediag", "is not valid TOML"),
        ("[tool.other]", "has no [tool.pipediag] table"),
    ],
)
def test_a_file_of_configuration(here: Path, told: Told, content: str, said: str) -> None:
    (here / "other.toml").write_text(content, encoding="utf-8")
    assert said in told("check", "good.json", "--config", "other.toml")


COMMANDS = {
    "check, baseline": ("check", "good.json", "--baseline", "bad.json"),
    "compare, head": ("compare", "good.json", "bad.json"),
}


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_a_session(here: Path, told: Told, arguments: tuple[str, ...]) -> None:
    spoilt = {**json.loads(to_json(run_of())), "verdict": {}}
    (here / "bad.json").write_text(json.dumps(spoilt), encoding="utf-8")

    line = told(*arguments)

    assert "bad.json is not a valid session: verdict.bottleneck" in line
    assert sorted(path.name for path in here.iterdir()) == ["bad.json", "good.json"]


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_a_session_that_is_missing(told: Told, arguments: tuple[str, ...]) -> None:
    assert "cannot read the session bad.json: No such file or directory" in told(*arguments)
