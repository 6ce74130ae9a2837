"""Devices, the pipeline's operations and embedding tables in words."""

from __future__ import annotations

from typing import get_args

import pytest

from pipediag.reporters.words import embeddings
from pipediag.reporters.words import pipeline as pipeline_rows
from pipediag.reporters.words.devices import (
    idle_parts,
    summary,
)
from pipediag.reporters.words.labels import SourceNames
from pipediag.reporters.words.quantities import NO_BREAK, NOTHING
from pipediag.session.devices import DeviceActivity
from pipediag.session.embeddings import EmbeddingCost
from pipediag.session.pipeline import Operation, Pipeline
from pipediag.vocabulary import StepPart
from tests import factories, records
from tests.factories import (
    make_compute_bound_session,
    make_embedding,
    make_embedding_cost,
    make_session,
)
from tests.reporters import devices
from tests.rules.sessions import make_ids


def summary_of(device: DeviceActivity) -> str:
    found = summary(device, device.name)
    return (found.lead + found.rest).replace("\N{NO-BREAK SPACE}", " ")


def test_copies_and_collectives_without_kernels_are_no_computing() -> None:
    device = devices.make_gpu(exposed_collective_ms=3.0, causes_ms={"python": 59.0})
    assert summary_of(device) == (
        "GPU:0 computes 35 % of 100 ms: 5.0 % only copying, 3.0 % only collectives, "
        "60 % idle, mostly Python"
    )


def test_the_parts_add_up_to_the_idle_time_longest_first() -> None:
    parts = idle_parts(devices.make_gpu())
    assert [(part.label, part.ms) for part in parts] == [
        ("Waiting for input", 45.0),
        ("Launching operations", 10.0),
        ("Blocking copy", 4.0),
        ("Gaps under 5\N{NO-BREAK SPACE}µs", 1.0),
    ]
    assert sum(part.percent_of_idle for part in parts) == pytest.approx(100.0)
    assert sum(part.percent_of_span for part in parts) == pytest.approx(60.0)


def test_a_cause_of_a_newer_version_is_shown_as_it_is_called() -> None:
    [part] = idle_parts(devices.make_gpu(noise_ms=0.0, causes_ms={"power_cap": 60.0}))
    assert (part.label, part.meaning) == ("power cap", "")


def rows_of(
    *operations: Operation, bottleneck: str | None = None
) -> list[pipeline_rows.PipelineRow]:
    pipeline = Pipeline(ops=list(operations), bottleneck_op_id=bottleneck)
    session = factories.make_session(pipeline=pipeline)
    return pipeline_rows.pipeline_rows(pipeline, SourceNames(session))


def test_rows_keep_the_order_of_the_data_and_share_the_time() -> None:
    rows = rows_of(
        records.make_operation("a", "range", self_ms_per_step=1.0),
        records.make_operation("b", "map", self_ms_per_step=3.0, parent_ids=["a"]),
        bottleneck="b",
    )
    assert [row.op.id for row in rows] == ["a", "b"]
    assert [row.share_percent for row in rows] == [25.0, 75.0]
    assert [row.bottleneck for row in rows] == [False, True]
    assert [row.reads_from for row in rows] == [[], []]


def test_branches_say_what_they_read() -> None:
    rows = rows_of(
        records.make_operation("a", "range"),
        records.make_operation("b", "TextLineDataset"),
        records.make_operation("c", "zip", parent_ids=["a", "b"]),
    )
    assert rows[2].reads_from == ["range", "TextLineDataset"]


def test_what_tensorflow_did_is_said_in_words() -> None:
    fused = records.make_operation(
        "a", "map", fused_into="b", function=records.make_function(name="pad")
    )
    rows = rows_of(fused, records.make_operation("b", "batch", fused_from=["a"]))
    assert rows[0].notes == ["fused into batch, counted there"]
    assert rows[1].notes == ["fused from map(pad)"]


def test_the_dearest_rows_include_the_bottleneck_in_data_order() -> None:
    operations = [
        records.make_operation(f"op_{index}", self_ms_per_step=float(index)) for index in range(9)
    ]
    rows = rows_of(*operations, bottleneck="op_1")
    assert [row.op.id for row in pipeline_rows.dearest(rows, 3)] == ["op_1", "op_7", "op_8"]


@pytest.mark.parametrize(
    ("fields", "parallel", "buffer"),
    [
        ({}, NOTHING, NOTHING),
        ({"parallelism": 1, "autotuned": False}, "1, serial", NOTHING),
        ({"parallelism": 4, "autotuned": False}, "4, fixed", NOTHING),
        ({"parallelism": 2, "autotuned": True}, "2, tuned", NOTHING),
        ({"autotuned": True, "buffer_size": 2, "buffered_elements": 0.1}, NOTHING, "0.10 of 2"),
        ({"buffer_size": 1000}, NOTHING, "1,000 slots"),
        ({"buffered_elements": 3.0}, NOTHING, "3 ready"),
    ],
)
def test_parallelism_and_buffers_in_words(
    fields: dict[str, object], parallel: str, buffer: str
) -> None:
    op = records.make_operation(**fields)
    assert pipeline_rows.parallel_calls(op) == parallel
    assert pipeline_rows.buffer_fill(op).replace("\xa0", " ") == buffer


def test_gradient_and_update() -> None:
    spread = make_embedding(gradient="sparse", update="dense", gradient_spread=True)
    rows = make_embedding(gradient="sparse", update="sparse", gradient_spread=False)
    frozen = make_embedding(trainable=False)
    assert [embeddings.gradient(one) for one in (spread, rows, frozen)] == [
        "sparse, made dense", "sparse", "frozen"
    ]  # fmt: skip
    assert embeddings.gradient(make_embedding()) == NOTHING
    assert [embeddings.update(one) for one in (spread, rows, frozen)] == [
        "whole table", "its rows", NOTHING
    ]  # fmt: skip


def test_padding_is_only_what_model_or_pipeline_call_so() -> None:
    ids = make_ids(zero_percent=62)
    for_no_token = make_ids(zero_percent=62, zero_is_a_token=False)
    assert embeddings.padding(make_embedding(ids=ids, mask_zero=True)) == f"62{NO_BREAK}%"
    assert embeddings.padding(make_embedding(ids=for_no_token)) == f"62{NO_BREAK}%"
    assert embeddings.padding(make_embedding(ids=ids)) == NOTHING
    assert embeddings.padding(make_embedding(mask_zero=True)) == NOTHING


def test_every_part_has_a_name_of_its_own() -> None:
    parts: tuple[StepPart, ...] = get_args(StepPart)
    cost = make_embedding_cost(*((part, 1.0) for part in parts))
    names = [embeddings.part_name(one) for one in cost.parts]
    assert len(set(names)) == len(names) == len(parts)


def test_a_compute_bound_step_says_which_table_takes_most_of_it() -> None:
    update = make_embedding_cost(("update", 9.0), ("rest", 1.0))
    rest = make_embedding_cost(("update", 2.0), ("rest", 8.0))
    shared = make_embedding_cost(("update", 4.0), ("lookup", 3.0), ("rest", 3.0))

    def said(cost: EmbeddingCost) -> str | None:
        session = make_compute_bound_session()
        return embeddings.largest_part(session.model_copy(update={"embedding_cost": cost}))

    assert said(update) == (
        "Most of that is the optimizer's update of `embedding`: 9.00\N{NO-BREAK SPACE}ms, 90 % of "
        "the compute."
    )
    assert said(rest) is None
    assert said(shared) is None
    assert embeddings.largest_part(make_compute_bound_session()) is None
    assert embeddings.largest_part(make_session(embedding_cost=update)) is None
