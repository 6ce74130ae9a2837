"""Real calls of `pipediag ab` of the same code, while another load comes and goes on one core."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scipy.stats import binomtest

SAMPLE = Path(__file__).parents[1] / "sample_pipelines" / "pure_map.py"
SECONDS = 1_800
"""Of one comparison at most."""
LOAD_S = 8.0
"""On average, of a time with the load and of one without: shorter than a run."""


def compare_copies(comparisons: int) -> int:
    """Prints what each says, and how many failed; 1 where one did."""
    outcomes: Counter[str] = Counter()
    for number in range(comparisons):
        with tempfile.TemporaryDirectory() as directory, another_load(number):
            found = compare_once(Path(directory), number)
        outcomes[found] += 1
        print(f"{number + 1} of {comparisons}: {found}", flush=True)
    failed = outcomes["regressed"]
    interval = binomtest(failed, comparisons).proportion_ci(0.95, "exact")
    print(
        f"{failed} of {comparisons} comparisons of the same code failed "
        f"[{100 * interval.low:.2g}, {100 * interval.high:.2g}] %; {dict(outcomes)}"
    )
    return int(failed > 0)


def compare_once(directory: Path, seed: int) -> str:
    """The outcome of one call, or the status that it ended with without any."""
    for side in ("base", "head"):
        (directory / side).mkdir()
        shutil.copy(SAMPLE, directory / side / "train.py")
    options = ["-q", "--format", "json", "--seed", str(seed), "--seconds", str(SECONDS)]
    done = subprocess.run(
        [sys.executable, "-m", "pipediag", "ab", *options, "base", "head", "--", "train.py"],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        return str(json.loads(done.stdout)["outcome"])
    except ValueError:
        return f"exit status {done.returncode}: {done.stderr[-400:]}"


@contextmanager
def another_load(seed: int) -> Iterator[None]:
    """Keeps the last of the CPUs busy now and then."""
    core = max(os.sched_getaffinity(0))
    # A fresh interpreter: nothing of ours may be forked while it runs threads.
    process = multiprocessing.get_context("spawn").Process(
        target=_come_and_go, args=(core, seed), daemon=True
    )
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join()


def _come_and_go(core: int, seed: int) -> None:
    os.sched_setaffinity(0, {core})
    chance = random.Random(seed)
    while True:
        time.sleep(chance.expovariate(1.0 / LOAD_S))
        until = time.monotonic() + chance.expovariate(1.0 / LOAD_S)
        while time.monotonic() < until:
            pass
