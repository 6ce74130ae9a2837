"""`pipediag trace`: device idle gaps and their causes, from any profile."""

from __future__ import annotations

import os
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipediag.cli.common import deliver, say
from pipediag.errors import PipediagError
from pipediag.trace.files import find_profiles

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipediag.session.devices import TraceReport, UnreadFile
    from pipediag.trace.summary import TraceSummary

PERFETTO_FILE = "trace.perfetto.json.gz"


@click.command(name="trace")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=Path)
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write trace.json, gaps.csv, devices.csv and a trace for ui.perfetto.dev.",
)
@click.option("--json", "json_mode", is_flag=True, help="Print the report as JSON instead.")
def command(
    *,
    paths: tuple[Path, ...],
    output: Path | None,
    json_mode: bool,
) -> None:
    """Find out when each device of a profile was idle, and why.

    PATH is a *.xplane.pb of TensorFlow or JAX, a Kineto *.json or *.json.gz of PyTorch, or a
    TensorBoard log directory, of which the newest run is read; several are hosts of one run.
    TensorFlow is not needed.
    """
    # Without numpy's own threads, which nothing here needs, a process can be forked.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from pipediag.measures.profile import trace_report
    from pipediag.rules.registry import run_device_rules
    from pipediag.session.record import to_json

    read, unread = read_profiles(paths)
    created_at = datetime.now(timezone.utc).isoformat(timespec="seconds")
    report = trace_report(", ".join(map(str, paths)), read, unread, created_at)
    findings = run_device_rules(report.devices, read[0].framework)
    report = report.model_copy(update={"findings": findings})
    document = to_json(report)
    written = [] if output is None else list(_write(report, document, read, output))
    if not json_mode:
        from rich.console import Console

        from pipediag.reporters.terminal.trace import render

        render(report, Console(), written=written)
        return
    deliver(document)
    for file in unread:
        say(f"pipediag: {file.reason}")
    for line in written:
        say(f"wrote {line}")


def _write(
    report: TraceReport, document: str, hosts: list[TraceSummary], directory: Path
) -> Iterator[str]:
    """Write the report, its tables and the trace for ui.perfetto.dev; say which."""
    from pipediag.encoding import as_csv
    from pipediag.reporters.tables import device_table, gap_table
    from pipediag.session.files import write_text

    files = [directory / name for name in ("trace.json", "gaps.csv", "devices.csv")]
    write_text(files[0], document)
    write_text(files[1], as_csv(gap_table(report.devices)))
    write_text(files[2], as_csv(device_table(report.devices)))
    yield ", ".join(map(str, files))
    from pipediag.reporters.perfetto import write_perfetto

    write_perfetto(directory / PERFETTO_FILE, hosts)
    yield f"{directory / PERFETTO_FILE} for ui.perfetto.dev"


def read_profiles(paths: Sequence[Path]) -> tuple[list[TraceSummary], list[UnreadFile]]:
    """Read every profile that the paths mean, each once, in the order given.

    Raises PipediagError: a path does not exist or holds no profile, or none could be read.
    """
    from pipediag.session.devices import UnreadFile
    from pipediag.trace.summary import read_hosts

    found: dict[Path, Path] = {}
    left_out: list[UnreadFile] = []
    for path in paths:
        newest, older = find_profiles(path)
        for file in newest:
            found.setdefault(file.resolve(), file)
        if older:
            names = ", ".join(f"{file} wrote {by_s:,.0f} s earlier" for file, by_s in older.items())
            reason = f"Perhaps of another run than the newest: {names}. To read one, name it."
            left_out.append(UnreadFile(path=str(path), reason=reason))
    read, unread = read_hosts(list(found.values()))
    if not read:
        raise PipediagError("\n".join(file.reason for file in unread))
    return read, [*unread, *left_out]
