"""A process that is watched over, and its end with all that it started."""

from __future__ import annotations

import signal
import subprocess
from typing import Any, Protocol


class Watched(Protocol):
    """A process that runs what is measured, as far as the watch needs it."""

    pid: int

    @property
    def returncode(self) -> Any:
        """Its status, once `poll` has told that it is over."""

    def poll(self) -> int | None:
        """Its status, or None while it goes on."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end."""

    def kill(self) -> None:
        """End it at once."""

    def send_signal(self, sig: int) -> None:
        """Pass a signal on to it."""


def end_process_tree(process: Watched, grace_s: float) -> None:
    """SIGTERM to the process, then SIGKILL to it and to whatever it had started."""
    import psutil

    try:
        started_by_it = psutil.Process(process.pid).children(recursive=True)
    except psutil.Error:
        started_by_it = []
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(grace_s)
    except subprocess.TimeoutExpired:
        process.kill()
    for descendant in started_by_it:
        try:
            descendant.kill()
        except psutil.Error:
            continue
