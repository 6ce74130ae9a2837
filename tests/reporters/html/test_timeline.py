from __future__ import annotations

import base64
import gzip
import json
from itertools import accumulate
from typing import Any

import pytest

from pipediag.reporters.html.timeline import packed_timeline
from pipediag.session.model import Session
from tests import factories
from tests.reporters import sessions
from tests.reporters.html.timelines import long_run, passed


def drawn(session: Session, budget_bytes: int = 90_000) -> dict[str, Any]:
    data = packed_timeline(session, budget_bytes)
    assert data is not None
    assert len(data) <= budget_bytes
    content: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(data)))
    return content


def lane(content: dict[str, Any], title: str) -> dict[str, Any]:
    [found] = [one for one in content["lanes"] if one["title"].startswith(title)]
    return found


def starts(found: dict[str, Any]) -> list[float]:
    """Each counts from the end of the box before."""
    ends = list(accumulate(map(sum, zip(found["starts"], found["lengths"], strict=True))))
    return [(end - length) / 1000 for end, length in zip(ends, found["lengths"], strict=True)]


def test_all_lanes_are_on_one_clock() -> None:
    content = drawn(passed())

    assert [one["title"] for one in content["lanes"]] == [
        "The run",
        "Windows of the measurement",
        "Steps, the wait for input in each",
        "Trials, base and edits by turns",
        "GPU:0 idle: Waiting for input",
        "CPU by pool, in percent of a core",
        "Resident memory",
    ]
    assert starts(lane(content, "The run")) == [-500.0, 2500.0, 3000.0]
    assert starts(lane(content, "Trials"))[:2] == [4700.0, 5200.0]
    assert starts(lane(content, "GPU:0 idle")) == [4513.0, 4530.0]
    steps = lane(content, "Steps")
    assert (steps["lengths"][0], steps["inner"][0], len(steps["lengths"])) == (10_000, 7_000, 50)
    assert lane(content, "Resident memory")["series"][0]["values"] == [600] * 4
    assert [view["title"] for view in content["views"]] == ["warmup", "baseline", "profile"]


def test_words_and_colours_are_there_once() -> None:
    run = lane(drawn(passed()), "The run")

    assert [run["words"][at] for at in run["word"]] == [
        "Start-up and imports: imports",
        "pipediag's own work",
        "Steps",
    ]
    assert [run["colours"][at] for at in run["colour"]] == [
        "part-startup",
        "unattributed",
        "part-steps",
    ]


def test_what_is_too_much_is_taken_together_and_said() -> None:
    session = long_run()

    steps = lane(drawn(session), "Steps")

    taken = len(steps["lengths"])
    assert 5_000 < taken < 50_000
    assert "at a time, 50,000 in all" in steps["title"]
    before, after = session.step_rows[0], session.step_rows[-1]
    whole_ms = after.start_ms + after.duration_ms - before.start_ms
    assert sum(steps["lengths"]) / 1000 == pytest.approx(whole_ms, rel=1e-4)
    waits = sum(row.input_wait_ms or 0.0 for row in session.step_rows)
    assert sum(steps["inner"]) / 1000 == pytest.approx(waits, rel=1e-4)


def test_of_too_many_gaps_the_longest_stay() -> None:
    session = long_run(steps=2_000)
    content = drawn(session, 20_000)
    kept = [
        length
        for one in content["lanes"]
        if one["title"].startswith("GPU:0 idle")
        for length in one["lengths"]
    ]
    lengths = sorted(round(gap.duration_ms * 1000) for gap in session.devices[0].gaps)

    assert 0 < len(kept) < len(lengths)
    assert sorted(kept) == lengths[-len(kept) :]


def test_nothing_measured_and_no_room_give_no_timeline() -> None:
    assert packed_timeline(sessions.nothing_measured(), 90_000) is None
    assert packed_timeline(factories.make_session(), 100) is None
