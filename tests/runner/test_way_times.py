"""The process that times tables, played by small programs: what it tells, and how it may end."""

from __future__ import annotations

import errno
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipediag.interrupts import INTERRUPTS, Interrupts
from pipediag.runner import bench_process, way_times
from pipediag.runner.progress import Shown, TimesTables
from pipediag.runner.timed_ways import TimedWays
from pipediag.runner.way_times import why_not, with_way_times
from pipediag.session.model import Session
from pipediag.session.table_bench import BenchPlan, TableKey
from pipediag.session.way_times import TableTimes
from pipediag.vocabulary import ScriptOutcome
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


def session_of(*layers: str, device: str | None = None) -> Session:
    values: dict[str, Any] = {"gradient": "sparse", "temporary_peak_bytes": 512_000}
    tables = [
        make_embedding(layer=layer, ids=make_ids(), device=device, **values) for layer in layers
    ]
    return make_session(embeddings=tables)


def ended(outcome: ScriptOutcome, status: int | None) -> Session:
    session = session_of("items")
    script = session.script.model_copy(update={"outcome": outcome, "status": status})
    return session.model_copy(update={"script": script})


class Played:
    """Runs a program in place of the one that times, for tables whose ids were kept."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ids = directory
        self.told: list[Shown] = []
        self._patch = monkeypatch

    def run(self, program: str, *layers: str, **limits: Any) -> list[TableTimes]:
        bench = self.ids / "bench.py"
        bench.write_text(program, encoding="utf-8")
        self._patch.setattr(bench_process, "BENCH", bench)
        session = with_way_times(
            session_of(*layers, device=limits.get("device")),
            TimedWays(limits.get("budget_s", 5.0), 10),
            self.ids,
            self.told.append,
            limits.get("ends_at"),
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
    monkeypatch.setattr(bench_process, "START_S", 0.0)
    played.keep("items")
    (items,) = played.run(TELLS + "import time; time.sleep(600)", "items", budget_s=1.0)

    ways = {way.way: way for way in items.ways}
    assert ways["sgd"].speedup is not None
    assert "had not ended after 1 s" in (ways["hashing"].missing or "")


def test_where_nothing_can_be_timed_nothing_is_started(played: Played) -> None:
    *_, last = played.run("raise SystemExit(3)", "a", "b", "c", "d")

    assert last.missing == "The 3 largest tables alone are timed."
    assert played.told == []


@pytest.mark.parametrize(
    ("device", "hidden"),
    [
        ("/job:localhost/replica:0/task:0/device:CPU:0", "-1"),
        ("/job:localhost/replica:0/task:0/device:GPU:0", None),
        (None, None),
    ],
)
def test_a_gpu_is_left_to_others_as_far_as_it_can_be(
    played: Played, monkeypatch: pytest.MonkeyPatch, device: str | None, hidden: str | None
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    told = played.ids / "environment.json"
    program = f"import json, os; json.dump(dict(os.environ), open({str(told)!r}, 'w'))"
    played.keep("items")
    played.run(program, "items", device=device)

    given = json.loads(told.read_text())
    assert given["TF_FORCE_GPU_ALLOW_GROWTH"] == "true"
    assert given["KERAS_BACKEND"] == "tensorflow"
    assert given.get("CUDA_VISIBLE_DEVICES") == hidden


@pytest.mark.parametrize(("used", "rows"), [(0, 1000), (79_900_000, None)])
def test_a_table_on_a_gpu_is_as_large_as_what_is_free_there(
    played: Played, monkeypatch: pytest.MonkeyPatch, used: int, rows: int | None
) -> None:
    monkeypatch.setattr(way_times, "free_gpu_bytes", lambda _: 80_000_000 - used)
    played.keep("items")
    (items,) = played.run(TELLS, "items", device="/device:GPU:0")

    assert items.timed_rows == rows
    assert (items.missing is None) == (rows is not None)


@pytest.fixture
def interrupts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Interrupts]:
    """Those of this process, as a command takes them that runs a script."""
    monkeypatch.setattr(INTERRUPTS, "_count", 0)
    monkeypatch.setattr(INTERRUPTS, "_end_at", 1)
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    INTERRUPTS.take()
    INTERRUPTS.finish_first()
    yield INTERRUPTS
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_keeps_what_was_timed(played: Played, interrupts: Interrupts) -> None:
    played.keep("items")
    sends = "import os, time; os.kill(os.getppid(), 2); time.sleep(600)"
    (items,) = played.run(TELLS + sends, "items")

    ways = {way.way: way for way in items.ways}
    assert interrupts.came
    assert ways["sgd"].rounds == 4
    assert "Ctrl-C" in (ways["hashing"].missing or "")


def test_a_process_that_cannot_be_started_is_a_reason(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(BenchPlan, "write", full)
    played.keep("items")
    timed = with_way_times(session_of("items"), TimedWays(5.0, 10), played.ids, lambda _: None)

    assert timed.way_times is None
    assert "No space left" in (timed.way_times_missing or "")


def test_timing_ends_when_the_time_of_the_whole_run_does(played: Played) -> None:
    played.keep("items")
    soon = time.monotonic() + 0.5
    sleeps = "import time; time.sleep(600)"
    (items,) = played.run(sleeps, "items", budget_s=600.0, ends_at=soon)

    assert "`--timeout`" in (items.missing or "")
    (told,) = played.told
    assert isinstance(told, TimesTables)
    assert told.budget_s <= 0.5


def test_a_run_without_tables_says_so() -> None:
    session = make_session(embeddings=[], embeddings_missing="It ran eagerly.")

    assert why_not(session, None) == "It ran eagerly."


@pytest.mark.parametrize(
    ("outcome", "status", "ends_at", "reason"),
    [
        ("interrupted", -signal.SIGINT, None, "The run was interrupted"),
        ("timed-out", None, None, "`--timeout` ended the run"),
        ("killed", -signal.SIGTERM, None, "The run was asked to end"),
        ("killed", -signal.SIGHUP, None, "The run was asked to end"),
        ("stopped", None, 0.0, "`--timeout` gives was up"),
    ],
)
def test_what_its_user_or_the_clock_has_ended_is_not_gone_on_with(
    outcome: ScriptOutcome, status: int | None, ends_at: float | None, reason: str
) -> None:
    assert reason in (why_not(ended(outcome, status), ends_at) or "")


@pytest.mark.parametrize(
    ("outcome", "status"), [("stopped", None), ("raised", 1), ("killed", -signal.SIGKILL)]
)
def test_what_ended_otherwise_may_have_its_tables_timed(
    outcome: ScriptOutcome, status: int | None
) -> None:
    assert why_not(ended(outcome, status), None) is None
