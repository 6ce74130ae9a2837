from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.measuring.windows import OpenWindow, Stock
from pipediag.capture.recorder import Recorder, open_journal
from pipediag.capture.runtime import IteratorModel
from pipediag.session.recording import ModelNode


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return Recorder(tmp_path / "recording.json")


@pytest.fixture
def window(tmp_path: Path, recorder: Recorder) -> OpenWindow:
    journal = open_journal(tmp_path / "steps.journal")
    instruments: Any = SimpleNamespace(recorder=recorder, journal=journal)
    loop: Any = SimpleNamespace(record=SimpleNamespace(id="loop1"), ordinal=0)
    return OpenWindow.begin("baseline", loop, instruments)


def gaps(*times: int) -> IteratorModel:
    return IteratorModel(gaps_us=list(times), nodes=[], output_id=0)


def steps(window: OpenWindow, count: int) -> None:
    for step in range(count):
        window.add(100 + 10 * step, 10, 4, 1)


def test_a_block_takes_the_latest_gap_of_each_step(window: OpenWindow) -> None:
    steps(window, 3)
    window.close_block(gaps(9, 9, 1, 2, 3), unfinished=0, batches_per_call=1)

    (block,) = window.record.blocks
    assert block.gaps_us == [1, 2, 3]
    assert block.starts_ns == [100, 110, 120]
    assert block.waits_ns == [4, 4, 4]


def test_what_lies_between_two_blocks_is_no_part_of_its_spans(window: OpenWindow) -> None:
    steps(window, 2)
    window.close_block(None, 0, 1)
    window.add(900, 10, 4, 1)

    assert window.spans_ns() == [(100, 120), (900, 910)]


def node(number: int, name: str, buffered: int) -> ModelNode:
    return ModelNode(
        id=number,
        name=name,
        inputs=[],
        num_elements=0,
        processing_time_ns=0,
        bytes_produced=0,
        buffered_elements=buffered,
        autotune=True,
        parallelism=None,
        parallelism_tunable=None,
        buffer_size=None,
        buffer_size_tunable=None,
    )


def model(buffered: int, name: str = "Prefetch") -> IteratorModel:
    """A pipeline with so many batches ready, behind a buffer of another operation."""
    return IteratorModel([], [node(3, "ParallelMapV2", 50), node(1, name, buffered)], 1)


def stock_of(buffered: int) -> Stock:
    stock = Stock()
    stock.begin(model(buffered), batches=100)
    return stock


@pytest.mark.parametrize(
    ("left", "batches", "used_up"),
    [
        (3, 110, True),  # 7 of 10 came from the stock
        (8, 110, False),  # 2 of 10 did: a fifth
        (7, 110, True),
        (10, 110, False),
        (12, 110, False),
        (0, 100, False),  # no batch was handed out
    ],
)
def test_a_window_that_lived_on_ready_batches_is_told(
    left: int, batches: int, used_up: bool
) -> None:
    assert stock_of(10).used_up(model(left), batches) is used_up


def test_the_window_that_follows_is_compared_with_where_that_one_ended() -> None:
    stock = stock_of(10)

    assert stock.used_up(model(4), 110)
    assert not stock.used_up(model(3), 120)


def test_a_stock_that_shrinks_on_and_on_is_the_pipelines_pace() -> None:
    stock = stock_of(100)
    told = [stock.used_up(model(100 - 20 * number), 100 + 20 * number) for number in range(1, 6)]

    assert told == [True, True, True, False, False]


def behind_a_map(stocked: int, handed_out: int) -> IteratorModel:
    """Batches in a buffer of the user's, a cheap map behind it, and TensorFlow's own buffer."""
    held = replace(node(5, "Prefetch", stocked), num_elements=handed_out)
    return IteratorModel([], [node(1, "Prefetch", 2), node(3, "ParallelMapV2", 2), held], 1)


@pytest.mark.parametrize(("left", "used_up"), [(120, True), (190, False), (200, False)])
def test_a_stock_further_up_hides_what_makes_it_as_well(left: int, used_up: bool) -> None:
    stock = Stock()
    stock.begin(behind_a_map(200, 1000), batches=1000)
    assert stock.used_up(behind_a_map(left, 1100), 1100) is used_up
