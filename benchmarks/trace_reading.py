"""How fast a long profile is read and summarised, against XProf on the same file, in turn.

    python -m benchmarks.trace_reading [--events N] [--rounds N] [--xprof-python PYTHON]

The profile is a real one of a Keras `fit` on a CPU (tests/trace/data), repeated. A figure is for
a whole process, from its start to its end: `pipediag trace` with a summary of steps, iterators,
devices and gaps; XProf with its overview page. Memory is that of all processes of a command (PSS: a
page that several share counts once), read every few milliseconds in one more run, as reading it
takes time.
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
from typing import Any

import click
import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).parents[1]))

from pipediag.trace.xplane.protobuf import message_class

SOURCE = Path(__file__).parents[1] / "tests" / "trace" / "data" / "fit.xplane.pb.gz"
XPROF = (
    "import sys; from xprof.convert import raw_to_tool_data as convert; "
    "print(len(convert.xspace_to_tool_data([sys.argv[1]], 'overview_page', {})[0]))"
)
MEMORY_EVERY_S = 0.005
_PLANES, _LINES = 0x0A, 0x1A
"""Tags of the fields `XSpace.planes` and `XPlane.lines`."""


@dataclass(frozen=True)
class Runs:
    """Wall times and memory of a command."""

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


def write_repeated(source: bytes, events: int, target: Path) -> int:
    """Write the profile in `source` over and over until it holds that many events; returns them.

    Step ids and the like repeat as well; names, statistics and the order on each line are those of
    the real profile. Parts of a message that follow each other on the wire are one message, so that
    no more than one line is held in memory.
    """
    space = message_class("XSpace").FromString(source)
    lines = [line for plane in space.planes for line in plane.lines]
    count = sum(len(line.events) for line in lines)
    times = -(-events // count)
    span_ps = max(map(_end_ps, lines)) - min(map(_start_ps, lines))
    with target.open("wb") as file:
        for plane in space.planes:
            originals = list(plane.lines)
            del plane.lines[:]
            parts = [plane.SerializeToString()]
            for line in originals:
                content = b"".join(_repetitions(line, times, span_ps))
                parts.append(_delimited(_LINES, content))
            file.write(_delimited(_PLANES, b"".join(parts)))
    return times * count


def _repetitions(line: Any, times: int, span_ps: int) -> Iterator[bytes]:
    yield line.SerializeToString()
    line = message_class("XLine")(events=line.events)
    for _ in range(times - 1):
        for event in line.events:
            event.offset_ps += span_ps
        yield line.SerializeToString()


def _delimited(tag: int, content: bytes) -> bytes:
    length, size = bytearray(), len(content)
    while size > 0x7F:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([tag, *length, size]) + content


def _start_ps(line: Any) -> int:
    offsets = (event.offset_ps for event in line.events)
    return int(line.timestamp_ns * 1000 + min(offsets, default=0))


def _end_ps(line: Any) -> int:
    ends = (event.offset_ps + event.duration_ps for event in line.events)
    return int(line.timestamp_ns * 1000 + max(ends, default=0))


if __name__ == "__main__":
    main()
