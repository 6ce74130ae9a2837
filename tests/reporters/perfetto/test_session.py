"""The session as Chrome's trace event format has it."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from pipediag.reporters.perfetto import session as perfetto
from pipediag.session.model import Session
from tests import factories
from tests.reporters import sessions, trial_sessions
from tests.reporters.html.timelines import passed
from tests.reporters.tables.test_joined import profiled

NEEDED = {"X": {"ts", "dur", "tid"}, "C": {"ts", "args"}, "M": {"args"}}


def events(session: Session) -> list[dict[str, Any]]:
    [(name, text)] = perfetto.files(session)
    assert name == "session.perfetto.json"
    listed: list[dict[str, Any]] = json.loads(text)["traceEvents"]
    return listed


@pytest.mark.parametrize(
    "make",
    [
        factories.make_session,
        profiled,
        passed,
        sessions.hostile,
        sessions.nothing_measured,
        trial_sessions.everything_tried,
    ],
)
def test_every_event_is_of_the_format_and_slices_nest(make: Any) -> None:
    listed = events(make())

    for event in listed:
        assert NEEDED[event["ph"]] | {"pid", "name"} <= event.keys()
        assert event.get("ts", 0) >= 0
        assert event.get("dur", 0) >= 0
    tracks = {event["tid"] for event in listed if event["ph"] == "X"}
    for track in tracks:
        open_ends: list[float] = []
        slices = [event for event in listed if event["ph"] == "X" and event["tid"] == track]
        assert all(one["ts"] <= other["ts"] for one, other in pairwise(slices))
        for event in slices:
            while open_ends and open_ends[-1] <= event["ts"] + 1e-3:
                open_ends.pop()
            end = event["ts"] + event["dur"]
            assert not open_ends or end <= open_ends[-1] + 1e-3
            open_ends.append(end)


def test_all_of_it_is_on_one_clock() -> None:
    listed = events(profiled())
    names = {
        event["tid"]: event["args"]["name"] for event in listed if event["name"] == "thread_name"
    }
    slices = [event for event in listed if event["ph"] == "X"]
    steps = [event for event in slices if event["name"] == "step 41"]
    [gap, _] = [event for event in slices if names[event["tid"]] == "GPU:0 idle"]

    [step] = steps
    assert step["ts"] <= gap["ts"]
    assert gap["ts"] + gap["dur"] <= step["ts"] + step["dur"]
    assert {"Windows", "Steps", "GPU:0 idle"} <= set(names.values())
    counters = {event["name"] for event in listed if event["ph"] == "C"}
    assert {"CPU", "CPU: tf.data", "Resident memory"} <= counters


def test_a_step_holds_its_wait() -> None:
    slices = [event for event in events(factories.make_session()) if event["ph"] == "X"]
    step = next(event for event in slices if event["name"] == "step 0")
    wait = next(event for event in slices if event["name"] == "Waiting for input")

    assert (step["dur"], wait["dur"]) == (10_000.0, 7_000.0)
    assert step["ts"] == wait["ts"]


def test_times_that_no_clock_holds_are_as_long_as_can_be_written() -> None:
    """A stranger's session: whoever reads it gets a file all the same."""
    session = factories.make_session()
    rows = [one.model_copy(update={"duration_ms": 1e300}) for one in session.step_rows]
    longest = max(
        one["dur"]
        for one in events(session.model_copy(update={"step_rows": rows}))
        if one["ph"] == "X"
    )

    assert 1e12 < longest < 2.0**63
