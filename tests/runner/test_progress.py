from __future__ import annotations

import io
import os

import pytest

from pipediag.runner.progress import ERASE_LINE, EventReader, ProgressLine


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_events_are_read_whole_and_in_order_without_waiting() -> None:
    reading, writing = os.pipe()
    reader = EventReader(reading)

    os.write(writing, b'{"event": "a"}\n{"event":')
    first = list(reader.read())
    os.write(writing, b' "b"}\nno json\n[1]\n')
    second = list(reader.read())
    os.close(writing)

    assert [first, second, list(reader.read())] == [[{"event": "a"}], [{"event": "b"}], []]
    os.close(reading)


def test_a_line_names_what_begins() -> None:
    terminal = Terminal()

    ProgressLine(terminal)({"event": "loop", "line": 12})

    assert terminal.getvalue() == "pipediag: warming up the loop in line 12 ..."


@pytest.mark.parametrize("event", [{"event": "window", "window": "baseline"}, {"event": "news"}])
def test_silence_in_the_measured_window_and_on_unknown_events(event: dict[str, str]) -> None:
    terminal = Terminal()
    progress = ProgressLine(terminal)

    progress({"event": "started"})
    progress(event)
    progress(event)

    assert terminal.getvalue() == f"pipediag: running the script ...{ERASE_LINE}"


def test_nothing_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    progress = ProgressLine(stream)

    progress({"event": "started"})
    progress.clear()

    assert stream.getvalue() == ""


TRIAL = {"event": "trial", "label": "16 parallel calls on the map in line 12", "left_s": 41.3}
CONFIRMED = {
    "event": "decided",
    "label": "16 parallel calls on the map in line 12",
    "state": "confirmed",
    "speedup": 1.94,
    "ci95": [1.88, 2.01],
}
STAYS = "pipediag: confirmed 1.94x [1.88, 2.01]: 16 parallel calls on the map in line 12\n"


def test_says_what_is_tried_and_how_much_time_is_left() -> None:
    terminal = Terminal()

    ProgressLine(terminal)(TRIAL)

    assert terminal.getvalue() == (
        "pipediag: trying 16 parallel calls on the map in line 12, 41 s left ..."
    )


def test_a_confirmed_change_stays_above_the_line() -> None:
    terminal = Terminal()
    progress = ProgressLine(terminal)

    progress(TRIAL)
    before = terminal.getvalue()
    progress(CONFIRMED)
    progress.clear()

    assert terminal.getvalue() == before + ERASE_LINE + STAYS


def test_a_confirmed_change_is_told_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    progress = ProgressLine(stream)

    progress(TRIAL)
    progress(CONFIRMED)

    assert stream.getvalue() == STAYS


@pytest.mark.parametrize("state", ["refuted", "inconclusive", "not_tried"])
def test_other_outcomes_wait_for_the_report(state: str) -> None:
    stream = io.StringIO()

    ProgressLine(stream)({**CONFIRMED, "state": state})

    assert stream.getvalue() == ""
