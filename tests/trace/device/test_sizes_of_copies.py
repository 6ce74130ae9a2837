"""How many bytes the copies of a direction moved, where some of them do not say."""

from __future__ import annotations

from pathlib import Path

from pipediag.trace.summary import summarise
from tests.trace.builder import TraceBuilder


def test_bytes_are_known_only_where_each_copy_says_its_own(tmp_path: Path) -> None:
    builder = TraceBuilder()
    stream = builder.plane("/device:GPU:0").line("Stream #14", 14)
    stream.event("MemcpyH2D", 0, 10, memcpy_details="size:64")
    stream.event("MemcpyH2D", 20, 30, memcpy_details="dest:0 async:1")
    stream.event("MemcpyD2H", 40, 80, memcpy_details="size:8")
    stream.event("MemcpyD2H", 90, 95, memcpy_details="size:0")
    [device] = summarise(builder.save(tmp_path)).devices
    # The direction that took longest comes first; a part of the bytes would give a false rate.
    assert [(copies.direction, copies.count, copies.bytes) for copies in device.copies] == [
        ("device_to_host", 2, 8),
        ("host_to_device", 2, None),
    ]


def test_copies_at_once_count_each_and_run_once(tmp_path: Path) -> None:
    builder = TraceBuilder()
    plane = builder.plane("/device:GPU:0")
    plane.line("Stream #14", 14).event("MemcpyH2D", 0, 30, memcpy_details="size:1")
    plane.line("Stream #15", 15).event("MemcpyH2D", 10, 40, memcpy_details="num_bytes:2")
    [device] = summarise(builder.save(tmp_path)).devices
    [copies] = device.copies
    assert (copies.summed_ns, copies.running_ns, copies.bytes) == (60, 40, 3)


def test_memory_of_two_hosts_has_no_direction(tmp_path: Path) -> None:
    builder = TraceBuilder()
    stream = builder.plane("/device:GPU:0").line("Stream #14", 14)
    stream.event("MemcpyOther", 0, 10, memcpy_details="kind_src:pageable kind_dst:pinned size:4")
    [device] = summarise(builder.save(tmp_path)).devices
    [copies] = device.copies
    assert copies.direction == "unknown"


def test_a_memset_says_its_size_in_details_of_its_own(tmp_path: Path) -> None:
    builder = TraceBuilder()
    stream = builder.plane("/device:GPU:0").line("Stream #14", 14)
    stream.event("Memset", 0, 10, memset_details="kind:device num_bytes:4096 async:1")
    [device] = summarise(builder.save(tmp_path)).devices
    [copies] = device.copies
    assert (copies.direction, copies.bytes) == ("set", 4096)


def test_a_number_of_bytes_goes_before_what_details_say(tmp_path: Path) -> None:
    """Kineto's, in which the details are other words."""
    builder = TraceBuilder()
    stream = builder.plane("/device:GPU:0").line("Stream #14", 14)
    stream.event("Memcpy HtoD (Pageable -> Device)", 0, 10, bytes=512, memcpy_details="size:7")
    stream.event("Memcpy HtoD (Pageable -> Device)", 20, 30, bytes="unknown")
    [device] = summarise(builder.save(tmp_path)).devices
    [copies] = device.copies
    assert copies.bytes is None
    stream.event("MemcpyD2H", 40, 50, bytes=512, memcpy_details="size:7")
    [device] = summarise(builder.save(tmp_path)).devices
    assert {one.direction: one.bytes for one in device.copies}["device_to_host"] == 512
