from __future__ import annotations

import io

from rich.console import Console, Group

from pipediag.reporters.terminal.device_sections import device_name, device_sections
from pipediag.reporters.terminal.encoded import Encoded
from pipediag.reporters.terminal.trace_limits import SPARING, UNLIMITED, TraceLimits
from pipediag.session.devices import DeviceActivity
from tests.reporters import devices


def shown(device: DeviceActivity, limits: TraceLimits = UNLIMITED) -> str:
    stream = io.StringIO()
    Console(file=stream, width=110).print(Encoded(Group(*device_sections(device, limits))))
    return stream.getvalue()


def test_the_host_is_named_where_there_are_several() -> None:
    assert device_name(devices.make_gpu()) == "GPU:0"
    assert device_name(devices.make_gpu(host="node-1")) == "GPU:0 on node-1"
    assert len(device_name(devices.make_gpu(host="node" * 20))) < 40


def test_causes_beyond_the_limit_are_summed() -> None:
    causes = {"input": 20.0, "launch": 15.0, "copy": 12.0, "python": 8.0, "sync": 4.0}
    text = shown(devices.make_gpu(causes_ms=causes), SPARING[-1])

    [line] = [line for line in text.splitlines() if "Other causes" in line]
    assert line.split()[-4:] == ["21.7", "%", "13.0", "ms"]


def test_a_device_that_was_never_idle_has_no_causes_and_no_gaps() -> None:
    device = devices.make_gpu(
        busy_ms=100.0,
        busy_percent=100.0,
        idle_ms=0.0,
        idle_percent=0.0,
        noise_ms=0.0,
        longest_gap_ms=0.0,
        causes_ms={},
        gaps=[],
        gap_count=0,
        gap_histogram=[],
    )
    text = shown(device)

    assert "idle 0 ms (0.0 %)." in text
    assert "Gaps" not in text
    assert "█" not in text


def test_collectives_where_there_are_any() -> None:
    assert "Collectives" not in shown(devices.make_gpu())
    text = shown(devices.make_gpu(collective_ms=9.0, exposed_collective_ms=2.0))
    assert "9.00 ms, 2.00 ms of them exposed" in text


def test_a_gap_says_its_line_first() -> None:
    assert "/home/me/project/train.py:12, Prefetch::ParallelMapV2" in shown(devices.make_gpu())


def test_gaps_of_one_cause_and_place_share_a_line() -> None:
    gaps = [devices.make_gap(start_ms=float(start), duration_ms=0.033) for start in range(20)]
    text = shown(devices.make_gpu(gaps=gaps))

    assert "  20 x 33.0 µs  Waiting for input  Prefetch::ParallelMapV2 " in text
    assert "660 µs in all" in text


def test_one_kernel_is_no_kernels() -> None:
    launches = devices.make_gpu().launches
    assert launches is not None
    text = shown(devices.make_gpu(launches=launches.model_copy(update={"kernels": 1})))

    assert "1 kernel, " in text
    assert "median kernel 60.0 µs, median launch call 7.50 µs" in text
