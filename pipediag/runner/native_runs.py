"""Native runs of a script and of a patched copy: the gain, and what they have in common."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

import numpy as np

from pipediag.errors import ExitStatus, PipediagError
from pipediag.estimates import Estimate, estimate
from pipediag.runner.child_process import CHILD
from pipediag.runner.signals import wait_for
from pipediag.session.ledger import RunGain
from pipediag.session.messages import RunSettings
from pipediag.session.model import Session

Tell = Callable[[str, float], None]
"""Callback for the name of a run that is over, and its seconds."""
_LONGEST_REASON = 300
"""Last characters of a failed script's standard error that a message shows."""


@dataclass(frozen=True)
class NativeRun:
    """Command, directory and environment of a program."""

    name: str
    """Name by which its time or its failure is printed."""
    command: tuple[str, ...]
    directory: Path


def obtained(runs: tuple[NativeRun, NativeRun], rounds: int, tell: Tell) -> tuple[Estimate, float]:
    """Return the speed-up from the first program to the second, run in random order, and the mean
    seconds of the first. Raises PipediagError, with the exit status 3: one fails."""
    order = random.Random(1)
    rounds_s: list[tuple[float, float]] = []
    for _ in range(rounds):
        walls = {}
        for index in order.sample((0, 1), 2):
            walls[index] = wall_s(runs[index], None, None)
            tell(runs[index].name, walls[index])
        rounds_s.append((walls[0], walls[1]))
    ratios = [script_s / copy_s for script_s, copy_s in rounds_s]
    return estimate(ratios), fmean(script_s for script_s, _ in rounds_s)


def wall_s(run: NativeRun, env: Mapping[str, str] | None, timeout_s: float | None) -> float:
    """Run a program; return how long that took. Raises PipediagError: it fails, or is late."""
    began = time.monotonic()
    # A file: what the program leaves running would hold a pipe open.
    with (
        tempfile.TemporaryFile() as written,
        subprocess.Popen(
            run.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=written,
            env=env,
            cwd=run.directory,
        ) as process,
    ):
        try:
            wait_for(process, timeout_s)
        except subprocess.TimeoutExpired as error:
            message = f"{run.name} did not finish within {error.timeout:g} s."
            raise PipediagError(message, ExitStatus.SCRIPT_FAILED) from error
        finally:
            process.kill()
        took_s = time.monotonic() - began
        written.seek(max(0, written.seek(0, os.SEEK_END) - 4 * _LONGEST_REASON))
        last = written.read().decode(errors="replace").strip()[-_LONGEST_REASON:]
    if process.returncode != 0:
        raise PipediagError(
            f"{run.name} ended with status {process.returncode}: {last}", ExitStatus.SCRIPT_FAILED
        )
    return took_s


def kept(promised: RunGain, found: Estimate) -> bool:
    """Return True if the interval of what was promised and that of what was obtained overlap, and
    no loss was obtained where a gain was promised."""
    low, high = promised.ci95 or (promised.speedup, promised.speedup)
    return low <= found.high and found.low <= high and not found.high < 1.0 < promised.speedup


@contextmanager
def versions(
    session: Session, contents: Mapping[str, bytes]
) -> Iterator[tuple[NativeRun, NativeRun]]:
    """Give the program as it was measured, and with patched files, which lie elsewhere meanwhile.
    Raises PipediagError: it can't be run again."""
    script = session.script
    directory = Path(script.directory or Path.cwd())
    if script.call is not None or not directory.is_dir():
        is_script = script.call is None
        reason = f"its directory {directory} is gone" if is_script else "it is not a script"
        raise PipediagError(f"{script.path} can't be run again: {reason}. Nothing was verified.")
    name = f"-m {script.path}" if script.module else Path(script.path).name
    with tempfile.TemporaryDirectory(prefix="pipediag-verify-") as folder:
        replaced = {}
        for number, (path, content) in enumerate(contents.items()):
            copy = Path(folder, str(number), Path(path).name)
            copy.parent.mkdir()
            copy.write_bytes(content)
            replaced[path] = str(copy)
        settings = RunSettings(
            script=script.path, args=script.args, module=script.module, capture_directory=""
        )
        patched = dataclasses.replace(settings, replaced_files=replaced)
        yield (
            native_run(name, settings, directory, Path(folder, "script.json")),
            native_run(f"{name}, patched", patched, directory, Path(folder, "patched.json")),
        )


def native_run(name: str, settings: RunSettings, directory: Path, file: Path) -> NativeRun:
    """Return a run as `child/start.py` makes it; its settings are written to the file."""
    settings.write(file)
    return NativeRun(name, (sys.executable, str(CHILD), "native", str(file)), directory)


# Comparison of two versions of a training by their first batches and losses.

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


@dataclass(frozen=True)
class Said:
    """Comparison of batches or losses, in words."""

    sentence: str
    found: Literal["equal", "reordered", "different"] | None = None
    """`equal` and `reordered` also up to rounding; `different`: by more than chance. None where
    that is not known."""


def compared(
    old: NativeRun,
    new: NativeRun,
    timeout_s: float = TIMEOUT_S,
    tell: Tell = lambda *_: None,
) -> list[Said]:
    """Run both with one seed, the old one with another too; return what is to say of both.

    Where batches or losses differ, the old one is run once more: they may differ from run to run.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="pipediag-results-") as folder:
            place = Path(folder, "results.json")
            first = _seen(old, 1, place, timeout_s, tell)
            if first.problem and not first.losses:
                return [of_batches(first, first), of_losses(first, first, first)]
            others = ((new, 1), (old, 2))
            runs = [first, *(_seen(*each, place, timeout_s, tell) for each in others)]
            batches, losses = of_batches(*runs[:2]), of_losses(*runs)
            if "different" in (batches.found, losses.found):
                again = _seen(old, 1, place, timeout_s, tell)
                if "different" == batches.found == of_batches(first, again).found:
                    batches = Said(f"{batches.sentence} Two runs of the old one differ, too.")
                if losses.found == "different" and _differ_by_chance(first, runs[1], again):
                    losses = Said(f"{losses.sentence} Two runs of the old one differ, too.")
    except PipediagError as error:
        return [Said(f"Batches and losses were not compared: {error}")]
    return [batches, losses]


def _seen(run: NativeRun, seed: int, place: Path, timeout_s: float, tell: Tell) -> Seen:
    place.unlink(missing_ok=True)
    command = (sys.executable, str(CHILD), "results", str(seed), str(place), run.command[-1])
    seeded = dataclasses.replace(run, command=command)
    tell(run.name, wall_s(seeded, {**os.environ, "PYTHONHASHSEED": str(seed)}, timeout_s))
    if not place.exists():
        raise PipediagError(f"{run.name} ended before it could write its results.")
    return Seen(**json.loads(place.read_text(encoding="utf-8")))


def of_batches(old: Seen, new: Seen) -> Said:
    """Return whether the first batches are equal, equal up to order, or different."""
    for side, seen in (("old", old), ("new", new)):
        if problem := seen.problem or (None if seen.rows else "none was taken"):
            why = f"the {side} version's could not be read: {problem}"
            return Said(f"Batches were not compared: {why}.")
    count = min(len(old.rows), len(new.rows))
    rows = old.rows[:count], new.rows[:count]
    begin = f"Batches: the first {count:,} rows are"
    if alike := _alike(*rows):
        return Said(f"{begin} {alike}.", "equal")
    if alike := _alike(sorted(rows[0]), sorted(rows[1])):
        return Said(f"{begin} {alike} up to order.", "reordered")
    shared = sum((Counter(map(tuple, rows[0])) & Counter(map(tuple, rows[1]))).values())
    return Said(f"{begin} different: {shared:,} of them are in both versions.", "different")


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


def of_losses(old: Seen, new: Seen, other_seed: Seen) -> Said:
    """Return whether the losses are equal, or differ by no more than another seed makes them."""
    count = min(len(one.losses) for one in (old, new, other_seed))
    if not count:
        return Said("Losses were not compared: no step computed gradients with tf.GradientTape.")
    first, second, other = (np.array(one.losses[:count]) for one in (old, new, other_seed))
    begin = f"Losses: those of the first {count} steps"
    if np.array_equal(first, second, equal_nan=True):
        return Said(f"{begin} are equal.", "equal")
    if np.allclose(first, second, rtol=ROUNDING, equal_nan=True):
        return Said(f"{begin} are equal up to rounding.", "equal")
    apart, by_seed = (float(np.abs(first - one).mean()) for one in (second, other))
    differ = f"differ by {apart:.3g} on average"
    if np.allclose(first, other, rtol=ROUNDING, equal_nan=True):
        return Said(f"{begin} {differ}; the script sets its own seed, so seeds were not compared.")
    by_another = f"another seed makes the old version differ by {by_seed:.3g}"
    if apart <= NOISE * by_seed:
        return Said(f"{begin} agree as closely as two seeds do: they {differ}; {by_another}.")
    return Said(
        f"{begin} differ by more than two seeds do: by {apart:.3g} on average; {by_another}.",
        # Losses that are no numbers without the change, too, say nothing of it.
        None if math.isnan(by_seed) else "different",
    )


def _differ_by_chance(old: Seen, new: Seen, again: Seen) -> bool:
    """Return True if losses differ about as much between two runs of the old version with one seed,
    as where kernels add in another order each time."""
    count = min(len(one.losses) for one in (old, new, again))
    first, second, repeated = (np.array(one.losses[:count]) for one in (old, new, again))
    apart, by_chance = (float(np.abs(first - one).mean()) for one in (second, repeated))
    return apart <= NOISE * by_chance
