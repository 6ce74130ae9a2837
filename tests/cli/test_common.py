"""Widths of text, and what `explain` and `doctor` print."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import termios
from collections.abc import Iterator
from typing import TextIO

import pytest
from click.testing import CliRunner, Result

from pipediag.cli import doctor, explain
from pipediag.cli.common import NARROWEST, text_width
from pipediag.doctor.machine import Check
from pipediag.errors import ExitStatus, PipediagError
from pipediag.rules.registry import RULES


@pytest.fixture(params=[120, 80, 50, 10])
def terminal(request: pytest.FixtureRequest) -> Iterator[tuple[TextIO, int]]:
    controller, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("4H", 24, request.param, 0, 0))
    with os.fdopen(end, "w") as stream:
        yield stream, max(NARROWEST, request.param)
    os.close(controller)


def test_text_is_as_wide_as_the_terminal_but_no_wider_than_it_reads_well(
    terminal: tuple[TextIO, int],
) -> None:
    stream, width = terminal

    assert text_width(stream, 88) == min(88, width)
    assert text_width(io.StringIO(), 88) == 88


def output(*args: str) -> str:
    result = CliRunner().invoke(explain.command, args, catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_without_a_rule_it_lists_them_all() -> None:
    listed = output()
    for rule in RULES:
        assert f"{rule.id} " in listed


def test_says_threshold_source_edit_and_cost() -> None:
    text = output("parallel-map")
    assert "input wait: 5 % of the step" in text
    assert "XProf" in text
    assert "num_parallel_calls=tf.data.AUTOTUNE" in text
    assert max(map(len, text.splitlines())) <= 88


def test_an_unknown_rule_is_answered_with_those_there_are() -> None:
    with pytest.raises(PipediagError) as caught:
        CliRunner().invoke(explain.command, ["missing-cash"], catch_exceptions=False)
    assert caught.value.status == ExitStatus.USAGE
    assert "Did you mean missing-cache" in str(caught.value)
    assert "gpu-unused" in str(caught.value)


FINE = Check("Swap", "ok", "Nothing is swapped out.")


LOADED = Check("Load", "warn", "3 threads.", "Steps get longer.", "Wait.")


BROKEN = Check("TensorFlow", "problem", "None.", "No run.", "Install it.")


def invoke(monkeypatch: pytest.MonkeyPatch, made: list[Check], *args: str) -> Result:
    asked = []

    def all_checks(ask_tensorflow: bool) -> Iterator[Check]:
        asked.append(ask_tensorflow)
        yield from made

    monkeypatch.setattr("pipediag.doctor.all_checks", all_checks)
    result = CliRunner().invoke(doctor.command, args)
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
