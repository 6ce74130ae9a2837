"""Runs a workload under capture and switches its hooks off and on, every few dozen milliseconds.

    python -m benchmarks.toggled DIRECTORY WORKLOAD STEPS [ARGUMENT...]

One process has steps with and without hooks, so that neither its memory's layout nor the machine's
drift makes a difference. It writes when each step began, and whether the hooks were off in it. The
loop is measured all the time.
"""

from __future__ import annotations

import random
import runpy
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from pipediag.capture.capture import Capture
from pipediag.capture.link import Teller
from pipediag.capture.measuring.pace import Pace
from pipediag.session.messages import RunSettings

WORKLOADS = Path(__file__).with_name("workloads")
STAMPS, OFF = "stamps", "off"
STRETCH_NS = 60_000_000
"""Long against a step, short against the drift of a machine."""


def main(directory: str, workload: str, steps: str, *args: str) -> None:
    """Run the workload; what it writes lies in the directory."""
    settings = RunSettings(
        script=str(WORKLOADS / f"{workload}.py"),
        args=(),
        module=False,
        capture_directory=str(Path(directory) / "capture"),
        warmup=100,
        run_to_end=True,
    )
    capture = Capture(settings, Teller(None))
    capture.install()
    _let_the_baseline_last()
    module = ModuleType("step_stamps")
    module.step_stamps = _stamps_that_toggle(capture, Path(directory))  # type: ignore[attr-defined]
    sys.modules["step_stamps"] = module
    sys.argv = [settings.script, str(Path(directory) / STAMPS), steps, *args]
    runpy.run_path(settings.script, run_name="__main__")


def _let_the_baseline_last() -> None:
    """Let the loop ask as often as in any run whether the baseline is over, which it never is."""
    baseline_done = Pace.baseline_done

    def never(pace: Pace, *args: Any) -> bool:
        baseline_done(pace, *args)
        return False

    Pace.baseline_done = never  # type: ignore[method-assign]


def _stamps_that_toggle(capture: Capture, directory: Path) -> Any:
    """Return what takes the place of the workloads' own `step_stamps`."""
    guard = capture._guard
    lengths = random.Random(1)

    @contextmanager
    def step_stamps(path: str) -> Iterator[Callable[[], None]]:
        import numpy as np

        stamps: list[int] = []
        off: list[bool] = []
        until_ns = 0

        def stamp() -> None:
            nonlocal until_ns
            now_ns = time.monotonic_ns()
            if now_ns > until_ns:
                guard.aside = not guard.aside
                # Stretches of differing length, so that nothing periodic falls into one kind.
                until_ns = now_ns + int(STRETCH_NS * lengths.uniform(0.7, 1.3))
            stamps.append(now_ns)
            off.append(guard.aside)

        try:
            yield stamp
        finally:
            guard.aside = False
            np.array(stamps, np.int64).tofile(path)
            np.array(off, np.bool_).tofile(directory / OFF)

    return step_stamps


if __name__ == "__main__":
    main(*sys.argv[1:])
