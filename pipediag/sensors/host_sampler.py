"""The host sampler: a thread of the parent that watches the child from outside, so that it never
competes for the child's GIL."""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

from pipediag.sensors.gpus import Nvml
from pipediag.sensors.processes import ProcessReader
from pipediag.session.timeline import HostReading, HostTrack

INTERVAL_S = 0.1

# Of one core, for each of the two kinds. Where a reading takes long (hundreds of threads), readings
# of its kind become rarer.
MAX_CPU_SHARE = 0.01

# A long run is read more rarely as it ages, so that ten hours make some ten thousand readings.
READINGS_PER_AGE = 2000

# Between thorough readings, which also ask the GPUs.
THOROUGH_INTERVAL_S = 0.5


class HostSampler:
    """Samples one process from `start` to `stop`, whatever becomes of that process meanwhile."""

    def __init__(self, root: Path = Path("/"), platform: str = sys.platform) -> None:
        self._root = root
        self._platform = platform
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._reader: ProcessReader | None = None
        self._readings: list[HostReading] = []
        self._missing: str | None = "The host sampler was not started."
        self._pid = 0

    def start(self, pid: int) -> None:
        """Begin to sample process `pid`; return at once."""
        self._pid = pid
        if not self._platform.startswith("linux"):
            self._missing = f"The host sampler reads Linux's /proc; this is {self._platform}."
            return
        self._missing = "The process ended before the host sampler could read it."
        self._thread = threading.Thread(target=self._run, name="pipediag-host", daemon=True)
        self._thread.start()

    def stop(self) -> HostTrack:
        """Take a last reading, if the process is still there, and return all of them."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(timeout=5)
        return self.so_far()

    def so_far(self) -> HostTrack:
        """Return what was read until now."""
        return HostTrack(
            pid=self._pid,
            readings=tuple(self._readings),
            threads=dict(self._reader.threads) if self._reader else {},
            missing=None if self._readings else self._missing,
        )

    def _run(self) -> None:
        self._reader = ProcessReader(self._pid, self._root)
        nvml = Nvml()
        try:
            self._sample(self._reader, nvml)
        except PermissionError:
            self._missing = f"Process {self._pid} belongs to another user, who hides its counters."
        except OSError:
            # The process has gone, at whichever file that was noticed.
            return
        finally:
            nvml.close()

    def _sample(self, reader: ProcessReader, nvml: Nvml) -> None:
        started = thorough_due = time.monotonic()
        while True:
            last = self._ended.is_set()
            now, cpu_before = time.monotonic(), time.thread_time()
            thorough = last or now >= thorough_due
            reading = reader.read(thorough)
            gpus = nvml.readings() if thorough else ()
            self._readings.append(replace(reading, gpus=gpus) if gpus else reading)
            if last:
                return
            rest = (time.thread_time() - cpu_before) / MAX_CPU_SHARE
            interval = max(INTERVAL_S, (now - started) / READINGS_PER_AGE)
            if thorough:
                thorough_due = now + max(THOROUGH_INTERVAL_S, rest)
            else:
                interval = max(interval, rest)
            self._ended.wait(interval)
