"""Much of anything costs in proportion: of a list, a table, a text, or of what is not known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest

from pipediag.reporters import REPORTERS, write_formats
from tests.encoding.forms import all_forms, read
from tests.encoding.grown import Grown, grown_content
from tests.encoding.work import Cost, cost_of

MORE = 4
FEW: dict[Grown, int] = {"lists 1": 15}
"""How many there are at first; else `MANY`: most of a session is in lists that are in no other."""
MANY = 120
SLACK = 1.5
"""Far from four times as much, which each pair of items costs."""
LEAST = Cost(calls=2_000, peak_bytes=200_000)
"""Nothing is told from less."""


def written(folder: Path, what: Grown, times: int, *, alike: bool) -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / "session.json"
    file.write_text(json.dumps(grown_content(what, times, alike=alike)), encoding="utf-8")
    return file


def costs(file: Path, *, refused: bool) -> dict[str, Cost]:
    """To read it, and to make each form of it."""
    found: dict[str, Cost] = {}
    found["read"], (session, refusal) = cost_of(lambda: read(file))
    assert len(refusal) < 4_000
    assert (session is None) == refused, refusal
    if session is not None:
        forms = all_forms(session, file.parent)
        while True:
            cost, form = cost_of(lambda: next(forms, None))
            if form is None:
                break
            found[f"{form[0]}, number {len(found)}"] = cost
        out = file.parent / "out"
        found["report"], _ = cost_of(lambda: write_formats(session, out, tuple(REPORTERS)))
    return found


@pytest.fixture(scope="module", autouse=True)
def everything_is_imported(tmp_path_factory: pytest.TempPathFactory) -> None:
    """And every template compiled: what comes once is no part of what is compared."""
    folder = tmp_path_factory.mktemp("first")
    session, _ = read(written(folder, "tables", 1, alike=True))
    assert session is not None
    assert list(all_forms(session, folder))
    write_formats(session, folder / "out", tuple(REPORTERS))


@pytest.mark.parametrize("alike", [True, False], ids=["all alike", "no two alike"])
@pytest.mark.parametrize("what", get_args(Grown))
def test_four_times_as_much_costs_no_more_than_four_times(
    tmp_path: Path, what: Grown, alike: bool
) -> None:
    small = written(tmp_path / "small", what, FEW.get(what, MANY), alike=alike)
    large = written(tmp_path / "large", what, MORE * FEW.get(what, MANY), alike=alike)
    few, many = (costs(file, refused=what == "wrong items") for file in (small, large))

    assert large.stat().st_size > 1.1 * small.stat().st_size
    assert few.keys() == many.keys()
    for name, cost in many.items():
        calls = LEAST.calls + SLACK * MORE * few[name].calls
        peak_bytes = LEAST.peak_bytes + SLACK * MORE * few[name].peak_bytes
        assert cost.is_within(calls, peak_bytes), (name, few[name], cost)


def test_a_short_session_takes_little_memory_to_read(tmp_path: Path) -> None:
    file = written(tmp_path, "tables", 1, alike=True)
    cost, _ = cost_of(lambda: read(file))
    assert cost.peak_bytes < 100 * file.stat().st_size


def test_what_costs_more_is_seen() -> None:
    def every_pair(count: int) -> list[int]:
        return [max(one, other) for one in range(count) for other in range(count)]

    few, many = (cost_of(lambda count=count: every_pair(count))[0] for count in (100, 400))
    assert many.calls >= 15 * few.calls
    assert many.peak_bytes >= 10 * few.peak_bytes
    assert not many.is_within(LEAST.calls + SLACK * MORE * few.calls, many.peak_bytes)
    assert not many.is_within(many.calls, LEAST.peak_bytes + SLACK * MORE * few.peak_bytes)
