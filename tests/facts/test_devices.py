"""Devices, the machine, and the memory of embedding tables."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.facts.devices import held_up
from pipediag.facts.embeddings import MemoryPlan, plan_memory
from pipediag.facts.machine import cores_allowed, pool_size
from pipediag.reporters.words.embeddings import memory_needed
from pipediag.session.recording import Device
from pipediag.session.timeline import GpuReading
from tests.factories import make_embedding, make_host, make_keras, make_loop, make_session
from tests.records import make_environment, make_operation, make_pipeline
from tests.rules.sessions import gap, gpu


def test_a_gap_counts_for_each_of_its_causes_that_is_known() -> None:
    both = gap("input", 10.0, causes_ms={"input": 6.0, "python": 4.0})
    plain = gap("input", 10.0, causes_ms={})
    device = gpu(gaps=[both, plain])
    assert held_up(device, "input") == [(both, 6.0), (plain, 10.0)]
    assert held_up(device, "python") == [(both, 4.0)]
    assert held_up(device, "copy") == []


@pytest.mark.parametrize(("quota", "allowed"), [(None, 8.0), (2.5, 2.5), (16.0, 8.0)])
def test_a_quota_beyond_the_cores_allows_no_more_of_them(
    quota: float | None, allowed: float
) -> None:
    assert cores_allowed(make_environment(cores=8, cpu_quota=quota)) == allowed


def test_an_option_sets_the_pools_size() -> None:
    options = {"threading.private_threadpool_size": 16}
    session = make_session(pipeline=make_pipeline(options=options))
    assert pool_size(session, make_operation("map")) == 16


TABLE = 1000 * 64 * 4
ADAM = {"gradient": "sparse", "temporary_bytes": 2 * TABLE}
SGD = {"gradient": "sparse", "slot_bytes": 0, "copied_bytes_per_step": 2 * TABLE}


def plan(*tables: dict[str, Any], given: int | None = 16 * 10**9, **keras: Any) -> MemoryPlan:
    """Of a model with 1,000 bytes beside the tables, all trained, in a process on a CPU."""
    rows = [make_embedding(**table) for table in tables]
    sizes = {
        "variable_bytes": sum(one.table_bytes for one in rows) + 1000,
        "trainable_bytes": sum(one.table_bytes for one in rows) + 1000,
        "optimizer_bytes": sum(one.slot_bytes or 0 for one in rows) + 2000,
        **keras,
    }
    loop = make_loop(keras=make_keras(**sizes))
    found = plan_memory(make_session(embeddings=rows, loops=[loop], device_memory_bytes=given))
    assert found is not None
    return found


def test_a_step_with_adam_has_table_slots_and_the_temporaries_alive_at_once() -> None:
    found = plan(ADAM)

    assert found.other_bytes == 1000 + 2000 + 1000
    assert found.needed_bytes == 5 * TABLE + 4000
    assert found.lacking_bytes == 0
    small = plan(ADAM, given=TABLE)
    assert small.lacking_bytes == 4 * TABLE + 4000
    assert "too little" in memory_needed(small)


def test_a_copy_of_a_table_for_its_lookup_counts_once() -> None:
    assert plan(SGD).needed_bytes == 2 * TABLE + 4000


@pytest.mark.parametrize(
    ("used", "sizes", "device_bytes"),
    [
        (0, [80], None),
        (1, [80], 80),
        (1, [80, 80], 80),
        (2, [80, 24], None),
    ],
)
def test_the_device_is_a_gpu_that_the_training_can_use(
    used: int, sizes: list[int], device_bytes: int | None
) -> None:
    devices = [Device(f"/device:GPU:{number}", "GPU") for number in range(used)]
    gpus = [GpuReading("GPU", 50.0, 10, size) for size in sizes]
    found = plan_memory(
        make_session(
            embeddings=[make_embedding(table_bytes=10**8)],
            environment=make_environment(devices=[Device("/device:CPU:0", "CPU"), *devices]),
            host=make_host(gpus=gpus),
        )
    )
    assert found.device_bytes == device_bytes


def test_small_tables_have_a_plan_only_where_a_device_is_given() -> None:
    session = make_session(embeddings=[make_embedding()])
    assert plan_memory(session) is None
    assert plan_memory(session.but(device_memory_bytes=10**9)) is not None
