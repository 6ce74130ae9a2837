from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.runner.framework_log.lines import behind, folds, may_begin

HERE = Path(__file__).parent


def lines(name: str) -> list[bytes]:
    """Of a file in which others stand that say where they come from."""
    text = (HERE / name).read_bytes()
    return [line for line in text.splitlines() if not line.startswith(b"#")]


FOLDED = lines("folded.txt")
SHOWN = lines("shown.txt")
SECOND = [
    b"To enable the following instructions: AVX2 FMA, in other operations, rebuild TensorFlow with "
    b"the appropriate compiler flags.",
    b"Skipping registering GPU devices...",
    b"\t [[{{node IteratorGetNext}}]]",
]


@pytest.mark.parametrize("line", FOLDED)
def test_what_the_framework_says_by_the_way_is_folded(line: bytes) -> None:
    assert folds(line)
    assert folds(line + b"\n")


@pytest.mark.parametrize("line", SHOWN)
def test_all_else_is_shown(line: bytes) -> None:
    assert not folds(line)
    assert not folds(line, after_folded=True)


@pytest.mark.parametrize("line", SECOND)
def test_a_second_line_is_folded_behind_the_first_only(line: bytes) -> None:
    assert folds(line, after_folded=True)
    assert not folds(line)


@pytest.mark.parametrize("line", [*FOLDED, *SECOND])
def test_each_start_of_a_line_to_fold_is_known(line: bytes) -> None:
    assert all(may_begin(line[:end], after_folded=True) for end in range(1, len(line)))


@pytest.mark.parametrize(
    "start", [b"Epoch", b"\r 10%|", b"Continue? ", b"20 of", b"2026-11-23 10:00:00,", b"In", b"W1"]
)
def test_other_starts_need_not_wait(start: bytes) -> None:
    assert not may_begin(start)


@pytest.mark.parametrize("line", FOLDED[:4])
def test_a_line_behind_a_progress_bar_is_found(line: bytes) -> None:
    bar = b"\r 10%|#   | 1/10 [00:01]"
    assert behind(bar + line, 1) == len(bar)
    assert behind(bar + b"done", 1) == -1
    assert behind(bar + SHOWN[-1], 1) == -1
