from __future__ import annotations

import pytest

from pipediag.measures.missing import Missing
from pipediag.session.table_bench import BenchTable, NotTimed, Placed, Result, Round
from pipediag.trials.way_plan import Wanted
from pipediag.trials.way_times import table_times
from tests.factories import make_embedding

BENCH = BenchTable("ids.npz", 500, 64, "float32", True, ["row-wise update", "sgd"], ["8-bit rows"])
ASKED = Wanted(BENCH, {"sharding": "Not here."}, ["Half of it."])
PLACED = Placed(0, "/device:CPU:0", 8)


def rounds(*pairs: tuple[float, float]) -> list[Result]:
    return [Round(0, "row-wise update", "step", base, ms) for base, ms in pairs]


def test_a_ratio_has_the_interval_of_its_rounds() -> None:
    told = [PLACED, *rounds((60.0, 10.0), (66.0, 11.0), (72.0, 12.0), (61.0, 10.0))]
    found = table_times(make_embedding(), ASKED, told, "It ended.")

    way = found.ways[0]
    assert (way.way, way.timed, way.rounds) == ("row-wise update", "step", 4)
    assert way.speedup == pytest.approx(6.025, abs=0.01)
    assert way.ci95 is not None
    assert way.ci95[0] < way.speedup < way.ci95[1]
    assert (way.base_ms, way.ms) == (63.5, 10.5)
    assert (found.timed_rows, found.batches, found.notes) == (500, 8, ["Half of it."])


def test_each_way_has_a_ratio_or_says_why_not() -> None:
    told = [PLACED, *rounds((6.0, 1.0), (6.0, 1.0)), NotTimed(0, "8-bit rows", "No kernel.")]
    found = table_times(make_embedding(), ASKED, told, "It was killed.", "Give more time.")

    reasons = {way.way: way.missing for way in found.ways}
    assert reasons == {
        "row-wise update": "The time was up after 2 of at least 3 rounds. Give more time.",
        "sgd": "It was killed.",
        "8-bit rows": "No kernel.",
        "sharding": "Not here.",
    }
    assert all(way.speedup is way.ci95 is None for way in found.ways)


@pytest.mark.parametrize(
    ("asked", "told", "reason"),
    [
        (Missing("No ids."), [], "No ids."),
        (ASKED, [], "It was killed."),
        (ASKED, [NotTimed(0, None, "No row.")], "No row."),
    ],
)
def test_a_table_that_was_not_timed_says_why(
    asked: Wanted | Missing, told: list[Result], reason: str
) -> None:
    found = table_times(make_embedding(), asked, told, "It was killed.")

    assert (found.missing, found.ways, found.timed_rows) == (reason, [], None)
