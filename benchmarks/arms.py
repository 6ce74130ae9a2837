"""The three ways in which a workload is run: bare, under capture alone, and as `analyze` does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.comparison import BaselineSteps, Nanoseconds, UnusableRunError, baseline_steps
from pipediag.runner.host_sampler import HostSampler
from pipediag.runner.supervisor import CHILD, supervise
from pipediag.session.reading import read_recording
from pipediag.session.settings import RunSettings

WORKLOADS_DIRECTORY = Path(__file__).with_name("workloads")
TIMEOUT_S = 180.0


@dataclass(frozen=True)
class Workload:
    """A script that stamps its steps; its windows are at fixed positions, to pair runs."""

    name: str
    warmup: int
    baseline: int

    @property
    def script(self) -> Path:
        return WORKLOADS_DIRECTORY / f"{self.name}.py"

    @property
    def steps(self) -> int:
        """Steps of a whole run: some are left out between the blocks of the baseline window."""
        return self.warmup + self.baseline + self.baseline // 5 + 50


def run_bare(workload: Workload, directory: Path) -> Nanoseconds:
    """Run the script as it is; returns the beginnings of its steps.

    Raises:
        UnusableRunError: it failed.
    """
    stamps = directory / "stamps"
    _run([str(workload.script), str(stamps), str(workload.steps)])
    return _read_stamps(stamps)


def run_captured(workload: Workload, directory: Path) -> BaselineSteps:
    """Run it with capture hooked in, and nothing beside it. Raises UnusableRunError."""
    settings = _settings(workload, directory)
    path = directory / "settings.json"
    settings.write(path)
    _run([str(CHILD), str(path)])
    return _baseline(settings, directory)


def run_sampled(workload: Workload, directory: Path) -> BaselineSteps:
    """Run it as `analyze` does: supervised, host sampler beside it. Raises UnusableRunError.

    What `analyze` does afterwards, diagnosing and reporting, cannot touch the steps.
    """
    settings = _settings(workload, directory)
    sampler = HostSampler()
    try:
        with _standard_error_in(directory / "stderr"):
            supervise(
                settings,
                timeout_s=TIMEOUT_S,
                on_started=sampler.start,
                on_progress=lambda _event: None,
            )
    finally:
        sampler.stop()
    return _baseline(settings, directory)


@contextmanager
def _standard_error_in(path: Path) -> Iterator[None]:
    """Send what a child writes there to a file, as the other arms do; it inherits ours."""
    ours = os.dup(2)
    try:
        with path.open("wb") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(ours, 2)
        os.close(ours)


def _settings(workload: Workload, directory: Path) -> RunSettings:
    capture = directory / "capture"
    capture.mkdir()
    return RunSettings(
        script=str(workload.script),
        args=(str(directory / "stamps"), str(workload.steps)),
        module=False,
        capture_directory=str(capture),
        warmup=workload.warmup,
        steps=workload.baseline,
    )


def _run(arguments: list[str]) -> None:
    try:
        done = subprocess.run(
            [sys.executable, *arguments],
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as error:
        raise UnusableRunError(f"{arguments[0]} had not ended after {TIMEOUT_S:g} s") from error
    if done.returncode != 0:
        raise UnusableRunError(
            f"{arguments[0]} ended with status {done.returncode}:\n{done.stderr}"
        )


def _baseline(settings: RunSettings, directory: Path) -> BaselineSteps:
    recording = read_recording(settings.recording_path)
    if recording is None:
        raise UnusableRunError("the child left no recording")
    return baseline_steps(_read_stamps(directory / "stamps"), recording)


def _read_stamps(path: Path) -> Nanoseconds:
    if not path.exists():
        raise UnusableRunError(f"the script did not write {path.name}")
    stamps: Nanoseconds = np.fromfile(path, dtype=np.int64)
    return stamps
