from __future__ import annotations

from pipediag.rules.device import sync_point
from pipediag.rules.registry import run_rules
from tests.records import make_breakdown
from tests.rules.devices import copies, cpu, gap, gpu, on_devices, session_on
from tests.rules.sessions import only


def test_read_backs_in_every_step() -> None:
    device = gpu(
        {"sync": 20.0},
        gaps=[gap("sync", 10.0, step=step, doing="$array.py:400 numpy") for step in (0, 1)],
        copies=[copies(direction="device_to_host", count=2)],
    )
    finding = on_devices(sync_point, device)
    assert finding.status == "fail"
    assert ".numpy()" in finding.advice
    assert "array.py:400 numpy" in finding.advice
    assert finding.evidence["steps_with_such_gaps"] == 2
    assert finding.evidence["copies_to_host"] == 2
    assert finding.speedup_at_most == 1.25


def test_near_misses_pass() -> None:
    assert on_devices(sync_point, gpu({"sync": 4.9, "launch": 50.0})).status == "pass"


def test_while_input_is_the_bottleneck_it_only_informs() -> None:
    assert on_devices(sync_point, gpu({"sync": 20.0, "input": 20.0})).status == "informative"


def test_a_cpu_is_busy_while_it_is_waited_for() -> None:
    assert on_devices(sync_point, cpu({"sync": 20.0})).status == "not-applicable"


def test_a_session_says_the_same() -> None:
    assert only(sync_point, session_on(gpu({"sync": 20.0}))).status == "fail"


def test_host_overhead_comes_first() -> None:
    overhead = make_breakdown(dispatch=20.0, python=32.0, device_compute=48.0)
    findings = run_rules(session_on(gpu({"sync": 20.0}), breakdown=overhead))
    finding = next(found for found in findings if found.rule == "sync-point")
    assert (finding.status, finding.needs_first) == ("informative", "host-overhead")
