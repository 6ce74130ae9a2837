"""Lets processes run in turns of a fraction of a second, one at a time.

Whatever else a shared machine does then slows all of them alike, in the same seconds; runs that
follow each other differ by ten per cent and more on such a machine.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from contextlib import suppress

import psutil

TURN_S = 0.25
"""Long against a step, so that few steps hold a pause; short against the drift of a machine."""


def take_turns(processes: Sequence[psutil.Popen], timeout_s: float) -> None:
    """Run each with all its children for a turn while the others are stopped, until all have ended.

    The order changes from cycle to cycle, so that nobody always follows the same one.

    Raises:
        TimeoutError: some had not ended; all are killed.
    """
    order = random.Random(len(processes))
    until = time.monotonic() + timeout_s
    for process in processes:
        _suspend(process)
    try:
        while running := [process for process in processes if process.poll() is None]:
            if time.monotonic() > until:
                raise TimeoutError(f"{len(running)} had not ended after {timeout_s:g} s")
            order.shuffle(running)
            for process in running:
                _run_for_a_turn(process, alone=len(running) == 1)
    finally:
        for process in processes:
            _kill(process)


def _run_for_a_turn(process: psutil.Popen, *, alone: bool) -> None:
    _resume(process)
    with suppress(psutil.TimeoutExpired):
        process.wait(TURN_S)
        return
    if not alone:
        _suspend(process)


def _suspend(process: psutil.Popen) -> None:
    # The parent first: then it starts no more children while these are listed.
    with suppress(psutil.NoSuchProcess):
        process.suspend()
        for child in process.children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                child.suspend()


def _resume(process: psutil.Popen) -> None:
    with suppress(psutil.NoSuchProcess):
        for child in process.children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                child.resume()
        process.resume()


def _kill(process: psutil.Popen) -> None:
    if process.poll() is None:
        for child in process.children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                child.kill()
        process.kill()
        process.wait()
