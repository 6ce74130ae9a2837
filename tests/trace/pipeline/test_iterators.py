from __future__ import annotations

from pathlib import Path

from pipediag.trace.pipeline.iterators import IteratorActivity, Window, iterator_activity
from pipediag.trace.pipeline.records import pipeline_records
from tests.trace.builder import TraceBuilder
from tests.trace.pipelines import map_and_batch, sequential_map


def activity(builder: TraceBuilder, directory: Path, window: Window) -> dict[str, IteratorActivity]:
    events = builder.events(directory)
    found = iterator_activity(events, pipeline_records(events), window)
    return {iterator.path: iterator for iterator in found}


def test_an_asynchronous_iterator(tmp_path: Path) -> None:
    found = activity(map_and_batch(), tmp_path, (0, 1000))
    assert found["Root::MapAndBatch"] == IteratorActivity(
        path="Root::MapAndBatch",
        kind="MapAndBatch",
        names=("m", "b"),
        asynchronous=True,
        calls=1,
        total_ns=470,
        self_ns=18 + 120 + 6 + 200,
        wait_ns=470,
        parallelism=2,
        autotune=True,
        buffer_size=3,
        buffered_elements=1.0,
        batch_size=2,
        element_bytes=None,
    )


def test_the_root_says_how_large_a_batch_is(tmp_path: Path) -> None:
    root = activity(map_and_batch(), tmp_path, (0, 1000))["Root"]
    assert root.element_bytes == 1344.0
    assert (root.total_ns, root.self_ns, root.wait_ns) == (480, 10, None)


def test_a_source(tmp_path: Path) -> None:
    source = activity(map_and_batch(), tmp_path, (0, 1000))["Root::MapAndBatch::TensorSlice"]
    assert (source.calls, source.total_ns, source.self_ns) == (2, 10, 10)
    assert source.names == ("src",)
    assert source.autotune is None


def test_a_sequential_iterator_over_two_calls(tmp_path: Path) -> None:
    found = activity(sequential_map(), tmp_path, (0, 2000))
    assert (found["Root::Map"].calls, found["Root::Map"].self_ns) == (2, 620)
    shuffle = found["Root::Map::Shuffle"]
    assert (shuffle.buffer_size, shuffle.buffered_elements) == (100, 98.5)


def test_the_window_cuts_time_and_counts_calls_that_begin_in_it(tmp_path: Path) -> None:
    mapped = activity(sequential_map(), tmp_path, (200, 1100))["Root::Map"]
    # The first call's 200-380 and the second's 1020-1100, of which 1030-1080 is the shuffle's.
    assert (mapped.calls, mapped.total_ns, mapped.self_ns) == (1, 180 + 80, 180 + 30)


def test_an_iterator_that_did_nothing_in_the_window_is_left_out(tmp_path: Path) -> None:
    assert activity(sequential_map(), tmp_path, (500, 900)) == {}


def test_a_setting_that_autotune_changed_is_the_last_one(tmp_path: Path) -> None:
    builder = TraceBuilder()
    line = builder.host().line("python")
    for start, parallelism in ((0, 1), (10, 4)):
        line.event(
            "Iterator::Root::ParallelMapV2",
            start,
            start + 5,
            id=1,
            parallelism=parallelism,
            autotune="false",
        )
    found = activity(builder, tmp_path, (0, 100))["Root::ParallelMapV2"]
    assert (found.parallelism, found.autotune) == (4, False)
