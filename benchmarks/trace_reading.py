"""How fast a long profile is read and summarised, against XProf on the same file, in turn.

    python -m benchmarks.trace_reading [--events N] [--rounds N] [--xprof-python PYTHON]

The profile is a real one of a Keras `fit` on a CPU (tests/trace/data), repeated. Every figure is of
a whole process, from its start to its end: `pipediag trace` with a summary of steps, iterators,
devices and gaps; XProf with its overview page, the first that anybody opens. Memory is that of all
processes of a command together (PSS: a page that several share counts once), looked at every few
milliseconds in one more run, as looking takes time.
"""

from __future__ import annotations

import compileall
import gzip
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.long_profile import write_repeated

SOURCE = Path(__file__).parents[1] / "tests" / "trace" / "data" / "fit.xplane.pb.gz"
XPROF = (
    "import sys; from xprof.convert import raw_to_tool_data as convert; "
    "print(len(convert.xspace_to_tool_data([sys.argv[1]], 'overview_page', {})[0]))"
)


MEMORY_EVERY_S = 0.005


@dataclass(frozen=True)
class Runs:
    """What a command took."""

    seconds: list[float]
    peak_bytes: int


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option("--events", type=click.IntRange(min=1), default=3_000_000, show_default=True)
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True)
@click.option(
    "--xprof-python",
    help="An interpreter that has xprof installed.  [default: this one, where it has]",
)
def main(events: int, rounds: int, xprof_python: str | None) -> None:
    """Make the profile, run both, and print medians and the ratios of each round."""
    # As pip leaves what it installs, XProf included.
    compileall.compile_dir(Path(__file__).parents[1] / "pipediag", quiet=1)
    peer = xprof_python or (sys.executable if _has_xprof() else None)
    with tempfile.TemporaryDirectory(prefix="pipediag-trace-") as scratch:
        profile = Path(scratch) / "long.xplane.pb"
        with ProcessPoolExecutor(1) as writer:
            source = gzip.decompress(SOURCE.read_bytes())
            count = writer.submit(write_repeated, source, events, profile).result()
        size = profile.stat().st_size
        click.echo(f"{count:,} events, {size / 1e6:.0f} MB; {len(os.sched_getaffinity(0))} cores")
        own_command = [sys.executable, "-m", "pipediag", "trace", str(profile)]
        own_s: list[float] = []
        peer_s: list[float] = []
        for _ in range(rounds):
            own_s.append(_seconds(own_command, scratch))
            if peer is not None:
                with _for_xprof(peer, profile, Path(scratch)) as command:
                    peer_s.append(_seconds(command, scratch))
        ours = Runs(own_s, _peak_bytes(own_command, scratch))
        _say("pipediag trace", ours, count)
        if peer is not None:
            with _for_xprof(peer, profile, Path(scratch)) as command:
                theirs = Runs(peer_s, _peak_bytes(command, scratch))
            _say("xprof overview_page", theirs, count)
            _compare(ours, theirs)
        else:
            click.echo("xprof is not installed here (pip install xprof): nothing to compare with.")


@contextmanager
def _for_xprof(python: str, profile: Path, scratch: Path) -> Iterator[list[str]]:
    # XProf keeps what it has worked out beside the profile; every run begins without that.
    directory = scratch / "xprof"
    directory.mkdir()
    own = directory / profile.name
    os.link(profile, own)
    try:
        yield [python, "-c", XPROF, str(own)]
    finally:
        shutil.rmtree(directory)


def _seconds(command: list[str], scratch: str) -> float:
    began = time.perf_counter()
    with _started(command, scratch) as child:
        child.wait()
    return time.perf_counter() - began


def _peak_bytes(command: list[str], scratch: str) -> int:
    peak = 0
    with _started(command, scratch) as child:
        tree = psutil.Process(child.pid)
        while child.poll() is None:
            with suppress(psutil.Error):
                processes = [tree, *tree.children(recursive=True)]
                peak = max(peak, sum(one.memory_full_info().pss for one in processes))
            time.sleep(MEMORY_EVERY_S)
    return peak


@contextmanager
def _started(command: list[str], scratch: str) -> Iterator[subprocess.Popen[bytes]]:
    with (Path(scratch) / "said").open("wb") as said:
        child = subprocess.Popen(
            command, cwd=Path(__file__).parents[1], stdout=said, stderr=subprocess.STDOUT
        )
        yield child
    if child.returncode != 0:
        raise click.ClickException(
            f"{command[:4]} failed:\n{(Path(scratch) / 'said').read_text(errors='replace')[-2000:]}"
        )


def _has_xprof() -> bool:
    found = subprocess.run([sys.executable, "-c", "import xprof"], capture_output=True, check=False)
    return found.returncode == 0


def _say(name: str, runs: Runs, events: int) -> None:
    median = float(np.median(runs.seconds))
    click.echo(
        f"{name}: {median:.2f} s [{min(runs.seconds):.2f} to {max(runs.seconds):.2f}], "
        f"{events / median:,.0f} events/s, peak {runs.peak_bytes / 1e6:,.0f} MB"
    )


def _compare(ours: Runs, theirs: Runs) -> None:
    faster = [peer / own for own, peer in zip(ours.seconds, theirs.seconds, strict=True)]
    click.echo(
        f"pipediag: {np.median(faster):.1f} times faster [{min(faster):.1f} to {max(faster):.1f}] "
        f"over {len(faster)} rounds, {theirs.peak_bytes / ours.peak_bytes:.1f} times less memory"
    )


if __name__ == "__main__":
    main()
