"""A machine on which runs of a script follow each other: its sessions, without the script.

Nothing is run. A run is its start-up and `STRETCHES` stretches of steps, each as slow as the
machine is at that time; the next run goes on where it was left. A slow-down is in the input
pipeline: it lengthens the wait for the batch, and is measured against the whole step.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from statistics import fmean, median

from benchmarks.noise import MODELS as OF_BLOCKS
from benchmarks.noise import Scatter, drifting, even
from pipediag.comparison.interleaving import Side
from pipediag.session.model import Session
from tests.factories import make_part, make_run, make_session
from tests.records import make_breakdown, make_steps

CONSUMER_MS, INPUT_MS = 8.0, 2.0
STRETCHES = 10
"""Of steps, in a run."""
STEPS = 6
"""In a stretch."""
STARTUP_S, STARTUP_STRETCHES = 6.0, 5
COLD = 2.0
"""The first run of all reads what it imports from the disk."""
RUN_STEPS = 2_000
"""Of the whole training, most of which is projected."""
PROCESS = 0.02
"""Standard deviation of what differs from process to process, of logarithms."""
STEP = 0.05
"""Standard deviation of a single step."""
LOAD = 1.5
"""How many times as long a step takes beside another load."""

NOISES: dict[str, Callable[[float], Scatter]] = {
    "even": even,
    "heavy-tailed": OF_BLOCKS["heavy-tailed"],
    "spiky": OF_BLOCKS["spiky"],
    "drifting": partial(drifting, per_half=20 * (STRETCHES + STARTUP_STRETCHES)),
    "neighbours alike": OF_BLOCKS["sluggish"],
    "slow phases": OF_BLOCKS["in phases"],
    "a load beside either": even,
    "a load beside head": even,
}
"""Of the stretches. Drifting: half as slow again after twenty runs. The load comes in every other
run, of both or of head alone, and stays for a part of it, a tenth to nine tenths."""

LOADED: dict[str, tuple[Side, ...]] = {
    "a load beside either": ("base", "head"),
    "a load beside head": ("head",),
}

_ELSE = make_session(findings=[], pipeline=None, step_rows=[], host_samples=[])
"""What is alike in all runs."""


class Machine:
    """One comparison is made on it."""

    def __init__(self, noise: str, spread: float, slowdown: float, seed: int) -> None:
        self._random = random.Random(f"{noise} {spread} {slowdown} {seed}")
        self._levels = NOISES[noise](spread)(self._random)
        self._loaded = LOADED.get(noise, ())
        self._slowdown = slowdown
        self._runs = 0

    def run(self, side: Side) -> Session:
        """The session of the next run."""
        process = self._random.gauss(0.0, PROCESS)
        cold = COLD if self._runs == 0 else 1.0
        self._runs += 1
        startup = cold * STARTUP_S * fmean(self._slow(process, STARTUP_STRETCHES))
        load = self._load(side)
        input_ms = INPUT_MS + (CONSUMER_MS + INPUT_MS) * self._slowdown * (side == "head")
        steps_ms = [
            (CONSUMER_MS + input_ms) * level * other * math.exp(self._random.gauss(0.0, STEP))
            for level, other in zip(self._slow(process, STRETCHES), load, strict=True)
            for _ in range(STEPS)
        ]
        input_wait = 100.0 * input_ms / (CONSUMER_MS + input_ms)
        return _session(steps_ms, startup, input_wait, f"2026-01-01T00:{self._runs:02}:00+00:00")

    def _slow(self, process: float, count: int) -> Iterator[float]:
        """How many times as long things take in the next stretches."""
        return (math.exp(process - level) for level in islice(self._levels, count))

    def _load(self, side: Side) -> list[float]:
        """What another load makes of each stretch."""
        if side not in self._loaded or self._random.random() < 0.5:
            return [1.0] * STRETCHES
        length = self._random.randint(1, STRETCHES - 1)
        begin = self._random.randint(0, STRETCHES - length)
        return [LOAD if begin <= at < begin + length else 1.0 for at in range(STRETCHES)]


def _session(
    steps_ms: list[float], startup_s: float, input_wait: float, created_at: str
) -> Session:
    mean_ms = fmean(steps_ms)
    steps_s = RUN_STEPS * mean_ms / 1e3
    whole_s = startup_s + steps_s
    steps = make_steps(
        count=len(steps_ms), mean_ms=mean_ms, median_ms=median(steps_ms), samples_ms=steps_ms
    )
    run = make_run(
        total_s=startup_s + sum(steps_ms) / 1e3,
        projected_total_s=whole_s,
        parts=[
            make_part("startup", startup_s, whole_s),
            make_part("steps", steps_s, whole_s, basis="projected"),
        ],
    )
    breakdown = make_breakdown(mean_ms, input_wait=input_wait, device_compute=95.0 - input_wait)
    measured = {"steps": steps, "run": run, "breakdown": breakdown, "created_at": created_at}
    return _ELSE.model_copy(update=measured)
