from __future__ import annotations

import io
import os

import pytest

from pipediag.runner.progress import EventReader, ProgressLine
from pipediag.runner.screen import COLUMNS, ERASE_LINE, ERASE_TO_END


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


START = " " * COLUMNS + "\r" + ERASE_TO_END
"""A line's worth of blanks: wherever the cursor was, it is at the start of an empty line then."""


def shown(*events: dict[str, object], terminal: bool = True) -> str:
    stream = Terminal() if terminal else io.StringIO()
    progress = ProgressLine(stream)
    for event in events:
        progress(event)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("event", "line"),
    [
        ({"event": "started"}, "running the script"),
        ({"event": "loop", "line": 12}, "warming up the loop in line 12"),
        ({"event": "loop", "line": None}, "warming up the loop"),
        ({"event": "window", "window": "profile"}, "profiling a few steps"),
        ({"event": "measured", "loop": 12}, "the loop in line 12 is measured"),
    ],
)
def test_what_begins_while_the_script_prints_has_a_line_of_its_own(
    event: dict[str, object], line: str
) -> None:
    assert shown(event) == f"{START}pipediag: {line}\n"


@pytest.mark.parametrize("event", [{"event": "window", "window": "baseline"}, {"event": "news"}])
def test_silence_in_the_measured_window_and_on_unknown_events(event: dict[str, object]) -> None:
    assert shown(event, event) == ""


def test_phases_are_not_told_where_there_is_no_terminal() -> None:
    assert shown({"event": "started"}, {"event": "diagnosing"}, TRIAL, terminal=False) == ""


def test_the_report_begins_on_a_line_of_its_own() -> None:
    for stream, start in ((Terminal(), START), (io.StringIO(), "\n")):
        ProgressLine(stream).end()

        assert stream.getvalue() == start


WAITS = {"event": "trials", "loop": "loop1", "alone": False, "goes_on": False}
TRIAL = {"event": "trial", "label": "16 parallel calls on the map in line 12", "left_s": 41.3}
TRIES = f"{START}pipediag: trying 16 parallel calls on the map in line 12, 41 s left ..."
CONFIRMED = {
    "event": "decided",
    "label": "16 parallel calls on the map in line 12",
    "state": "confirmed",
    "speedup": 1.94,
    "ci95": [1.88, 2.01],
}
STAYS = "pipediag: confirmed 1.94x [1.88, 2.01]: 16 parallel calls on the map in line 12\n"


def test_says_what_is_tried_and_how_much_time_is_left() -> None:
    assert shown(TRIAL) == TRIES


def test_what_is_tried_makes_room_for_what_is_tried_next() -> None:
    assert shown(TRIAL, TRIAL) == TRIES + ERASE_LINE + TRIES


def test_a_line_to_take_away_is_no_longer_than_the_terminal() -> None:
    text = shown({**TRIAL, "label": "x" * 200}).removeprefix(START)

    assert len(text) == COLUMNS - 1


def test_a_confirmed_change_stays_above_the_line() -> None:
    assert shown(TRIAL, CONFIRMED) == TRIES + ERASE_LINE + START + STAYS


def test_a_confirmed_change_is_told_where_there_is_no_terminal() -> None:
    assert shown(TRIAL, CONFIRMED, terminal=False) == STAYS


@pytest.mark.parametrize("state", ["refuted", "inconclusive", "not_tried"])
def test_other_outcomes_wait_for_the_report(state: str) -> None:
    assert shown({**CONFIRMED, "state": state}, terminal=False) == ""


def test_that_trials_begin_is_told_once_and_only_if_there_are_any() -> None:
    assert shown(WAITS, terminal=False) == ""

    assert shown(WAITS, TRIAL, TRIAL, terminal=False) == (
        "pipediag: trying changes in the running loop, for up to 41 s; the script's own output "
        "stands still meanwhile. Losses and metrics that it prints afterwards are not those of an "
        "undisturbed run.\n"
    )


def test_of_a_script_that_goes_on_the_losses_are_its_own() -> None:
    assert "Losses" not in shown({**WAITS, "goes_on": True}, TRIAL, terminal=False)


def test_of_a_script_that_is_over_no_output_stands_still() -> None:
    assert shown({**WAITS, "alone": True}, TRIAL, terminal=False) == (
        "pipediag: trying changes on the pipeline alone, for up to 41 s.\n"
    )


def test_a_long_line_is_wrapped_to_the_terminal() -> None:
    lines = shown(WAITS, TRIAL).removeprefix(START).splitlines()

    assert max(map(len, lines[:2])) <= COLUMNS
