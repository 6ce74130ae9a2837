from __future__ import annotations

from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result

from pipediag.cli.doctor import command, render
from pipediag.doctor import checks
from pipediag.doctor.check import Check

FINE = Check("Swap", "ok", "Nothing is swapped out.")
LOADED = Check("Load", "warn", "3 threads.", "Steps get longer.", "Wait.")
BROKEN = Check("TensorFlow", "problem", "None.", "No run.", "Install it.")


def invoke(monkeypatch: pytest.MonkeyPatch, made: list[Check], *args: str) -> Result:
    asked = []

    def all_checks(ask_tensorflow: bool) -> Iterator[Check]:
        asked.append(ask_tensorflow)
        yield from made

    monkeypatch.setattr(checks, "all_checks", all_checks)
    result = CliRunner().invoke(command, args)
    if result.exit_code == 0:
        assert asked == ["--no-tensorflow" not in args]
    return result


def test_a_fine_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    result = invoke(monkeypatch, [FINE])
    assert result.exit_code == 0
    assert "Nothing is swapped out." in result.stdout
    assert result.stdout.endswith("Nothing here would spoil a measurement.\n")


def test_problems_are_counted_and_end_with_status_0(monkeypatch: pytest.MonkeyPatch) -> None:
    result = invoke(monkeypatch, [FINE, LOADED, BROKEN], "--no-tensorflow")
    assert result.exit_code == 0
    assert "Problems: 1. Warnings: 1." in result.stdout
    assert "To do: Install it." in result.stdout


def test_an_unknown_option_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    assert invoke(monkeypatch, [], "--nonsense").exit_code == 2


def test_a_check_says_what_follows_and_what_to_do_below_its_line() -> None:
    lines = render(LOADED).splitlines()
    assert lines[0].endswith("3 threads.")
    assert [line.strip() for line in lines[1:]] == ["Steps get longer.", "To do: Wait."]
    assert len(render(FINE).splitlines()) == 1
