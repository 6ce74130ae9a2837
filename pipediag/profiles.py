"""The report of `pipediag trace` about recorded profiles, and the files that it writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from pipediag.errors import PipediagError
from pipediag.measures.profile import trace_report
from pipediag.rules.registry import run_device_rules
from pipediag.session.devices import TraceReport
from pipediag.session.files import write_text
from pipediag.session.record import to_json
from pipediag.trace.summary import HostSummary, read_hosts

if TYPE_CHECKING:
    from pipediag.reporters.perfetto import Exported

REPORT_FILE = "trace.json"
GAPS_FILE = "gaps.csv"
DEVICES_FILE = "devices.csv"
PERFETTO_FILE = "trace.perfetto.json.gz"


@dataclass(frozen=True)
class TraceResult:
    report: TraceReport
    hosts: tuple[HostSummary, ...]
    """The hosts that could be read."""


@dataclass(frozen=True)
class WrittenTrace:
    files: tuple[Path, ...]
    """The report and its tables."""
    exported: Exported | None
    """The trace for Perfetto; None if it was not asked for."""


def analyse_profiles(
    named: Sequence[Path], files: Sequence[Path], gap_floor_ns: int
) -> TraceResult:
    """Read the files that the user's paths mean, and return what they show.

    Raises:
        PipediagError: none can be read.
    """
    hosts = read_hosts(files, gap_floor_ns)
    read = tuple(host for host in hosts if host.summary is not None)
    if not read:
        raise PipediagError("\n".join(host.reason or "" for host in hosts))
    created_at = datetime.now(timezone.utc).isoformat(timespec="seconds")
    report = trace_report(", ".join(map(str, named)), hosts, created_at)
    findings = run_device_rules(report.devices, read[0].framework)
    return TraceResult(report.model_copy(update={"findings": findings}), read)


def write_trace(result: TraceResult, directory: Path, *, perfetto: bool) -> WrittenTrace:
    """Write the report, its tables and, if asked for, the trace for ui.perfetto.dev.

    Raises:
        PipediagError: a file cannot be written, or a profile can no longer be read.
    """
    # Only where files are written: the terminal's summary needs none of it.
    from pipediag.encoding.markup import as_csv
    from pipediag.reporters.tables import device_table, write_gaps

    summaries = [(host.host, host.summary) for host in result.hosts if host.summary is not None]
    report, gaps, devices = (directory / name for name in (REPORT_FILE, GAPS_FILE, DEVICES_FILE))
    write_text(report, dump_trace_report(result.report))
    write_gaps(gaps, summaries)
    write_text(devices, as_csv(device_table(result.report.devices)))
    exported = None
    if perfetto:
        from pipediag.reporters.perfetto import write_perfetto

        exported = write_perfetto(directory / PERFETTO_FILE, summaries, result.report.findings)
    return WrittenTrace((report, gaps, devices), exported)


def dump_trace_report(report: TraceReport) -> str:
    """Return the report as JSON, as `--json` prints it and `trace.json` has it."""
    return to_json(report, indent=1) + "\n"
