"""How the throughput of blocks scatters on shared machines: models to try statistics on."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator

Scatter = Callable[[random.Random], Iterator[float]]
"""Endless log throughputs of blocks that follow each other, around any constant."""


def even(spread: float) -> Scatter:
    """Each block by itself, normal."""

    def blocks(draw: random.Random) -> Iterator[float]:
        while True:
            yield draw.gauss(0.0, spread)

    return blocks


def heavy_tailed(spread: float) -> Scatter:
    """Student's t with three degrees of freedom, scaled to that standard deviation."""

    def blocks(draw: random.Random) -> Iterator[float]:
        while True:
            chi_squared = 2.0 * draw.gammavariate(1.5, 1.0)
            student = draw.gauss(0.0, 1.0) / math.sqrt(chi_squared / 3.0)
            yield student * spread / math.sqrt(3.0)

    return blocks


def spiky(spread: float) -> Scatter:
    """One block in ten is hit by something else on the machine, and slowed down."""

    def blocks(draw: random.Random) -> Iterator[float]:
        while True:
            hit = draw.random() < 0.1
            slowdown = draw.expovariate(1.0 / (3.0 * spread)) if hit else 0.0
            yield draw.gauss(0.0, spread / 2.0) - slowdown

    return blocks


def sluggish(spread: float) -> Scatter:
    """Neighbouring blocks are alike: an autoregression with a coefficient of 0.7."""

    def blocks(draw: random.Random) -> Iterator[float]:
        level = draw.gauss(0.0, spread)
        while True:
            yield level
            level = 0.7 * level + math.sqrt(1.0 - 0.7**2) * draw.gauss(0.0, spread)

    return blocks


def in_phases(spread: float) -> Scatter:
    """The machine falls into slow phases of some six blocks, and comes out of them again."""

    def blocks(draw: random.Random) -> Iterator[float]:
        slow = draw.random() < 0.5
        while True:
            slow ^= draw.random() < 0.15
            yield draw.gauss(0.0, spread / 2.0) - 3.0 * spread * slow

    return blocks


def drifting(spread: float, per_half: int = 100) -> Scatter:
    """Each block by itself, while the machine slows down by half over so many blocks."""

    def blocks(draw: random.Random) -> Iterator[float]:
        level = 0.0
        while True:
            yield level + draw.gauss(0.0, spread)
            level -= math.log(1.5) / per_half

    return blocks


MODELS: dict[str, Callable[[float], Scatter]] = {
    "even": even,
    "heavy-tailed": heavy_tailed,
    "spiky": spiky,
    "sluggish": sluggish,
    "in phases": in_phases,
    "drifting": drifting,
}
