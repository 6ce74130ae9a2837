"""Which subset is best, and what the table says; nothing is run here."""

from __future__ import annotations

from benchmarks.blocks import BlockResult
from benchmarks.edit_arms import EditArm
from benchmarks.speedup import Result, best_arm, distinct, markdown, rows
from pipediag.session.edits import Insert

PREFETCH = Insert("op1", "prefetch", {"buffer_size": -1})
ARMS = {
    "as written": EditArm("as written", ()),
    "guide": EditArm("guide", (PREFETCH,)),
    "pipediag": EditArm("pipediag", ()),
    "best found": EditArm("e1", (PREFETCH,), ("e1",)),
}


def test_the_best_arm_has_the_highest_median_and_was_not_refused() -> None:
    blocks = [
        BlockResult("a", 1, 100.0),
        BlockResult("a", 2, 300.0),
        BlockResult("a", 3, 100.0),
        BlockResult("b", 1, 110.0),
        BlockResult("b", 2, 120.0),
        BlockResult("b", 3, 110.0),
        BlockResult("c", 1, None, refused="why"),
    ]
    assert best_arm(blocks) == "b"


def test_arms_of_equal_changes_are_measured_once() -> None:
    assert list(distinct(ARMS)) == ["as written", "guide"]


def test_ratios_are_taken_round_by_round() -> None:
    result = Result("w", ARMS, {"as written": [100.0, 200.0], "guide": [150.0, 300.0]})
    ratio = result.ratio("guide")
    assert ratio is not None
    assert (ratio.median, ratio.low, ratio.high, ratio.rounds) == (1.5, 1.5, 1.5, 2)
    assert result.ratio("pipediag") is None


def test_the_table_says_what_was_refused_and_what_was_best() -> None:
    result = Result(
        "w",
        ARMS,
        {"as written": [1000.0, 1000.0], "best found": [2000.0, 2000.0]},
        refused={"guide": "ValueError: no"},
        searched=2,
    )
    assert "refused: ValueError: no" in rows(result)
    assert markdown([result], "Example CPU").splitlines()[-1] == (
        "| w | 1,000 | refused: ValueError: no | - | 2.00x [2.00, 2.00] (`e1`; of 2) | none |"
    )
