"""Small tables, timed in this process; what the times are decides nothing."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipediag.session.table_bench import (
    BenchPlan,
    BenchTable,
    NotTimed,
    Placed,
    Result,
    Round,
    results_in,
)
from pipediag.table_bench.turns import Arm
from pipediag.vocabulary import WayName

pytestmark = pytest.mark.tensorflow

WHOLE = "whole.npz"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    batches = {str(number): np.arange(7 + number) for number in range(3)}
    np.savez(tmp_path / WHOLE, **batches)
    return tmp_path


@pytest.fixture
def one_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of as many as fit into the time, which may be none."""
    from pipediag.table_bench import timing

    def rounds(base: Arm, arm: Arm, _: float, settle: Any) -> Iterator[tuple[float, float]]:
        settle(base.call())
        settle(arm.call())
        yield 1.0, 1.0

    monkeypatch.setattr(timing, "rounds_of", rounds)


def a_table(directory: Path, ids: str, **overrides: Any) -> BenchTable:
    values: dict[str, Any] = {
        "rows": 100,
        "dim": 4,
        "dtype": "float32",
        "reads_whole": False,
        "step_ways": ["sgd"],
        "lookup_ways": ["memory-mapped and frozen"],
        "optimizer": "Adam",
        "slots": 2,
    }
    return BenchTable(ids_file=str(directory / ids), **{**values, **overrides})


def told_of(directory: Path, *tables: BenchTable) -> list[Result]:
    from pipediag.table_bench.timing import time_tables

    results = directory / "results.jsonl"
    time_tables(BenchPlan(list(tables), 0.5, 10, str(results), str(directory)))
    return list(results_in(results))


@pytest.mark.usefixtures("one_round")
def test_ids_that_cannot_be_read_cost_their_own_table_alone(directory: Path) -> None:
    whole = (directory / WHOLE).read_bytes()
    (directory / "cut.npz").write_bytes(whole[: len(whole) // 2])
    np.savez(directory / "empty.npz", **{"0": np.arange(0)})
    names = ("cut.npz", "gone.npz", "empty.npz", WHOLE)
    told = told_of(directory, *(a_table(directory, name) for name in names))

    reasons = {one.table: one.reason for one in told if isinstance(one, NotTimed)}
    assert set(reasons) == {0, 1, 2}
    assert reasons[1].startswith("FileNotFoundError")
    assert reasons[2] == "No id of its batches is a row of it."
    assert [one.table for one in told if isinstance(one, Placed)] == [3]
    assert {one.way for one in told if isinstance(one, Round)} == {
        "sgd",
        "memory-mapped and frozen",
    }


@pytest.mark.usefixtures("one_round")
def test_an_optimizer_that_is_not_known_costs_the_steps_alone(directory: Path) -> None:
    told = told_of(directory, a_table(directory, WHOLE, optimizer="Own"))

    (refused,) = [one for one in told if isinstance(one, NotTimed)]
    assert (refused.way, refused.reason[:20]) == ("sgd", "Own is neither an op")
    assert {one.way for one in told if isinstance(one, Round)} == {"memory-mapped and frozen"}


def test_what_a_way_that_failed_has_made_is_gone_before_the_next_one(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipediag.table_bench import timing

    made: list[weakref.ref[Any]] = []
    alive: list[int] = []
    way_out = timing.way_out

    @contextmanager
    def watched(way: WayName, *rest: Any) -> Iterator[Any]:
        alive.append(sum(one() is not None for one in made))
        with way_out(way, *rest) as lookup:
            made.extend(weakref.ref(one) for one in lookup.variables)
            yield lookup

    def fails(*_: object) -> Iterator[tuple[float, float]]:
        raise MemoryError("No room for it.")

    monkeypatch.setattr(timing, "way_out", watched)
    monkeypatch.setattr(timing, "rounds_of", fails)
    ways = ["sgd", "hashing", "bfloat16"]
    told = told_of(directory, a_table(directory, WHOLE, step_ways=ways, lookup_ways=[]))

    reasons = [one.reason for one in told if isinstance(one, NotTimed)]
    assert reasons == ["MemoryError: No room for it."] * 3
    assert len(made) == 3
    assert alive == [0, 0, 0]


def test_mapped_look_ups_keep_no_result_that_is_not_wanted() -> None:
    from pipediag.table_bench.lookups import Lookup
    from pipediag.table_bench.timing import _last_of

    class Vectors:
        """One that lives as long as it is held."""

    made: list[weakref.ref[Vectors]] = []
    alive: list[int] = []

    def of(_: object) -> Vectors:
        alive.append(sum(one() is not None for one in made))
        vectors = Vectors()
        made.append(weakref.ref(vectors))
        return vectors

    last = _last_of(Lookup(of, traced=False), range(4))

    assert last is made[-1]()
    assert alive == [0, 1, 1, 1]
