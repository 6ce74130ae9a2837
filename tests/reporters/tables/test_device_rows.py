from __future__ import annotations

import pytest

from pipediag.reporters.tables.device_rows import DEVICE_COLUMNS, GAP_COLUMNS, device_rows, gap_rows
from tests.reporters import devices


def test_rows_have_exactly_the_columns() -> None:
    found = [devices.make_gpu(), devices.make_cpu(host="vm")]

    assert [set(row) for row in device_rows(found)] == [set(DEVICE_COLUMNS)] * 2
    assert [set(row) for row in gap_rows(found)] == [set(GAP_COLUMNS)] * 6
    assert len(set(DEVICE_COLUMNS)) == len(DEVICE_COLUMNS)
    assert len(set(GAP_COLUMNS)) == len(GAP_COLUMNS)


def test_a_gap_is_divided_among_the_causes() -> None:
    [first, *_] = gap_rows([devices.make_gpu()])

    assert (first["duration_ms"], first["cause"]) == (30.0, "input")
    assert (first["input_ms"], first["launch_ms"], first["copy_ms"]) == (28.0, 2.0, 0.0)
    assert (first["iterator"], first["step"]) == ("Root::Prefetch::ParallelMapV2", 1)
    assert first["doing"] == "IteratorGetNextOp::DoCompute"


def test_without_a_division_the_causes_are_not_known() -> None:
    gap = devices.make_gap(causes_ms={})
    [row] = gap_rows([devices.make_gpu(gaps=[gap])])

    assert row["input_ms"] is None


def test_causes_and_short_gaps_add_up_to_the_idle_time() -> None:
    [row] = device_rows([devices.make_gpu()])

    idle = [
        value
        for name, value in row.items()
        if name == "noise_ms"
        or (name.startswith("idle_") and name not in ("idle_ms", "idle_percent"))
    ]
    assert sum(float(value or 0) for value in idle) == pytest.approx(60.0) == row["idle_ms"]


def test_copies_by_direction_and_launches() -> None:
    gpu, cpu = device_rows([devices.make_gpu(), devices.make_cpu()])

    assert gpu["host_to_device_copied_bytes"] == 70_000_000
    assert gpu["host_to_device_exposed_copy_ms"] == 5.0
    assert gpu["set_copied_bytes"] is None
    assert gpu["device_to_host_copies"] is None
    assert gpu["kernels_per_s"] == 2640.0
    assert cpu["kernels"] is None
