"""Runs a workload under capture whose hooks step aside for every other turn of a moment.

    python -m benchmarks.toggled WORKLOAD STEPS DIRECTORY [measured]

One process has both arms, so that neither its memory's layout nor the machine's drift tells them
apart. It writes when each step began, and whether the hooks were aside in it: while the loop is
measured, which then never ends, or after that.
"""

from __future__ import annotations

import random
import runpy
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.arms import STAMPS, WORKLOADS_DIRECTORY
from pipediag.capture.capture import Capture
from pipediag.capture.link import Teller
from pipediag.capture.measuring.pace import Pace
from pipediag.session.settings import RunSettings

ASIDE = "aside"
TURN_NS = 60_000_000
"""Long against a step, short against the drift of a machine."""


def main(workload: str, steps: str, directory: str, phase: str = "measuring") -> None:
    """Run it; what it leaves lies in the directory."""
    settings = RunSettings(
        script=str(WORKLOADS_DIRECTORY / f"{workload}.py"),
        args=(),
        module=False,
        capture_directory=str(Path(directory) / "capture"),
        warmup=100,
        run_to_end=True,
    )
    capture = Capture(settings, Teller(None))
    capture.install()
    begins = threading.Event()
    if phase == "measured":
        capture.when_measured(begins.set)
    else:
        _let_the_baseline_last()
        begins.set()
    sys.modules["step_stamps"] = _stamps_that_toggle(capture, Path(directory), begins)
    sys.argv = [settings.script, str(Path(directory) / STAMPS), steps]
    runpy.run_path(settings.script, run_name="__main__")


def _let_the_baseline_last() -> None:
    """It asks as often as in any run whether it is over, and never is."""
    baseline_done = Pace.baseline_done

    def never(pace: Pace, *told: Any) -> bool:
        baseline_done(pace, *told)
        return False

    Pace.baseline_done = never  # type: ignore[method-assign]


def _stamps_that_toggle(capture: Capture, directory: Path, begins: threading.Event) -> ModuleType:
    """Stands in for the workloads' own `step_stamps`; the hooks stay until it begins."""
    guard = capture._guard
    turns = random.Random(1)

    @contextmanager
    def step_stamps(path: str) -> Iterator[Callable[[], None]]:
        stamps: list[int] = []
        aside: list[bool] = []
        until_ns = 0

        def stamp() -> None:
            nonlocal until_ns
            now_ns = time.monotonic_ns()
            if now_ns > until_ns and begins.is_set():
                guard.aside = not guard.aside
                # Turns of differing length, so that nothing periodic favours one arm.
                until_ns = now_ns + int(TURN_NS * turns.uniform(0.7, 1.3))
            stamps.append(now_ns)
            aside.append(guard.aside)

        try:
            yield stamp
        finally:
            guard.aside = False
            _write(stamps, aside, Path(path), directory / ASIDE)

    module = ModuleType("step_stamps")
    module.step_stamps = step_stamps  # type: ignore[attr-defined]
    return module


def _write(stamps: list[int], aside: list[bool], stamps_path: Path, aside_path: Path) -> None:
    import numpy as np

    np.array(stamps, np.int64).tofile(stamps_path)
    np.array(aside, np.bool_).tofile(aside_path)


if __name__ == "__main__":
    main(*sys.argv[1:])
