"""Comparison of two versions of a training by their first batches and losses."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from pipediag.errors import PipediagError
from pipediag.runner.child_process import CHILD
from pipediag.runner.native_runs import NativeRun, wall_s

ROUNDING = 1e-4
"""Relative difference of floats that counts as rounding."""
NOISE = 2.0
"""Own choice: two pairs of seeds differ by less than twice as much."""
TIMEOUT_S = 600.0
"""Own choice, for a run that takes no batch or step by which it could end itself."""

Row = list[Any]


@dataclass(frozen=True)
class Seen:
    """The rows and losses that a run has written; see `pipediag.capture.results`."""

    rows: list[Row]
    problem: str | None
    losses: list[float]


def compared(old: NativeRun, new: NativeRun, timeout_s: float = TIMEOUT_S) -> list[str]:
    """Run both with one seed, and the old one with another; return a sentence on batches and one
    on losses, or one on the run that failed."""
    try:
        with tempfile.TemporaryDirectory(prefix="pipediag-results-") as folder:
            place = Path(folder, "results.json")
            first = _seen(old, 1, place, timeout_s)
            if first.problem and not first.losses:
                return [of_batches(first, first), of_losses(first, first, first)]
            runs = [first, *(_seen(*each, place, timeout_s) for each in ((new, 1), (old, 2)))]
    except PipediagError as error:
        return [f"Batches and losses were not compared: {error}"]
    return [of_batches(*runs[:2]), of_losses(*runs)]


def _seen(run: NativeRun, seed: int, place: Path, timeout_s: float) -> Seen:
    place.unlink(missing_ok=True)
    command = (sys.executable, str(CHILD), "results", str(seed), str(place), run.command[-1])
    wall_s(replace(run, command=command), {**os.environ, "PYTHONHASHSEED": str(seed)}, timeout_s)
    if not place.exists():
        raise PipediagError(f"{run.name} ended before it could write what it had seen.")
    return Seen(**json.loads(place.read_text(encoding="utf-8")))


def of_batches(old: Seen, new: Seen) -> str:
    """Return whether the first batches are equal, equal up to order, or different."""
    for side, seen in (("old", old), ("new", new)):
        if problem := seen.problem or (None if seen.rows else "none was taken"):
            return f"Batches were not compared: the {side} version's could not be read; {problem}."
    count = min(len(old.rows), len(new.rows))
    rows = old.rows[:count], new.rows[:count]
    begin = f"Batches: the first {count:,} rows are"
    if alike := _alike(*rows):
        return f"{begin} {alike}."
    if alike := _alike(sorted(rows[0]), sorted(rows[1])):
        return f"{begin} {alike} up to order."
    shared = sum((Counter(map(tuple, rows[0])) & Counter(map(tuple, rows[1]))).values())
    return f"{begin} different: {shared:,} of them are in both versions."


def _alike(old: Sequence[Row], new: Sequence[Row]) -> str | None:
    if old == new:
        return "equal"
    if any(a[0] != b[0] or len(a) != len(b) for a, b in zip(old, new, strict=True)):
        return None
    # One line for each place in a row, as each has a scale of its own.
    before, after = (
        np.array(list(zip_longest(*(row[1:] for row in rows), fillvalue=0.0)))
        for rows in (old, new)
    )
    scale = np.abs(before).mean(axis=1, keepdims=True)
    close = np.all(np.abs(before - after) <= ROUNDING * (np.abs(before) + scale))
    return "equal up to rounding" if close else None


def of_losses(old: Seen, new: Seen, other_seed: Seen) -> str:
    """Return whether the losses are equal, or differ by no more than another seed makes them."""
    count = min(len(one.losses) for one in (old, new, other_seed))
    if not count:
        return "Losses were not compared: no step took gradients with tf.GradientTape."
    first, second, other = (np.array(one.losses[:count]) for one in (old, new, other_seed))
    begin = f"Losses: those of the first {count} steps"
    if np.array_equal(first, second, equal_nan=True):
        return f"{begin} are equal."
    if np.allclose(first, second, rtol=ROUNDING, equal_nan=True):
        return f"{begin} are equal up to rounding."
    apart, by_seed = (float(np.abs(first - one).mean()) for one in (second, other))
    said = f"by {apart:.3g} on average"
    if np.allclose(first, other, rtol=ROUNDING, equal_nan=True):
        return f"{begin} differ {said}; the script sets its own seed, so seeds were not compared."
    said = f"{said}; another seed makes the old version differ by {by_seed:.3g}"
    if apart <= NOISE * by_seed:
        return f"{begin} agree within what seeds do: they differ {said}."
    return f"{begin} differ, and not only by the seed: {said}."
