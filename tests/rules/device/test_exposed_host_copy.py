from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.device import exposed_host_copy
from pipediag.session.devices import DeviceActivity
from pipediag.session.edits import Edit, Insert
from tests.factories import make_loop
from tests.rules.devices import copies, cpu, gpu, on_devices, session_on
from tests.rules.sessions import only


def copying(model: str = "NVIDIA H200", idle: float = 0.0, **overrides: Any) -> DeviceActivity:
    return gpu({"input": idle}, model=model, copies=[copies(**overrides)])


def test_exposed_copies_ask_for_prefetch_to_device() -> None:
    finding = on_devices(exposed_host_copy, copying(exposed_ms=20.0, ms=25.0))
    assert finding.status == "fail"
    assert "prefetch_to_device" in finding.advice
    assert "`int32` ids" in finding.advice
    assert finding.evidence["exposed_percent_of_span"] == 20.0
    assert finding.evidence["pcie_gb_per_s"] == 50.0
    assert finding.speedup_at_most == 1.25


def test_copies_that_outlast_the_kernels_set_the_pace() -> None:
    finding = on_devices(exposed_host_copy, copying(exposed_ms=60.0, ms=80.0))
    assert finding.speedup_at_most == 1.25


def test_overlapped_copies_pass() -> None:
    assert on_devices(exposed_host_copy, copying(exposed_ms=4.9, ms=60.0)).status == "pass"


def test_only_copies_from_the_host_count() -> None:
    back = gpu(copies=[copies(direction="device_to_host", exposed_ms=40.0)])
    assert on_devices(exposed_host_copy, back).status == "pass"
    assert on_devices(exposed_host_copy, gpu()).status == "pass"


def test_while_input_is_the_bottleneck_it_only_informs() -> None:
    finding = on_devices(exposed_host_copy, copying(exposed_ms=20.0, idle=40.0))
    assert finding.status == "informative"
    assert "deal with the input first" in finding.advice


@pytest.mark.parametrize(
    ("model", "count", "gb_per_s", "words"),
    [
        ("Tesla V100-SXM2-16GB", 2, 3.0, "Copies from pinned memory"),
        ("Tesla V100-SXM2-16GB", 2, 11.0, "about what PCIe gives"),
        ("NVIDIA A100-SXM4-40GB", 2, 11.0, "Copies from pinned memory"),
        ("NVIDIA H100 80GB HBM3", 1000, 0.2, "pack features"),
    ],
)
def test_judges_the_rate_by_the_slot_of_the_model(
    model: str, count: int, gb_per_s: float, words: str
) -> None:
    finding = on_devices(exposed_host_copy, copying(model, count=count, gb_per_s=gb_per_s))
    assert words in finding.advice


@pytest.mark.parametrize(
    ("model", "overrides"),
    [("Unheard-of 1", {}), ("NVIDIA H200", {"bytes": None, "gb_per_s": None})],
)
def test_an_unknown_rate_is_not_judged(model: str, overrides: dict[str, Any]) -> None:
    finding = on_devices(exposed_host_copy, copying(model, **overrides))
    assert finding.status == "fail"
    assert "GB/s" not in finding.advice


def test_a_session_whose_batches_hold_int64_is_told_so() -> None:
    loop = make_loop(element_spec="TensorSpec(shape=(32, 20), dtype=tf.int64, name=None)")
    assert "hold int64" in only(exposed_host_copy, session_on(copying(), loops=[loop])).advice


def test_a_cpu_has_no_such_copies() -> None:
    assert on_devices(exposed_host_copy, cpu({"copy": 50.0})).status == "not-applicable"


def test_tries_to_copy_ahead() -> None:
    assert only(exposed_host_copy, session_on(copying())).edit == Edit(
        id="exposed-host-copy",
        label="prefetch_to_device(/gpu:0) at the end of the pipeline",
        changes=(Insert("batch_0", "prefetch_to_device", {"device": "/gpu:0"}),),
    )


def test_a_strategy_copies_by_itself() -> None:
    session = session_on(copying(), loops=[make_loop(replicas=2)])
    finding = only(exposed_host_copy, session)
    assert (finding.status, finding.edit) == ("fail", None)
    assert "single device" in str(finding.trial.reason)
