"""A profile for ui.perfetto.dev: pipediag's steps, gaps and findings above the original tracks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipediag import __version__
from pipediag.measures.profile import at_one_time
from pipediag.reporters.perfetto.compressed import compressed
from pipediag.reporters.perfetto.originals import LeftOut, write_originals
from pipediag.reporters.perfetto.own_tracks import write_own_tracks
from pipediag.reporters.perfetto.writer import TraceWriter
from pipediag.session.findings import Finding
from pipediag.trace.events import TraceEvents
from pipediag.trace.files import read_profile
from pipediag.trace.summary import TraceSummary

MOST_HOST_EVENTS = 1_000_000
"""Of the host's threads over all hosts: about what a browser's tab holds. ui.perfetto.dev refuses
files that unpack to more than 2 GB, and is slow long before."""

_ALONE = "pipediag"
"""What the process of a single host is called. It holds pipediag's tracks and, below them, the
original ones."""

_SHOWN = frozenset({"fail", "informative", "inconclusive"})
_LARGEST_EXACT_NS = 1 << 53
"""Larger times are rounded where the format's numbers are read as 64-bit floats."""


@dataclass(frozen=True)
class Exported:
    """What was written, and what was not."""

    path: Path
    left_out: int
    """Events of the hosts' threads, the shortest ones."""
    longest_left_out_us: float


def write_perfetto(
    path: Path,
    summaries: Sequence[tuple[str, TraceSummary]],
    findings: Sequence[Finding] = (),
    most_host_events: int = MOST_HOST_EVENTS,
) -> Exported:
    """Writes a trace of all hosts, packed by gzip; each profile is read once more.

    Times are the profile's own. Where it counts from 1970, or has times before 0, they count from
    its first event. Those of several hosts that were recorded at one time count from the first
    event of all, by the hosts' own clocks. The findings stand at the first host's first step.

    Args:
        path: the file; it is replaced whole or not at all.
        summaries: with the host of each; of one alone the host is not shown.
        findings: what the rules say of all hosts together.
        most_host_events: of the threads of all hosts.

    Raises:
        PipediagError: a profile can no longer be read, or the file cannot be written.
    """
    several = len(summaries) > 1
    began_ns = _common_begin([summary for _, summary in summaries])
    left_out: list[LeftOut] = []
    origins: dict[str, int] = {}
    shown = [finding for finding in findings if finding.status in _SHOWN]
    with compressed(path) as stream:
        writer = TraceWriter(stream)
        for place, (host, summary) in enumerate(summaries):
            events = read_profile(summary.path).events
            writer.origin_ns = origins[host] = (
                _origin(events) if began_ns is None else began_ns - (summary.epoch_ns or 0)
            )
            pid = writer.process(host if several else _ALONE)
            write_own_tracks(writer, pid, summary, shown if place == 0 else [])
            share = most_host_events // len(summaries)
            left_out.append(write_originals(writer, pid, events, share))
        exported = _exported(path, left_out)
        writer.finish(_notes(exported, origins))
    return exported


def _exported(path: Path, left_out: list[LeftOut]) -> Exported:
    return Exported(
        path=path,
        left_out=sum(part.count for part in left_out),
        longest_left_out_us=max((part.longest_ns for part in left_out), default=0) / 1e3,
    )


def _notes(exported: Exported, origins: Mapping[str, int]) -> dict[str, str | int | float]:
    notes: dict[str, str | int | float] = {"pipediag_version": __version__}
    if exported.left_out:
        notes["host_events_left_out"] = exported.left_out
        notes["longest_event_left_out_us"] = exported.longest_left_out_us
    notes |= {f"origin_ns {host}": origin for host, origin in origins.items() if origin}
    return notes


def _common_begin(summaries: Sequence[TraceSummary]) -> int | None:
    """The first event of all hosts since 1970; None where their times cannot be compared."""
    if len(summaries) < 2 or not at_one_time(summaries):
        return None
    return min((summary.epoch_ns or 0) + summary.first_ns for summary in summaries)


def _origin(events: TraceEvents) -> int:
    """What is subtracted from the profile's times."""
    filled = [line for line in events.lines() if len(line)]
    first = min((int(line.start_ns[0]) for line in filled), default=0)
    last = max((int(line.end_ns.max()) for line in filled), default=0)
    return first if first < 0 or last > _LARGEST_EXACT_NS else 0
