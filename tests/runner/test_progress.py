from __future__ import annotations

import io

import pytest

from pipediag.runner.progress import (
    COLUMNS,
    ERASE_TO_END,
    Diagnosing,
    ProgressLine,
    Shown,
)
from pipediag.session.messages import (
    Ended,
    TrialsAwaited,
    WindowBegun,
)
from pipediag.trials.executor import Trying


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


START = " " * COLUMNS + "\r" + ERASE_TO_END
"""A line's worth of blanks: wherever the cursor was, it is at the start of an empty line then."""


def shown(*messages: Shown, terminal: bool = True) -> str:
    stream = Terminal() if terminal else io.StringIO()
    progress = ProgressLine(stream)
    for message in messages:
        progress(message)
    return stream.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_a_repeated_batch_is_announced_wherever_one_reads(terminal: bool) -> None:
    said = " ".join(shown(WindowBegun("repeat"), terminal=terminal).split())
    assert "repeating one batch, for which the epoch may go on beyond its end" in said
    assert "are not those of an undisturbed run." in said


@pytest.mark.parametrize(
    ("message", "line"),
    [
        (Diagnosing(), "working out what to try"),
        (Ended("stopped", None), "the script has ended, reading what was recorded"),
    ],
)
def test_what_begins_while_the_script_stands_still_passes(message: Shown, line: str) -> None:
    assert shown(message) == f"{START}pipediag: {line} ..."


def test_the_report_begins_on_a_line_of_its_own() -> None:
    for stream, start in ((Terminal(), START), (io.StringIO(), "\n")):
        ProgressLine(stream).end()

        assert stream.getvalue() == start


WAITS = TrialsAwaited("loop1", alone=False, more_to_come=False, since_ns=0)
TRIAL = Trying("16 parallel calls on the map in line 12", left_s=41.3)


def test_that_trials_begin_is_told_once_and_only_if_there_are_any() -> None:
    assert shown(WAITS, terminal=False) == ""

    assert shown(WAITS, TRIAL, TRIAL, terminal=False) == (
        "pipediag: trying changes in the running loop, for up to 41 s; the script's own output "
        "stands still meanwhile. Losses and metrics that it prints afterwards are not those of an "
        "undisturbed run.\n"
    )
