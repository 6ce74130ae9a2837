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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from operator import attrgetter
from pathlib import Path
from statistics import fmean

from benchmarks.gate_page import replace_section
from benchmarks.gate_peers import PEERS
from benchmarks.gate_table import interval, line
from benchmarks.kept_rows import keep_rows, read_rows
from pipediag.session.repeats import load_runs

SAMPLE = Path(__file__).parents[1] / "sample_pipelines" / "pure_map.py"
KEPT = Path(__file__).with_name("results") / "gate_real.jsonl"
SECONDS = 1_800
"""Of one comparison at most."""
LOAD_S = 8.0
"""On average, of a time with the load and of one without: shorter than a run."""
SECTION = "real comparisons"
SIDES = ("base", "head")
PIPEDIAG = (sys.executable, "-m", "pipediag")


@dataclass(frozen=True)
class Real:
    """What one comparison said, a line of the file that keeps them."""

    number: int
    outcome: str
    """Of pipediag, or the status that it ended with without any."""
    rounds: int
    seconds: float
    """That the comparison took."""
    peers: dict[str, bool]
    """Whether they fail the same runs."""


def compare_copies(comparisons: int, kept: Path, page: Path | None) -> int:
    """Makes those that are not kept yet, and prints what all say; 1 where one failed."""
    found = read_kept(kept)
    for number in range(comparisons):
        if number not in found:
            with tempfile.TemporaryDirectory() as directory, another_load(number):
                found[number] = compare_once(Path(directory), number)
            keep_rows(kept, (asdict(found[one]) for one in sorted(found)))
            print(f"{number + 1} of {comparisons}: {found[number].outcome}", flush=True)
    asked = [found[number] for number in range(comparisons)]
    table = markdown(asked)
    print(table)
    if page is not None:
        replace_section(page, SECTION, table)
    return int(any(one.outcome == "regressed" for one in asked))


def read_kept(file: Path) -> dict[int, Real]:
    """Those of earlier calls, by number."""
    return {one.number: one for one in (Real(**row) for row in read_rows(file))}


def compare_once(directory: Path, number: int) -> Real:
    """One call; its number seeds the load and the order of the runs."""
    for side in SIDES:
        (directory / side).mkdir()
        shutil.copy(SAMPLE, directory / side / "train.py")
    options = ["-q", "--format", "json", "--seed", str(number), "--seconds", str(SECONDS)]
    begun = time.monotonic()
    done = subprocess.run(
        [*PIPEDIAG, "ab", *options, "-o", "runs", "base", "head", "--", "train.py"],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - begun
    try:
        outcome = str(json.loads(done.stdout)["outcome"])
    except ValueError:
        outcome = f"exit status {done.returncode}: {done.stderr[-400:]}"
        return Real(number, outcome, 0, seconds, {})
    base, head = ([one for _, one in load_runs([directory / "runs" / side])] for side in SIDES)
    peers = {name: fails(base, head) for name, fails in PEERS.items()}
    return Real(number, outcome, min(len(base), len(head)), seconds, peers)


def markdown(found: Sequence[Real]) -> str:
    """How often each judge failed the same code, and what it took."""
    outcomes = Counter(one.outcome for one in found)
    failed = {"pipediag": outcomes["regressed"]}
    for name in dict.fromkeys(name for one in found for name in one.peers):
        failed[name] = sum(one.peers.get(name, False) for one in found)
    rounds, seconds = (fmean(map(attrgetter(name), found)) for name in ("rounds", "seconds"))
    said = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
    return "\n".join(
        [
            f"{len(found)} calls of `pipediag ab` of two copies of `{SAMPLE.name}`: {said}; "
            f"{rounds:.1f} rounds and {seconds / 60:.1f} minutes on average.",
            "",
            line("The same code: failed", *failed),
            line("---", *["--:"] * len(failed)),
            line(
                "another load comes and goes",
                *(_of(count, len(found)) for count in failed.values()),
            ),
            "",
        ]
    )


def _of(failed: int, comparisons: int) -> str:
    share = f"{100.0 * failed / comparisons:.3g} %"
    return f"{failed} of {comparisons}: {share} {interval(failed, comparisons)}"


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
    comparing = multiprocessing.parent_process()
    # A killed benchmark must not leave its load to those that follow.
    while comparing is not None and comparing.is_alive():
        time.sleep(chance.expovariate(1.0 / LOAD_S))
        until = time.monotonic() + chance.expovariate(1.0 / LOAD_S)
        while time.monotonic() < until:
            pass
