"""A trace report on the terminal: steps, each device's idle time with its causes, what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from pipediag.reporters import findings, labels
from pipediag.reporters.device_sections import device_name, device_sections
from pipediag.reporters.encoded import Encoded
from pipediag.reporters.idle_time import main_part
from pipediag.reporters.quantities import milliseconds, number, percent
from pipediag.reporters.terminal_limits import MAX_LINES
from pipediag.reporters.trace_limits import SPARING, UNLIMITED, TraceLimits
from pipediag.session.devices import DeviceActivity
from pipediag.session.model import Finding
from pipediag.session.trace_report import TraceHost, TraceReport, TraceSteps

_FINDING_STYLE = {"error": "red", "warn": "yellow", "info": "cyan"}
_FORMAT = {"xplane": "XPlane", "kineto": "Kineto"}
_MAX_WIDTH = 120
_MODERATE_IDLE_PERCENT = 15.0
_HIGH_IDLE_PERCENT = 40.0
"""They only choose the colour of the first line."""
_CLASSES_SHOWN = 4
_LEAST_PERCENT = 0.05
_FIGURE_WIDTH = 7


def render(
    report: TraceReport, console: Console, *, written: Sequence[str], verbose: bool = False
) -> None:
    """Prints a trace report: under 40 lines, unless `verbose`.

    Args:
        report: what was found.
        console: where to.
        written: a line for each file that was written; none where nothing was.
        verbose: shows every device, and more of their kernels and gaps.
    """
    options = console.options.update(width=min(console.width, _MAX_WIDTH))
    for limits in (UNLIMITED,) if verbose else SPARING:
        summary = Encoded(Group(*_sections(report, written, limits)))
        if len(console.render_lines(summary, options, pad=False)) <= MAX_LINES:
            break
    console.print(summary, width=options.max_width, highlight=False)


def _sections(
    report: TraceReport, written: Sequence[str], limits: TraceLimits
) -> Iterator[RenderableType]:
    devices = sorted(report.devices, key=lambda device: -device.idle_ms)
    yield _headline(devices)
    yield _profile(report, limits)
    if len(devices) > 1:
        yield Text()
        yield _table(report.devices, limits)
    for device in devices[: limits.devices]:
        yield Text()
        yield from device_sections(device, limits)
    yield from _findings(report, limits)
    yield Text()
    yield _pointers(written)


def _headline(devices: list[DeviceActivity]) -> Text:
    if not devices:
        return Text("● No device activity in this profile", "cyan")
    device = devices[0]
    style = "green"
    if device.idle_percent >= _MODERATE_IDLE_PERCENT:
        style = "red" if device.idle_percent >= _HIGH_IDLE_PERCENT else "yellow"
    main = main_part(device)
    mostly = f", mostly {main[0].lower()}{main[1:]}" if main else ""
    line = Text.assemble(
        ("● ", style),
        (f"{device_name(device)} IDLE {percent(device.idle_percent)}", f"bold {style}"),
        f"  of {milliseconds(device.span_ms)}{mostly}",
    )
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


def _profile(report: TraceReport, limits: TraceLimits) -> Table:
    """The files with their steps; those that could not be read with the reason."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column()
    for host in report.hosts[: limits.files]:
        grid.add_row(Text("Profile", "dim"), _path(host, limits))
        grid.add_row(Text("Steps", "dim"), _shortened(_steps_of(host), limits))
        for warning in host.warnings[:1]:
            grid.add_row(Text("Note", "dim"), _shortened(warning, limits))
    more = len(report.hosts) - limits.files
    if more > 0:
        grid.add_row("", Text(f"and {more} more: see --verbose or --json", "dim"))
    for unread in report.unread[: limits.files]:
        grid.add_row(Text("Not read", "yellow"), _shortened(unread.reason, limits))
    if len(report.unread) > limits.files:
        left = len(report.unread) - limits.files
        grid.add_row("", Text(f"and {left} more could not be read", "yellow"))
    return grid


def _path(host: TraceHost, limits: TraceLimits) -> Text:
    """The end of a long path says more than its start."""
    facts = f"{_FORMAT[host.format]}, {number(host.events)} events, {milliseconds(host.span_ms)}"
    longest = limits.characters
    path = host.path if len(host.path) <= longest else "…" + host.path[1 - longest :]
    return Text(f"{path} ({facts})")


def _steps_of(host: TraceHost) -> str:
    if host.steps is None:
        return host.steps_missing or labels.NO_REASON
    steps = host.steps
    return (
        f"{number(steps.count)}, told by {labels.STEP_BASIS[steps.basis]}; median "
        f"{milliseconds(steps.median_ms)}, 95th percentile {milliseconds(steps.p95_ms)}: "
        + ", ".join(_largest_classes(steps))
    )


def _largest_classes(steps: TraceSteps) -> Iterator[str]:
    shares = sorted(steps.breakdown.items(), key=lambda item: -item[1].percent)
    for name, share in shares[:_CLASSES_SHOWN]:
        if share.percent >= _LEAST_PERCENT:
            yield f"{percent(share.percent)} {labels.step_class(name).lower()}"


def _table(devices: Sequence[DeviceActivity], limits: TraceLimits) -> RenderableType:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("Device", no_wrap=True, overflow="ellipsis")
    for heading in ("Span", "Busy", "Idle", "Longest"):
        table.add_column(heading, justify="right", no_wrap=True, min_width=_FIGURE_WIDTH)
    table.add_column("Mostly", no_wrap=True, overflow="ellipsis")
    for device in devices[: limits.rows]:
        table.add_row(
            Text(device_name(device)),
            milliseconds(device.span_ms),
            percent(device.busy_percent),
            percent(device.idle_percent),
            milliseconds(device.longest_gap_ms),
            Text(main_part(device) or ""),
        )
    if len(devices) > limits.rows:
        table.add_row(Text(f"and {len(devices) - limits.rows} more", "dim"))
    return table


def _findings(report: TraceReport, limits: TraceLimits) -> Iterator[RenderableType]:
    groups = findings.group(report)
    shown = [*groups.to_do, *groups.to_know, *groups.unsettled]
    if not shown:
        return
    yield Text()
    yield Text("Findings", "bold")
    for index, finding in enumerate(shown[: limits.findings], start=1):
        yield _finding(finding, index)
        if index <= limits.advised:
            yield _advice(finding, limits)
    if len(shown) > limits.findings:
        yield Text(f"   {len(shown) - limits.findings} more: see --verbose or --json", "dim")


def _finding(finding: Finding, index: int) -> Text:
    head = Text(f"{index:2}. ", no_wrap=True, overflow="ellipsis")
    head.append(finding.title, _FINDING_STYLE[finding.severity])
    gain = findings.gain(finding)
    if gain:
        head.append(f"  {gain}")
    return head


def _advice(finding: Finding, limits: TraceLimits) -> Table:
    grid = Table.grid()
    grid.add_column(width=4)
    grid.add_column()
    grid.add_row("", _shortened(finding.advice, limits, "dim"))
    return grid


def _pointers(written: Sequence[str]) -> RenderableType:
    if not written:
        return Text("With -o DIR: tables, JSON and a trace for ui.perfetto.dev", "dim")
    grid = Table.grid(padding=(0, 2))
    for index, line in enumerate(written):
        grid.add_row(Text("Written" if index == 0 else "", "dim"), Text(line))
    return grid


def _shortened(text: str, limits: TraceLimits, style: str = "") -> Text:
    text = " ".join(text.split())
    limit = limits.characters
    return Text(text if len(text) <= limit else text[: limit - 1].rstrip() + "…", style)
