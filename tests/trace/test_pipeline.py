from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.trace.pipeline import (
    IteratorActivity,
    Spans,
    Window,
    iterator_activity,
    pipeline_records,
    user_names,
)
from tests.trace.builder import TraceBuilder

ROOT, BATCH, MAP, SOURCE = 1, 2, 3, 4


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("fused(fused(a,b),c)", ("a", "b", "c")),
        ("fused(crop,RepeatDataset:25)", ("crop",)),
        ("resize(8,8)", ("resize(8,8)",)),
        ("", ()),
    ],
)
def test_a_fused_operation_has_the_names_of_its_parts(name: str, names: tuple[str, ...]) -> None:
    assert user_names(name) == names


def map_and_batch() -> TraceBuilder:
    """One batch of two: MapAndBatch runs an asynchronous function over a TensorSlice.

    The consumer waits 10-500. The producer fetches at 20-40 and 200-220 and starts the function;
    call -7 executes at 30-130 (30-36 of it in RunAsync) and, on another thread, at 120-150; call
    -8 executes at 240-440.
    """
    builder = TraceBuilder()
    host = builder.host()
    consumer = host.line("tf_data_iterator_get_next/1")
    consumer.event("IteratorGetNextOp::DoCompute", 10, 500, id=99, element_size=1344)
    consumer.event("Iterator::Root", 15, 495, id=ROOT, name="fused(m,b)", cpu_budget=2)
    consumer.event(
        "Iterator::Root::MapAndBatch",
        20,
        490,
        id=BATCH,
        parent_id=ROOT,
        name="fused(m,b)",
        autotune="true",
        parallelism=2,
        max_batch_results=3,
        buffered_elements=1,
    )
    consumer.event("MapAndBatchConsume", 485, 488, element_id=5)
    producer = host.line("tf_data_iterator_resource/1")
    for start, function in ((20, -7), (200, -8)):
        producer.event("MapAndBatchProduce", start, start + 20, element_id=5)
        producer.event(
            "Iterator::Root::MapAndBatch::TensorSlice",
            start + 2,
            start + 7,
            id=SOURCE,
            parent_id=BATCH,
            name="src",
        )
        producer.event(
            "InstantiatedCapturedFunction::RunAsync", start + 10, start + 16, id=function
        )
        producer.event("FunctionRun", start + 10, start + 15, id=function)
    first = host.line("tf_data_private_threadpool/1")
    first.event("ExecutorState::Process", 32, 130, id=-7)
    first.event("PyFunc:PyFunc", 40, 128)
    first.event("ExecutorState::Process", 240, 440, id=-8)
    second = host.line("tf_data_private_threadpool/2")
    second.event("ExecutorDoneCallback", 120, 150, id=-7)
    second.event("ExecutorState::Process", 160, 190, id=12345)
    return builder


def sequential_map() -> TraceBuilder:
    """Two calls of a sequential map inside Root: its function runs within its own call."""
    builder = TraceBuilder()
    line = builder.host().line("python")
    for start in (0, 1000):
        line.event("IteratorGetNextOp::DoCompute", start, start + 400, id=99, element_size=80)
        line.event("Iterator::Root", start + 10, start + 390, id=ROOT, name="m")
        line.event("Iterator::Root::Map", start + 20, start + 380, id=MAP, parent_id=ROOT, name="m")
        line.event(
            "Iterator::Root::Map::Shuffle",
            start + 30,
            start + 80,
            id=SOURCE,
            parent_id=MAP,
            name="shuf",
            buffer_size=100,
            buffered_elements=98 if start else 99,
        )
        line.event(
            "InstantiatedCapturedFunction::RunWithBorrowedArgs", start + 90, start + 370, id=-start
        )
    return builder


def rows(spans: Spans) -> list[list[int]]:
    return sorted(spans.tolist())


def test_a_sequential_iterator_works_in_its_call_less_what_it_calls(tmp_path: Path) -> None:
    records = pipeline_records(sequential_map().events(tmp_path))
    assert rows(records["Root::Map", ("m",)].work) == [
        [20, 30],
        [80, 380],
        [1020, 1030],
        [1080, 1380],
    ]
    assert rows(records["Root", ("m",)].work) == [[10, 20], [380, 390], [1010, 1020], [1380, 1390]]
    assert rows(records["Root::Map::Shuffle", ("shuf",)].work) == [[30, 80], [1030, 1080]]


def test_a_worker_that_called_nothing_goes_to_the_only_iterator_of_its_kind(tmp_path: Path) -> None:
    builder = TraceBuilder()
    host = builder.host()
    host.line("python").event("Iterator::Root::Prefetch", 0, 10, id=1, parent_id=2, name="pf")
    host.line("tf_data_iterator_resource/1").event("PrefetchProduce", 20, 25)
    records = pipeline_records(builder.events(tmp_path))
    assert rows(records["Root::Prefetch", ("pf",)].work) == [[20, 25]]


def activity(builder: TraceBuilder, directory: Path, window: Window) -> dict[str, IteratorActivity]:
    found = iterator_activity(pipeline_records(builder.events(directory)), window)
    return {iterator.path: iterator for iterator in found}


def test_an_asynchronous_iterator(tmp_path: Path) -> None:
    found = activity(map_and_batch(), tmp_path, (0, 1000))
    assert found["Root::MapAndBatch"] == IteratorActivity(
        path="Root::MapAndBatch",
        names=("m", "b"),
        calls=1,
        self_ns=18 + 120 + 6 + 200,
        parallelism=2,
        autotune=True,
        buffer_size=3,
        buffered_elements=1.0,
    )


def test_the_window_cuts_time_and_counts_calls_that_begin_in_it(tmp_path: Path) -> None:
    mapped = activity(sequential_map(), tmp_path, (200, 1100))["Root::Map"]
    # The first call's 200-380 and the second's 1020-1100, of which 1030-1080 is the shuffle's.
    assert (mapped.calls, mapped.self_ns) == (1, 180 + 30)
