from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.trace.pipeline.records import Spans, kind_of, pipeline_records, user_names
from tests.trace.builder import TraceBuilder
from tests.trace.pipelines import map_and_batch, sequential_map


def rows(spans: Spans) -> list[list[int]]:
    return sorted(spans.tolist())


def test_an_asynchronous_iterator_works_on_its_own_threads(tmp_path: Path) -> None:
    records = pipeline_records(map_and_batch().events(tmp_path))
    record = records["Root::MapAndBatch", ("m", "b")]
    assert record.asynchronous
    assert rows(record.waits) == [[20, 490]]
    # Each worker, less the call and the function that it started; then each function call once.
    workers = [[20, 22], [27, 30], [36, 40], [200, 202], [207, 210], [216, 220]]
    calls = [[30, 150], [210, 216], [240, 440]]
    assert rows(record.work) == sorted(workers + calls)


def test_a_function_on_two_threads_at_once_counts_once(tmp_path: Path) -> None:
    records = pipeline_records(map_and_batch().events(tmp_path))
    work = records["Root::MapAndBatch", ("m", "b")].work
    assert sum(end - start for start, end in work) == 18 + 120 + 6 + 200


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
    assert records["Root::Map", ("m",)].waits.size == 0


def test_a_worker_that_called_nothing_goes_to_the_only_iterator_of_its_kind(
    tmp_path: Path,
) -> None:
    builder = TraceBuilder()
    host = builder.host()
    host.line("python").event("Iterator::Root::Prefetch", 0, 10, id=1, parent_id=2, name="pf")
    host.line("tf_data_iterator_resource/1").event("PrefetchProduce", 20, 25)
    records = pipeline_records(builder.events(tmp_path))
    assert rows(records["Root::Prefetch", ("pf",)].work) == [[20, 25]]


def test_a_worker_of_two_iterators_of_a_kind_goes_to_neither(tmp_path: Path) -> None:
    builder = TraceBuilder()
    host = builder.host()
    line = host.line("python")
    line.event("Iterator::Root::Prefetch", 0, 10, id=1, parent_id=2, name="pf")
    line.event("Iterator::Root::Prefetch::Map::Prefetch", 2, 8, id=3, parent_id=4, name="qf")
    host.line("tf_data_iterator_resource/1").event("PrefetchProduce", 20, 25)
    records = pipeline_records(builder.events(tmp_path))
    assert [len(record.work) for record in records.values()] == [0, 0]


def test_a_function_started_in_a_call_is_part_of_the_call(tmp_path: Path) -> None:
    builder = TraceBuilder()
    line = builder.host().line("python")
    line.event("Iterator::Root::Map", 0, 100, id=1, parent_id=2, name="m")
    line.event("InstantiatedCapturedFunction::RunAsync", 20, 60, id=-9)
    records = pipeline_records(builder.events(tmp_path))
    assert rows(records["Root::Map", ("m",)].work) == [[0, 20], [20, 60], [60, 100]]


def test_instances_of_one_interleave_are_one_iterator(tmp_path: Path) -> None:
    builder = TraceBuilder()
    host = builder.host()
    line = host.line("tf_data_iterator_resource/1")
    line.event("Iterator::Root::ParallelInterleaveV4", 0, 5, id=1, parent_id=9, name="il")
    for number in (8, 9):
        start = number * 100
        line.event("ParallelInterleaveProduce", start, start + 50)
        line.event(
            f"Iterator::Root::ParallelInterleaveV4[{number}]::FiniteRepeat",
            start + 10,
            start + 30,
            id=number,
            parent_id=1,
            name=f"RepeatDataset:{number}",
        )
    records = pipeline_records(builder.events(tmp_path))
    inner = records["Root::ParallelInterleaveV4::FiniteRepeat", ()]
    assert sum(len(indices) for _, indices in inner.calls) == 2
    assert rows(records["Root::ParallelInterleaveV4", ("il",)].work) == [
        [800, 810],
        [830, 850],
        [900, 910],
        [930, 950],
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("m1", ("m1",)),
        ("fused(m2,b)", ("m2", "b")),
        ("fused(fused(a,b),c)", ("a", "b", "c")),
        ("my (odd, name)", ("my (odd, name)",)),
        ("fused(f(x,y),b)", ("f(x,y)", "b")),
        ("RepeatDataset:25", ()),
        ("fused(MapDataset:3,b)", ("b",)),
        ("", ()),
    ],
)
def test_user_names(name: str, expected: tuple[str, ...]) -> None:
    assert user_names(name) == expected


def test_the_kind_is_the_last_part() -> None:
    assert kind_of("Root::Prefetch::MapAndBatch") == "MapAndBatch"
    assert kind_of("Root") == "Root"
