"""A session for ui.perfetto.dev: run, windows, steps, trials, gaps and host on one clock.

The profile itself is not in it: `pipediag trace DIR/trace -o OTHER` writes that one.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from pipediag import __version__
from pipediag.facts.devices import block_start_ms, profile_clock
from pipediag.facts.names import RUN_PART, run_id
from pipediag.reporters.perfetto.writer import TraceWriter, arguments_of, encoded
from pipediag.reporters.words import labels
from pipediag.session.model import Session
from pipediag.trace.events import Times
from pipediag.vocabulary import POOLS

SESSION_TRACE_FILE = "session.perfetto.json"

_MOST_NS = 2.0**61
"""Differences and sums of two such times still fit into 64 bits."""
_Slice = tuple[float, float, str, str]
"""Start and length in milliseconds, name and arguments as JSON."""


def files(session: Session) -> Iterator[tuple[str, str]]:
    """The one trace."""
    stream = io.StringIO()
    _write(session, TraceWriter(stream))
    yield SESSION_TRACE_FILE, stream.getvalue()


def _write(session: Session, writer: TraceWriter) -> None:
    tracks: list[tuple[str, list[_Slice]]] = [
        ("Run", list(_run(session))),
        ("Windows", list(_windows(session))),
        ("Steps", list(_steps(session))),
        ("Trials", list(_trials(session))),
        *_gaps(session),
    ]
    starts = [one[0] for _, slices in tracks for one in slices]
    starts += [sample.at_ms for sample in session.host_samples]
    writer.origin_ns = _ns(min(starts, default=0.0))
    pid = writer.process("pipediag")
    for name, slices in tracks:
        if slices:
            _write_slices(writer, pid, name, slices)
    _write_host(session, writer, pid)
    writer.finish({"pipediag_version": __version__, "run_id": run_id(session)})


def _write_slices(writer: TraceWriter, pid: int, name: str, slices: Sequence[_Slice]) -> None:
    """Longest first where several begin at once, so that they nest."""
    listed = sorted(slices, key=lambda one: (one[0], -one[1]))
    starts = np.array([_ns(start) for start, *_ in listed], np.int64)
    ends = np.array([_ns(start + length) for start, length, *_ in listed], np.int64)
    track = writer.track(pid, name)
    names = [encoded(called) for _, _, called, _ in listed]
    writer.slices(track, starts, ends, names, [arguments for *_, arguments in listed])


def _run(session: Session) -> Iterator[_Slice]:
    for span in session.run.spans if session.run else []:
        name = RUN_PART[span.part] if span.part else "pipediag"
        yield span.start_ms, span.duration_ms, name, arguments_of({"what": span.what})


def _windows(session: Session) -> Iterator[_Slice]:
    for one in session.windows:
        arguments = {"loop_id": one.loop_id, "steps": one.steps, "reason": one.reason}
        yield one.start_ms, one.duration_ms, one.kind, arguments_of(arguments)


def _steps(session: Session) -> Iterator[_Slice]:
    """Each with its wait for input inside, at its start."""
    for row in session.step_rows:
        arguments = arguments_of({"window": row.window, "batches": row.batches})
        yield row.start_ms, row.duration_ms, f"step {row.index}", arguments
        if row.input_wait_ms:
            waited = min(row.input_wait_ms, row.duration_ms)
            yield row.start_ms, waited, labels.step_class("input_wait"), ""


def _trials(session: Session) -> Iterator[_Slice]:
    runs = [session.trials] if session.trials else []
    for run in (*runs, *session.evaluation_trials):
        for block in run.blocks:
            start_ms = block_start_ms(run, block)
            if start_ms is not None:
                arguments = {"round": block.round, "examples_per_s": block.examples_per_s}
                yield start_ms, block.duration_ms, block.arm, arguments_of(arguments)


def _gaps(session: Session) -> Iterator[tuple[str, list[_Slice]]]:
    """A track for each device, where the profile's clock is known."""
    clock = profile_clock(session)
    for device in session.devices if clock else []:
        assert clock is not None
        yield (
            f"{device.name} idle",
            [
                (
                    clock.run_ms(gap.start_ms),
                    gap.duration_ms,
                    labels.gap_cause(gap.cause),
                    arguments_of(
                        {"op_id": gap.op_id, "iterator": gap.iterator, "doing": gap.doing}
                    ),
                )
                for gap in device.gaps
            ],
        )


def _write_host(session: Session, writer: TraceWriter, pid: int) -> None:
    samples = session.host_samples
    if not samples:
        return
    times = np.array([_ns(sample.at_ms) for sample in samples], np.int64)
    counter = _counter(writer, pid, times)
    counter("CPU", "percent", [sample.cpu_percent for sample in samples])
    for pool in POOLS:
        used = [sample.pools_percent.get(pool, 0.0) for sample in samples]
        if any(used):
            counter(f"CPU: {labels.POOL[pool]}", "percent of a core", used)
    counter("Resident memory", "MiB", [sample.rss_bytes / 2**20 for sample in samples])


def _counter(
    writer: TraceWriter, pid: int, times: Times
) -> Callable[[str, str, Sequence[float]], None]:
    def write(name: str, unit: str, values: Sequence[float]) -> None:
        writer.counter(pid, name, unit, times, values)

    return write


def _ns(ms: float) -> int:
    """No run is as long as the limit: the session is a stranger's."""
    return round(max(-_MOST_NS, min(_MOST_NS, ms * 1e6)))
