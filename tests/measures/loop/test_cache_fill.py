"""Whether measured steps are those of the epoch that fills a cache, on recordings made by hand.

The baseline's steps begin from 4000 to 4390 ms.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipediag.measures.loop_time import cache_filled_meanwhile, time_of
from pipediag.measures.loops import projected_s
from pipediag.session.recorded_loops import RecordedSeam
from pipediag.session.recorded_operations import RecordedOperation
from tests.recordings import (
    make_node,
    make_recorded_loop,
    make_recorded_operation,
    make_recording,
    make_snapshot,
)
from tests.records import MS


def chain(*kinds: str) -> list[RecordedOperation]:
    """Operations that read one from the other, each with its kind as its id."""
    return [
        make_recorded_operation(kind, kind, parent_ids=[kinds[number - 1]] if number else [])
        for number, kind in enumerate(kinds)
    ]


CACHED = chain("from_tensor_slices", "repeat", "cache", "batch")


def filled(
    operations: list[RecordedOperation] = CACHED, snapshots: Any = (), **loop: Any
) -> str | None:
    last = operations[-1].id
    own = make_recorded_loop(**{"root_op_id": last, "keras": None, "planned_rounds": 5, **loop})
    recording = make_recording(operations=operations, loops=[own], snapshots=list(snapshots))
    op = cache_filled_meanwhile(recording, own)
    return op.id if op is not None else None


@pytest.mark.parametrize(("rounds", "fills"), [(20, "cache"), (1, None), (None, None)])
def test_a_fit_of_one_epoch_that_comes_again_reads_what_the_first_one_filled(
    rounds: int | None, fills: str | None
) -> None:
    keras = replace(make_recorded_loop().keras, epochs=1)  # type: ignore[type-var]
    assert filled(keras=keras, planned_rounds=rounds) == fills


def test_what_another_run_may_have_written_is_not_said_to_be_filled() -> None:
    assert filled(chain("from_tensor_slices", "snapshot", "batch")) is None


def ended(at_ms: int) -> dict[str, Any]:
    seam = RecordedSeam(start_ns=at_ms * MS, asked_ns=at_ms * MS, handed_ns=None)
    return {"seams": 1, "epoch_seams": [seam]}


def test_steps_before_the_first_epoch_has_ended_fill_its_cache() -> None:
    assert filled() == "cache"
    assert filled(planned_rounds=None) == "cache"
    assert filled(**ended(4390)) == "cache"
    assert filled(chain("range", "cache", "batch")) == "cache"
    keras = make_recorded_loop().keras
    assert filled(keras=keras, planned_rounds=None) == "cache"


@pytest.mark.parametrize(
    "there",
    [
        {"planned_rounds": 1},
        {"operations": chain("range", "map", "batch")},
        {"operations": chain("range", "cache", "repeat", "batch")},
        {"role": "evaluation"},
        ended(4389),
        {"seams": 1},
        {"root_op_id": None},
        {"id": "another"},
    ],
    ids=[
        "one epoch",
        "no cache",
        "its ends are not seen",
        "no training",
        "an epoch ended",
        "nobody knows when",
        "no tf.data",
        "not measured",
    ],
)
def test_of_others_that_is_not_said(there: dict[str, Any]) -> None:
    assert filled(**there) is None


def test_its_time_is_not_carried_on_to_later_epochs() -> None:
    """The loop plans 625 steps, of which 60 were seen."""
    keras = make_recorded_loop().keras
    assert keras is not None
    keras = replace(keras, steps_per_epoch=125, epochs=5)
    seen: dict[str, Any] = {"warm_ns": 3000 * MS, "last_ns": 4400 * MS, "asked_ns": 2000 * MS}
    own = make_recorded_loop(root_op_id="batch", keras=keras, warm_steps=60, **seen)
    cached = make_recording(operations=CACHED, loops=[own])
    plain = make_recording(operations=chain("from_tensor_slices", "batch"), loops=[own])

    basis = [time.basis for one in (cached, plain) if (time := time_of(one, own)) is not None]
    assert basis == ["measured", "projected"]
    assert projected_s(cached, own) is None
    assert projected_s(plain, own) is not None


def test_a_cache_that_was_full_is_not_filled() -> None:
    """As from an earlier run, in a file; while it fills, it has inputs."""
    full = [make_node(1, "Root", [2]), make_node(2, "MemoryCacheImpl", [])]
    fills = [make_node(1, "Root", [2]), make_node(2, "MemoryCacheImpl", [3]), make_node(3, "X", [])]

    assert filled(snapshots=[make_snapshot(10, nodes=fills, output_id=1)]) == "cache"
    assert filled(snapshots=[make_snapshot(10, nodes=full, output_id=1)]) is None
