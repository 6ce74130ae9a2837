"""The three ways in which a workload is run: bare, under capture alone, and as `analyze` does.

    python -m benchmarks.arms ARM WORKLOAD WARMUP BASELINE DIRECTORY

runs one of them to its end, as a process that can be stopped and resumed with all its children.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.comparison import BaselineSteps, Nanoseconds, UnusableRunError, baseline_steps
from pipediag.errors import PipediagError
from pipediag.runner.child_process import CHILD, supervise
from pipediag.sensors.host_sampler import HostSampler
from pipediag.session.reading import read_recording
from pipediag.session.settings import RunSettings

WORKLOADS_DIRECTORY = Path(__file__).with_name("workloads")
TIMEOUT_S = 600.0
"""For one arm, which stands still for two thirds of the time."""

ARMS = ("bare", "capture", "analyze")
STAMPS = "stamps"
SETTINGS = "settings.json"


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


def run_arm(arm: str, workload: Workload, directory: Path) -> None:
    """Run the workload to its end in one of the `ARMS`; what it leaves lies in the directory.

    Raises:
        UnusableRunError: it failed.
    """
    if arm == "bare":
        _run([str(workload.script), str(directory / STAMPS), str(workload.steps)])
        return
    settings = _settings(workload, directory)
    settings.write(directory / SETTINGS)
    if arm == "capture":
        _run([str(CHILD), str(directory / SETTINGS)])
    else:
        _supervise(settings)


def bare_stamps(directory: Path) -> Nanoseconds:
    """The beginnings of the bare run's steps. Raises UnusableRunError."""
    return _read_stamps(directory)


def watched_steps(directory: Path) -> BaselineSteps:
    """The baseline steps of a watched run. Raises UnusableRunError."""
    settings = RunSettings.read(directory / SETTINGS)
    recording = read_recording(settings.recording_path)
    if recording is None:
        raise UnusableRunError("the child left no recording")
    return baseline_steps(_read_stamps(directory), recording)


def _supervise(settings: RunSettings) -> None:
    """As `analyze` runs it: supervised, host sampler beside it.

    What `analyze` does afterwards, diagnosing and reporting, cannot touch the steps.
    """
    sampler = HostSampler()
    try:
        supervise(
            settings,
            timeout_s=TIMEOUT_S,
            on_started=sampler.start,
            on_progress=lambda _event: None,
        )
    finally:
        sampler.stop()


def _settings(workload: Workload, directory: Path) -> RunSettings:
    capture = directory / "capture"
    capture.mkdir()
    return RunSettings(
        script=str(workload.script),
        args=(str(directory / STAMPS), str(workload.steps)),
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


def _read_stamps(directory: Path) -> Nanoseconds:
    path = directory / STAMPS
    if not path.exists():
        raise UnusableRunError("the script did not write its stamps")
    stamps: Nanoseconds = np.fromfile(path, dtype=np.int64)
    return stamps


def main(arm: str, name: str, warmup: str, baseline: str, directory: str) -> None:
    """Run an arm; what went wrong is said on standard error."""
    try:
        run_arm(arm, Workload(name, int(warmup), int(baseline)), Path(directory))
    except (UnusableRunError, PipediagError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(*sys.argv[1:])
