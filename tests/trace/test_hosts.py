from __future__ import annotations

import faulthandler
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from pipediag.trace import hosts
from pipediag.trace.file_bytes import MAPPED_FROM_BYTES, file_bytes
from pipediag.trace.hosts import HostSummary, reading_hosts, summarise_hosts
from tests.trace.builder import TraceBuilder, add_steps

US = 1_000

# A forked reader has what a test puts in its place, too: this one stays what it is.
_summary = hosts._summary


def profile(directory: Path, host: str, busy_us: int) -> Path:
    builder = TraceBuilder()
    add_steps(builder.host().line("python"), 0, 100 * US, 200 * US)
    stream = builder.plane("/device:GPU:0").line("Stream #13(Kernel)", 13)
    stream.event("gemm", 0, busy_us * US).event("gemm", 150 * US, 160 * US)
    return builder.save(directory, f"{host}.xplane.pb")


def busy_us(host: HostSummary) -> int:
    assert host.summary is not None
    return host.summary.devices[0].busy_ns // US


def test_each_host_has_its_summary_in_the_order_given(tmp_path: Path) -> None:
    paths = [profile(tmp_path, host, busy) for host, busy in (("b", 20), ("a", 30))]
    found = summarise_hosts(paths)
    assert [(host.host, host.format, host.events, busy_us(host)) for host in found] == [
        ("b", "xplane", 4, 30),
        ("a", "xplane", 4, 40),
    ]
    assert [host.path for host in found] == paths


def test_files_of_one_name_bear_their_directories(tmp_path: Path) -> None:
    paths = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        paths.append(profile(tmp_path / name, "vm", 20))
    assert [host.host for host in summarise_hosts(paths)] == ["one/vm", "two/vm"]


def test_a_bad_file_costs_its_own_summary_alone(tmp_path: Path) -> None:
    good = profile(tmp_path, "good", 20)
    bad = tmp_path / "bad.xplane.pb"
    bad.write_bytes(good.read_bytes()[:-3])
    missing = tmp_path / "missing.pt.trace.json.gz"
    found = summarise_hosts([bad, good, missing])
    assert [host.summary is None for host in found] == [True, False, True]
    assert "cut short" in str(found[0].reason)
    assert "No such file" in str(found[2].reason)
    assert (found[2].host, found[2].format) == ("missing", "kineto")
    assert found[1].reason is None


def test_processes_give_what_one_gives(tmp_path: Path) -> None:
    paths = [profile(tmp_path, host, busy) for host, busy in (("a", 20), ("b", 30), ("c", 40))]
    paths[1].write_bytes(b"nothing of the kind")
    apart = summarise_hosts(paths, processes=2)
    together = summarise_hosts(paths, processes=0)
    assert [(host.host, host.reason) for host in apart] == [
        (host.host, host.reason) for host in together
    ]
    assert [busy_us(host) for host in apart if host.summary] == [30, 50]


def _killed_by_one(path: Path, gap_floor_ns: int) -> HostSummary:
    if path.name.startswith("huge"):
        os.kill(os.getpid(), signal.SIGKILL)
    return HostSummary(path, path.name, "xplane", reason="read")


def test_a_killed_process_is_reported_and_the_others_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "_summary", _killed_by_one)
    paths = [tmp_path / name for name in ("a", "huge", "b")]
    found = summarise_hosts(paths, processes=2)
    assert [host.reason == "read" for host in found] == [True, False, True]
    assert "was killed" in str(found[1].reason)


def _cut_while_mapped(path: Path, gap_floor_ns: int) -> HostSummary:
    """Somebody else truncates the file between two looks at it."""
    # Its report of the bus error that is to come would be taken for a fault of the tests.
    faulthandler.disable()
    data, _ = file_bytes(path)
    if len(data) >= MAPPED_FROM_BYTES:
        os.truncate(path, 1_000)
        bytes(data[-8:])
    return _summary(path, gap_floor_ns)


def test_a_large_file_that_is_cut_short_while_it_is_mapped_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = profile(tmp_path, "a", 20)
    os.truncate(path, MAPPED_FROM_BYTES)
    monkeypatch.setattr(hosts, "_summary", _cut_while_mapped)
    [found] = summarise_hosts([path])
    # The process of the first reading was ended; the second one met what is left of the file.
    assert path.stat().st_size == 1_000
    assert "cut short" in str(found.reason)


def test_small_files_start_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[Sequence[Path], int]] = []

    class Noted:
        def __init__(self, paths: Sequence[Path], gap_floor_ns: int, count: int) -> None:
            started.append((paths, count))

    monkeypatch.setattr(hosts, "_Readers", Noted)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    paths = [profile(tmp_path, "a", 20), profile(tmp_path, "b", 20)]
    reading_hosts(paths)
    assert started == []
    monkeypatch.setattr(hosts, "APART_FROM_BYTES", 100)
    reading_hosts(paths)
    reading_hosts(paths[:1])
    assert started == [(paths, 2), (paths[:1], 1)]


def test_processes_are_forked_while_there_is_one_thread() -> None:
    program = (
        "import os, threading; os.environ['OPENBLAS_NUM_THREADS'] = '1';"
        "from pipediag.trace.hosts import _start_method; print(_start_method());"
        "threading.Thread(target=threading.Event().wait, daemon=True).start();"
        "print(_start_method())"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    expected = "fork" if sys.platform == "linux" else "spawn"
    assert said.stdout.split() == [expected, "spawn"], said.stderr


def test_out_of_memory_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(_: Path) -> None:
        raise MemoryError

    monkeypatch.setattr(hosts, "read_profile", fill)
    [found] = summarise_hosts([tmp_path / "a.xplane.pb"])
    assert "more memory than there is" in str(found.reason)


def test_a_summary_leaves_the_profile_behind(tmp_path: Path) -> None:
    builder = TraceBuilder()
    line = builder.host().line("python")
    add_steps(line, 0, 100 * US, 200 * US)
    for start in range(20_000):
        line.event("TFE_Py_Execute", start, start + 1, note="x")
    builder.plane("/device:GPU:0").line("Stream #13(Kernel)", 13).event("gemm", 0, 20 * US)
    path = builder.save(tmp_path)
    [found] = summarise_hosts([path])
    assert path.stat().st_size > 200_000
    assert len(pickle.dumps(found)) < 20_000
