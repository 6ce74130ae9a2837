"""How fast a long profile is read and summarised, against XProf on the same file, in turn.

    python -m benchmarks.trace_reading [--events N] [--rounds N] [--xprof-python PYTHON]

The profile is a real one of a Keras `fit` on a CPU (tests/trace/data), repeated. Every figure is of
a whole process, from its start to its end: `pipediag trace` with a summary of steps, iterators,
devices and gaps; XProf with its overview page, the first that anybody opens.
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
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.long_profile import write_repeated

SOURCE = Path(__file__).parents[1] / "tests" / "trace" / "data" / "fit.xplane.pb.gz"
XPROF = (
    "import sys; from xprof.convert import raw_to_tool_data as convert; "
    "print(len(convert.xspace_to_tool_data([sys.argv[1]], 'overview_page', {})[0]))"
)


@dataclass(frozen=True)
class Process:
    """One run of a command."""

    seconds: float
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
        # A process counts the memory of the one that started it as its own: this one stays small.
        with ProcessPoolExecutor(1) as writer:
            source = gzip.decompress(SOURCE.read_bytes())
            count = writer.submit(write_repeated, source, events, profile).result()
        size = profile.stat().st_size
        click.echo(f"{count:,} events, {size / 1e6:.0f} MB; {len(os.sched_getaffinity(0))} cores")
        ours: list[Process] = []
        theirs: list[Process] = []
        for _ in range(rounds):
            ours.append(_run([sys.executable, "-m", "pipediag", "trace", str(profile)], scratch))
            if peer is not None:
                theirs.append(_run_xprof(peer, profile, Path(scratch)))
        _say("pipediag trace", ours, count)
        if theirs:
            _say("xprof overview_page", theirs, count)
            _compare(ours, theirs)
        else:
            click.echo("xprof is not installed here (pip install xprof): nothing to compare with.")


def _run_xprof(python: str, profile: Path, scratch: Path) -> Process:
    # XProf keeps what it has worked out beside the profile; every run begins without that.
    directory = scratch / "xprof"
    directory.mkdir()
    own = directory / profile.name
    os.link(profile, own)
    try:
        return _run([python, "-c", XPROF, str(own)], scratch)
    finally:
        shutil.rmtree(directory)


def _run(command: list[str], scratch: str) -> Process:
    began = time.perf_counter()
    with (Path(scratch) / "said").open("wb") as said:
        child = subprocess.Popen(
            command, cwd=Path(__file__).parents[1], stdout=said, stderr=subprocess.STDOUT
        )
        _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - began
    if os.waitstatus_to_exitcode(status) != 0:
        raise click.ClickException(
            f"{command[:4]} failed:\n{(Path(scratch) / 'said').read_text(errors='replace')[-2000:]}"
        )
    return Process(seconds, usage.ru_maxrss * 1024)


def _has_xprof() -> bool:
    found = subprocess.run([sys.executable, "-c", "import xprof"], capture_output=True, check=False)
    return found.returncode == 0


def _say(name: str, runs: list[Process], events: int) -> None:
    seconds = [run.seconds for run in runs]
    median = float(np.median(seconds))
    click.echo(
        f"{name}: {median:.2f} s [{min(seconds):.2f} to {max(seconds):.2f}], "
        f"{events / median:,.0f} events/s, "
        f"peak {max(run.peak_bytes for run in runs) / 1e6:,.0f} MB"
    )


def _compare(ours: list[Process], theirs: list[Process]) -> None:
    pairs = list(zip(ours, theirs, strict=True))
    faster = [peer.seconds / own.seconds for own, peer in pairs]
    smaller = [peer.peak_bytes / own.peak_bytes for own, peer in pairs]
    for name, ratios in (("faster", faster), ("less memory", smaller)):
        click.echo(
            f"pipediag: {np.median(ratios):.1f} times {name} "
            f"[{min(ratios):.1f} to {max(ratios):.1f}] over {len(ratios)} rounds"
        )


if __name__ == "__main__":
    main()
