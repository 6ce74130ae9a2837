"""The process that times tables, played by small programs: what it tells, and how it may end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipediag.runner import way_times
from pipediag.runner.progress import Shown, TimesTables
from pipediag.runner.timed_ways import TimedWays
from pipediag.runner.way_times import with_way_times
from pipediag.session.model import Session
from pipediag.session.table_bench import TableKey
from pipediag.session.way_times import TableTimes
from tests.factories import make_embedding, make_session
from tests.rules.embedding.sessions import make_ids

TELLS = """
import json, sys
plan = json.load(open(sys.argv[1]))
with open(plan["results"], "w") as file:
    for line in [
        {"is": "Placed", "table": 0, "device": "CPU:0", "batches": 1},
        *[{"is": "Round", "table": 0, "way": "sgd", "timed": "step", "base_ms": 8.0 + n, "ms": 1.0}
          for n in range(4)],
    ]:
        print(json.dumps(line), file=file)
"""


def session_of(*layers: str) -> Session:
    tables = [
        make_embedding(layer=layer, gradient="sparse", temporary_peak_bytes=512_000, ids=make_ids())
        for layer in layers
    ]
    return make_session(embeddings=tables)


class Played:
    """Runs a program in place of the one that times, for tables whose ids were kept."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ids = directory
        self.told: list[Shown] = []
        self._patch = monkeypatch

    def run(self, program: str, *layers: str, **limits: Any) -> list[TableTimes]:
        bench = self.ids / "bench.py"
        bench.write_text(program, encoding="utf-8")
        self._patch.setattr(way_times, "BENCH", bench)
        session = with_way_times(
            session_of(*layers),
            TimedWays(limits.get("budget_s", 5.0), 10),
            self.ids,
            self.told.append,
        )
        assert session.way_times is not None
        assert session.way_times_missing is None
        return session.way_times.tables

    def keep(self, layer: str) -> None:
        np.savez(self.ids / TableKey(layer, None, 1000, 64).ids_file, **{"0": np.arange(9)})


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Played:
    return Played(tmp_path, monkeypatch)


def test_what_it_tells_goes_to_its_table_and_what_it_does_not_has_a_reason(played: Played) -> None:
    played.keep("items")
    without, items = played.run(TELLS, "users", "items")

    assert without.missing == "The ids of its batches were not kept."
    ways = {way.way: way for way in items.ways}
    assert ways["sgd"].rounds == 4
    assert ways["sgd"].ci95 is not None
    assert "before its turn came" in (ways["hashing"].missing or "")
    assert played.told == [TimesTables(5.0)]


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("import sys; sys.exit('No module named tensorflow')", "ended with 1: No module named"),
        ("import os; os.kill(os.getpid(), 9)", "killed by signal 9"),
    ],
)
def test_a_process_that_ends_badly_leaves_a_reason(
    played: Played, program: str, reason: str
) -> None:
    played.keep("items")
    (items,) = played.run(program, "items")

    assert reason in (items.missing or "")


def test_it_is_never_waited_for_without_a_limit(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(way_times, "START_S", 0.0)
    played.keep("items")
    (items,) = played.run(TELLS + "import time; time.sleep(600)", "items", budget_s=1.0)

    ways = {way.way: way for way in items.ways}
    assert ways["sgd"].speedup is not None
    assert "had not ended after 1 s" in (ways["hashing"].missing or "")


def test_where_nothing_can_be_timed_nothing_is_started(played: Played) -> None:
    *_, last = played.run("raise SystemExit(3)", "a", "b", "c", "d")

    assert last.missing == "The 3 largest tables alone are timed."
    assert played.told == []


def test_a_run_without_tables_says_so(tmp_path: Path) -> None:
    session = make_session(embeddings=[], embeddings_missing="It ran eagerly.")
    found = with_way_times(session, TimedWays(5.0, 10), tmp_path, lambda _: None)

    assert (found.way_times, found.way_times_missing) == (None, "It ran eagerly.")
