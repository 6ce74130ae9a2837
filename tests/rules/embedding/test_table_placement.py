from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.embedding import table_placement as rule
from pipediag.session.findings import Finding
from pipediag.session.host import GpuUse
from pipediag.session.run import Device
from tests.factories import make_embedding, make_host, make_loop, make_session
from tests.records import make_breakdown, make_environment
from tests.rules.embedding.sessions import make_ids
from tests.rules.limits import Limit, names_of, stands
from tests.rules.sessions import only

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
GPU = "/job:localhost/replica:0/task:0/device:GPU:0"
MEMORY = 1_000_000_000


def finding_with(
    held: float = 10.0, copied: float = 30.0, device: str | None = CPU, **overrides: Any
) -> Finding:
    """A table that takes so many percent of the GPU's memory, and copies of so much of a step."""
    table = make_embedding(
        table_bytes=round(held / 100 * MEMORY),
        slot_bytes=0,
        rows=1000,
        device=device,
        ids=make_ids(),
    )
    gpu = GpuUse(
        name="GPU", utilisation_percent=1.0, memory_used_bytes=1, memory_total_bytes=MEMORY
    )
    values: dict[str, Any] = {
        "loops": [make_loop()],
        "embeddings": [table],
        "breakdown": make_breakdown(input_wait=1.0, device_copy=copied),
        "environment": make_environment(devices=[Device(name="GPU:0", kind="GPU")]),
        "host": make_host(gpus=[gpu]),
    }
    return only(rule, make_session(**{**values, **overrides}))


def test_a_table_on_the_host_that_the_gpu_has_room_for() -> None:
    finding = finding_with()

    assert (finding.status, finding.severity) == ("fail", "warn")
    assert "10 % of the GPU's memory, and 100 MB of vectors cross to it" in finding.advice
    assert "pipediag can't move it" in (finding.trial.reason or "")


def test_one_that_is_too_large_is_where_it_belongs() -> None:
    assert finding_with(held=70.0).status == "pass"


def test_where_copies_take_little_it_informs() -> None:
    assert finding_with(copied=1.0).status == "informative"


def test_while_input_waits_that_comes_first() -> None:
    finding = finding_with(breakdown=make_breakdown(input_wait=60.0, device_copy=30.0))
    assert finding.status == "informative"


def test_on_the_gpu_a_table_passes_until_it_fills_it() -> None:
    assert finding_with(device=GPU).status == "pass"
    full = finding_with(held=90.0, device=GPU)
    assert full.status == "informative"
    assert "takes 90 % of the GPU's memory" in full.advice


def test_without_a_gpu_or_a_large_table() -> None:
    assert finding_with(held=0.1).status == "not-applicable"
    assert finding_with(environment=make_environment()).status == "not-applicable"


def test_a_memory_or_a_device_that_is_not_known() -> None:
    assert finding_with(host=make_host(gpus=[])).status == "inconclusive"
    assert finding_with(device=None).status == "inconclusive"


LIMITS = [
    Limit(rule, rule.ROOM, finding_with, "pass", "fail"),
    Limit(rule, rule.COPIED, lambda copied: finding_with(copied=copied), "fail", "informative"),
    Limit(rule, rule.FULL, lambda held: finding_with(held=held, device=GPU), "informative", "pass"),
    Limit(
        rule,
        rule.LARGE,
        lambda megabytes: finding_with(held=megabytes / 10.0),
        "fail",
        "not-applicable",
    ),
]


@pytest.mark.parametrize("limit", LIMITS, ids=names_of(LIMITS))
def test_a_limit(limit: Limit) -> None:
    stands(limit)
