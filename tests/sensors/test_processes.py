from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from pipediag.sensors.host_sampler import HostSampler, ProcessReader
from pipediag.session.timeline import ThreadSeen
from tests.fake_proc import add_machine, add_process, add_thread, write

PID = 40
PAGE = os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    add_machine(tmp_path)
    add_process(tmp_path, PID, cpu_ns=50_000_000)
    return tmp_path


def test_a_thorough_reading_has_every_counter(root: Path) -> None:
    add_thread(root, PID, 41, "tf_Compute", cpu_ns=7_000, started=9)
    reading = ProcessReader(PID, root).read(thorough=True)
    assert reading.cpu_ns == 50_000_000
    assert reading.rss_bytes == 100 * PAGE
    assert reading.thread_cpu_ns == {PID: 50_000_000, 41: 7_000}
    assert reading.read_bytes == 4096
    assert reading.asked_bytes == 9
    assert reading.available_bytes == 5000 * 1024
    assert (reading.io_wait_ticks, reading.machine_ticks) == (40, 1000)


def test_a_counter_that_a_sandbox_lacks_costs_no_other(root: Path) -> None:
    write(root, f"proc/{PID}/io", "char: 9\nwchar: 9\nread_bytes: 4096\n")
    reading = ProcessReader(PID, root).read(thorough=True)
    assert (reading.read_bytes, reading.asked_bytes) == (None, None)
    assert reading.cpu_ns == 50_000_000


STAT = (
    "cpu  9 9 9 9 9 9 9 9 9 9\n"
    "cpu1 100 0 50 800 50 0 0 0 70 0\n"
    "cpu10 900 0 0 100 0 0 0 0 0 0\n"
    "cpu11 100 0 0 850 0 10 10 30 0 0\n"
    "intr 1 2 3\n"
)


def test_what_the_cpus_did_that_it_may_use_is_counted_for_all_programs_and_guests_once(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: asked.append(pid) or {1, 11})
    write(root, "proc/stat", STAT)
    reading = ProcessReader(PID, root).read(thorough=True)
    tick = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    assert (reading.allowed_busy_ns, reading.allowed_idle_ns) == (300 * tick, 1700 * tick)
    assert asked == [PID]


def test_threads_come_go_and_take_their_names_late(root: Path) -> None:
    reader = ProcessReader(PID, root)
    add_thread(root, PID, 41, "python", started=9)
    reader.read(thorough=False)
    add_thread(root, PID, 41, "tf_Compute", started=9)
    add_thread(root, PID, PID, "python", cpu_ns=50_000_900, started=1)
    assert reader.read(thorough=True).thread_cpu_ns == {PID: 900}, "since the reading before"
    shutil.rmtree(root / f"proc/{PID}/task/41")
    assert reader.read(thorough=True).thread_cpu_ns == {}
    assert reader.threads == {
        PID: ThreadSeen(PID, "python", 1),
        41: ThreadSeen(41, "tf_Compute", 9),
    }


def test_clock_ticks_serve_where_the_kernel_keeps_no_nanoseconds(root: Path) -> None:
    (root / f"proc/{PID}/task/{PID}/schedstat").unlink()
    reading = ProcessReader(PID, root).read(thorough=False)
    assert reading.thread_cpu_ns == {PID: 50_000_000}


def test_processes_that_it_started_count_even_after_they_ended(root: Path) -> None:
    add_process(root, 50, cpu_ns=30_000_000)
    add_process(root, 51, cpu_ns=10_000_000)
    write(root, f"proc/{PID}/task/{PID}/children", "50 ")
    write(root, "proc/50/task/50/children", "51 ")
    reader = ProcessReader(PID, root)
    reading = reader.read(thorough=True)
    assert (reading.children, reading.children_cpu_ns) == (2, 40_000_000)
    shutil.rmtree(root / "proc/51")
    assert reader.read(thorough=False).children_cpu_ns == 40_000_000


@pytest.mark.parametrize("statm", ["", "1000 0 0 0 0 0 0\n"])
def test_a_process_that_ended_is_gone_before_it_is_reaped(root: Path, statm: str) -> None:
    write(root, f"proc/{PID}/statm", statm)
    with pytest.raises(ProcessLookupError):
        ProcessReader(PID, root).read(thorough=False)


BUSY = "import sys, threading\nprint('up', flush=True)\nwhile True: sum(range(1000))"


@pytest.fixture
def busy() -> Iterator[subprocess.Popen[str]]:
    """A child that computes until it is killed."""
    child = subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE, text=True)
    child.stdout.readline()
    yield child
    child.kill()
    child.wait()
    child.stdout.close()


def wait_for_readings(sampler: HostSampler, count: int) -> None:
    deadline = time.monotonic() + 30
    while len(sampler._readings) < count and time.monotonic() < deadline:
        time.sleep(0.01)


def test_a_busy_child(busy: subprocess.Popen[str]) -> None:
    sampler = HostSampler()
    sampler.start(busy.pid)
    wait_for_readings(sampler, 4)
    track = sampler.stop()
    assert track.missing is None
    assert track.pid == busy.pid
    ats = [reading.at_ns for reading in track.readings]
    assert ats == sorted(ats)
    first, last = track.readings[0], track.readings[-1]
    assert last.cpu_ns > first.cpu_ns
    assert sum(r.thread_cpu_ns.get(busy.pid, 0) for r in track.readings[1:]) > 0
    assert busy.pid in track.threads
    assert last.rss_bytes > 0
    assert last.allowed_busy_ns is not None, "the last reading is a thorough one"
    assert json.loads(json.dumps(asdict(track)))["pid"] == busy.pid


def test_a_process_that_was_never_there() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    sampler = HostSampler()
    sampler.start(child.pid)
    track = sampler.stop()
    assert track.readings == ()
    assert track.missing == "The process ended before the host sampler could read it."
