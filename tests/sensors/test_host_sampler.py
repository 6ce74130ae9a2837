from __future__ import annotations

import json
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict

import pytest

from pipediag.sensors import host_sampler
from pipediag.sensors.host_sampler import HostSampler
from pipediag.sensors.processes import ProcessReader
from pipediag.session.timeline import GpuReading, HostReading

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

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
    assert len(track.readings) >= 4
    ats = [reading.at_ns for reading in track.readings]
    assert ats == sorted(ats)
    first, last = track.readings[0], track.readings[-1]
    assert last.cpu_ns > first.cpu_ns
    assert sum(r.thread_cpu_ns.get(busy.pid, 0) for r in track.readings[1:]) > 0
    assert busy.pid in track.threads
    assert last.rss_bytes > 0
    assert last.machine_ticks is not None, "the last reading is a thorough one"
    assert pickle.loads(pickle.dumps(track)) == track
    assert json.loads(json.dumps(asdict(track)))["pid"] == busy.pid


def test_a_process_that_was_never_there() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    sampler = HostSampler()
    sampler.start(child.pid)
    track = sampler.stop()
    assert track.readings == ()
    assert track.missing == "The process ended before the host sampler could read it."


def test_another_system_is_said_to_be_one() -> None:
    sampler = HostSampler(platform="darwin")
    sampler.start(1)
    track = sampler.stop()
    assert track.missing is not None
    assert "darwin" in track.missing


def test_hidden_counters_are_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    def hidden(self: ProcessReader, thorough: bool) -> HostReading:
        raise PermissionError

    monkeypatch.setattr(ProcessReader, "read", hidden)
    sampler = HostSampler()
    sampler.start(1)
    track = sampler.stop()
    assert track.missing == "Process 1 belongs to another user, who hides its counters."


def test_gpus_are_asked_in_thorough_readings(
    busy: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class OneGpu:
        def readings(self) -> tuple[GpuReading, ...]:
            return (GpuReading("Example GPU", 50.0, 1, 2),)

        def close(self) -> None: ...

    monkeypatch.setattr(host_sampler, "Nvml", OneGpu)
    sampler = HostSampler()
    sampler.start(busy.pid)
    wait_for_readings(sampler, 2)
    track = sampler.stop()
    for reading in track.readings:
        assert bool(reading.gpus) == (reading.machine_ticks is not None)
    assert track.readings[0].gpus[0].name == "Example GPU"
