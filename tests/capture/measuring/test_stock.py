from __future__ import annotations

from dataclasses import replace

import pytest

from pipediag.capture.measuring.open_window import Stock
from pipediag.capture.runtime import IteratorModel
from pipediag.session.recorded_model import ModelNode


def node(number: int, name: str, buffered: int) -> ModelNode:
    return ModelNode(
        id=number,
        name=name,
        inputs=[],
        num_elements=0,
        processing_time_ns=0,
        bytes_produced=0,
        bytes_consumed=0,
        buffered_elements=buffered,
        buffered_bytes=0,
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


@pytest.mark.parametrize("name", ["Prefetch", "ParallelMapV2", "MapAndBatchV2", "ParallelBatch"])
def test_each_operation_that_lays_up_ready_batches_counts(name: str) -> None:
    stock = Stock()
    stock.begin(model(10, name), batches=100)

    assert stock.used_up(model(0, name), 110)


def test_what_waits_behind_the_last_buffer_is_no_stock() -> None:
    stock = Stock()
    stock.begin(IteratorModel([], [node(1, "Prefetch", 2), node(2, "Prefetch", 90)], 1), 100)

    assert not stock.used_up(
        IteratorModel([], [node(2, "Prefetch", 0), node(1, "Prefetch", 2)], 1), 110
    )


def test_without_a_model_nothing_is_known() -> None:
    stock = Stock()
    assert not stock.used_up(model(0), 110)
    stock.begin(None, batches=100)
    assert not stock.used_up(model(0), 110)
    assert not stock_of(10).used_up(None, 110)


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
