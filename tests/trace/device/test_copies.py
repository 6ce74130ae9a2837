from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.trace.summary import summarise
from tests.trace.builder import TraceBuilder


@pytest.mark.parametrize(
    ("name", "details", "direction", "size"),
    [
        (
            "MemcpyH2D",
            "kind_src:pageable kind_dst:device size:64 dest:0 async:1",
            "host_to_device",
            64,
        ),
        ("MemcpyD2H", "size:4 dest:1 async:1", "device_to_host", 4),
        ("MemcpyP2P", "num_bytes:16", "peer_to_peer", 16),
        ("Memcpy HtoD (Pageable -> Device)", "", "host_to_device", None),
        ("CopyDeviceToDevice", "size:8", "device_to_device", 8),
        ("MemcpyOther", "kind_src:device kind_dst:device size:8", "device_to_device", 8),
        ("Memset", "", "set", None),
        ("__amd_rocclr_copyBuffer.kd", "", "unknown", None),
    ],
)
def test_the_direction_and_the_size_of_a_copy(
    tmp_path: Path, name: str, details: str, direction: str, size: int | None
) -> None:
    builder = TraceBuilder()
    stats = {"memcpy_details": details} if details else {}
    builder.plane("/device:GPU:0").line("Stream #14", 14).event(name, 0, 50, **stats)
    [device] = summarise(builder.save(tmp_path)).devices
    [copies] = device.copies
    assert (copies.direction, copies.count, copies.bytes) == (direction, 1, size)
    assert copies.running_ns == copies.exposed_ns == 50
