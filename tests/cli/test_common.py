from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import sys
import termios
from collections.abc import Iterator
from typing import TextIO

import pytest

from pipediag.cli import explain
from pipediag.cli.common import NARROWEST, fitted, text_width
from pipediag.cli.doctor import render
from pipediag.doctor.check import Check

LONG = "  FAILED        a limit [train.py:3]: " + "words that go on and on " * 8


@pytest.fixture(params=[120, 80, 50, 10])
def terminal(request: pytest.FixtureRequest) -> Iterator[tuple[TextIO, int]]:
    controller, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("4H", 24, request.param, 0, 0))
    with os.fdopen(end, "w") as stream:
        yield stream, max(NARROWEST, request.param)
    os.close(controller)


def _widest(text: str) -> int:
    return max(map(len, text.splitlines()))


def test_text_is_as_wide_as_the_terminal_but_no_wider_than_it_reads_well(
    terminal: tuple[TextIO, int],
) -> None:
    stream, width = terminal

    assert text_width(stream, 88) == min(88, width)
    assert text_width(io.StringIO(), 88) == 88


def test_a_line_is_wrapped_below_its_indent(terminal: tuple[TextIO, int]) -> None:
    stream, width = terminal

    lines = fitted(f"first\n\n{LONG}\nlast\n", stream).split("\n")

    assert lines[:2] == ["first", ""]
    assert lines[-2:] == ["last", ""]
    assert max(map(len, lines)) <= width
    assert all(line.startswith("    ") for line in lines[3:-2])
    assert " ".join(" ".join(lines).split()) == f"first {' '.join(LONG.split())} last"


def test_a_log_has_whole_lines() -> None:
    assert fitted(LONG, io.StringIO()) == LONG


def test_explanations_and_checks_fit(
    terminal: tuple[TextIO, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, width = terminal
    monkeypatch.setattr(sys, "stdout", stream)
    check = Check("Load", "warn", "Threads " * 20, "Steps get longer. " * 9, "Wait. " * 30)
    texts = [explain._list(), explain._explanation("missing-cache"), explain._trials()]

    shown = [_widest(text) for text in texts]
    beside_colours = _widest(render(check).replace("\x1b[33m", "").replace("\x1b[0m", ""))

    assert beside_colours <= width
    if width >= 50:
        # Names of rules and of options are not broken.
        assert max(shown) <= min(88, width)
