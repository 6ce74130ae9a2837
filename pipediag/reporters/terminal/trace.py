"""A trace report on the terminal: steps, each device's idle time with its causes, what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from pipediag.reporters.terminal.device_sections import device_name, device_sections
from pipediag.reporters.terminal.encoded import Encoded, held, prose, shortened
from pipediag.reporters.terminal.limits import MAX_LINES
from pipediag.reporters.terminal.trace_limits import SPARING, UNLIMITED, TraceLimits
from pipediag.reporters.words import findings, labels
from pipediag.reporters.words.device_summary import compute_percent, summary
from pipediag.reporters.words.idle_time import idle_parts, main_part
from pipediag.reporters.words.quantities import bind_units, counted, duration, percent
from pipediag.session.devices import DeviceActivity, TraceHost, TraceReport, TraceSteps
from pipediag.session.findings import Finding

_FINDING_STYLE = {"error": "red", "warn": "yellow", "info": "cyan"}
_FORMAT = {"xplane": "XPlane", "kineto": "Kineto"}
_MAX_WIDTH = 120
_MODERATE_PERCENT = 15.0
_HIGH_PERCENT = 40.0
"""Without computing; they only choose the colour of the first line."""
_NO_DEVICE = "Did the profiler reach the GPU (CUPTI, ROCm)? In PyTorch: activities=[CPU, CUDA]."
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
    devices = sorted(report.devices, key=_by_name)
    idlest = sorted(devices, key=lambda device: -device.idle_ms)[: limits.devices]
    yield _headline(idlest)
    yield _profile(report, limits)
    if len(devices) > 1:
        yield Text()
        yield _table(devices, limits)
    for device in sorted(idlest, key=_by_name):
        yield Text()
        yield from device_sections(device, limits)
    yield from _findings(report, limits)
    yield Text()
    yield _pointers(written)


def _by_name(device: DeviceActivity) -> tuple[str, list[str | int]]:
    """By host, and on each GPU:2 before GPU:10."""
    parts = re.split(r"(\d+)", device.name)
    return device.host or "", [int(part) if part.isdecimal() else part for part in parts]


def _headline(devices: list[DeviceActivity]) -> Text:
    if not devices:
        return Text.assemble(("● No device activity in this profile. ", "cyan"), _NO_DEVICE)
    device = devices[0]
    style = "green"
    unused = 100.0 - compute_percent(device)
    if unused >= _MODERATE_PERCENT:
        style = "red" if unused >= _HIGH_PERCENT else "yellow"
    said = summary(device, device_name(device))
    return Text.assemble(("● ", style), (prose(said.lead), f"bold {style}"), held(said.rest))


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
    if clocks := _clocks(report):
        grid.add_row(Text("Clocks", "dim"), _shortened(clocks, limits))
    for unread in report.unread[: limits.files]:
        grid.add_row(Text("Not read", "yellow"), _shortened(unread.reason, limits))
    if len(report.unread) > limits.files:
        left = len(report.unread) - limits.files
        grid.add_row("", Text(f"and {left} more could not be read", "yellow"))
    return grid


def _clocks(report: TraceReport) -> str | None:
    """Of several hosts: which begins its steps last, or why that is not known."""
    late = {
        host.host: host.steps_late_ms for host in report.hosts if host.steps_late_ms is not None
    }
    if not late:
        return report.steps_late_missing
    last = max(late, key=lambda host: late[host])
    return f"{last} begins its steps last, {duration(late[last])} after the first, by its own clock"


def _path(host: TraceHost, limits: TraceLimits) -> Text:
    """The end of a long path says more than its start."""
    facts = f"{_FORMAT[host.format]}, {counted(host.events, 'event')}, {duration(host.span_ms)}"
    longest = limits.characters
    path = host.path if len(host.path) <= longest else "…" + host.path[1 - longest :]
    return Text(f"{path} ({facts})")


def _steps_of(host: TraceHost) -> str:
    if host.steps is None:
        return host.steps_missing or labels.NO_REASON
    steps = host.steps
    return (
        f"{steps.count:,}, told by {labels.STEP_BASIS[steps.basis]}; median "
        f"{duration(steps.median_ms)}, 95th percentile {duration(steps.p95_ms)}. "
        + ", ".join(_largest_classes(steps))
    )


def _largest_classes(steps: TraceSteps) -> Iterator[str]:
    shares = sorted(steps.breakdown.items(), key=lambda item: -item[1].percent)
    for name, share in shares[:_CLASSES_SHOWN]:
        if share.percent >= _LEAST_PERCENT:
            yield f"{percent(share.percent)} {labels.in_sentence(labels.step_class(name))}"


def _table(devices: Sequence[DeviceActivity], limits: TraceLimits) -> RenderableType:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("Device", no_wrap=True, overflow="ellipsis")
    for heading in ("Span", "Computes", "Idle", "Longest"):
        table.add_column(heading, justify="right", no_wrap=True, min_width=_FIGURE_WIDTH)
    table.add_column("Mostly", no_wrap=True, overflow="ellipsis")
    for device in devices[: limits.rows]:
        table.add_row(
            Text(device_name(device)),
            duration(device.span_ms),
            percent(compute_percent(device)),
            percent(device.idle_percent),
            duration(device.longest_gap_ms),
            Text(main_part(device) or ""),
        )
    if len(devices) > limits.rows:
        table.add_row(Text(f"and {len(devices) - limits.rows} more", "dim"))
    return table


def _findings(report: TraceReport, limits: TraceLimits) -> Iterator[RenderableType]:
    groups = findings.group(report)
    shown = [*groups.to_do, *groups.to_know]
    if limits.unsettled:
        shown += groups.unsettled
    yield Text()
    if not shown:
        yield _nothing_found(report)
        return
    yield Text("Findings", "bold")
    for index, finding in enumerate(shown[: limits.findings], start=1):
        yield _finding(finding, index, limits)
        if index <= limits.advised:
            most = limits.first_advice if index == 1 else limits.characters
            yield _indented("", finding.advice, most, "dim")
    if len(shown) > limits.findings:
        yield Text(f"   {len(shown) - limits.findings} more: see --verbose or --json", "dim")


def _nothing_found(report: TraceReport) -> Text:
    text = "No rule found anything above its threshold"
    device = max(report.devices, key=lambda device: device.idle_ms, default=None)
    part = max(idle_parts(device), key=lambda part: part.ms, default=None) if device else None
    if part is not None:
        text += (
            f"; largest cause: {labels.in_sentence(part.label)}, {percent(part.percent_of_span)}"
        )
    return Text(prose(text + "."))


def _finding(finding: Finding, index: int, limits: TraceLimits) -> Table:
    """The gain first, as a long title may be cut; a profile has no trials to speak of."""
    gain = findings.at_most(finding)
    title = f"{gain}: {finding.title}" if gain else finding.title
    style = _FINDING_STYLE[finding.severity]
    return _indented(f"{index:2}.", title, limits.characters, style)


def _indented(mark: str, text: str, most: int, style: str) -> Table:
    grid = Table.grid()
    grid.add_column(width=4)
    grid.add_column()
    grid.add_row(mark, Text(prose(bind_units(shortened(text, most))), style))
    return grid


def _pointers(written: Sequence[str]) -> RenderableType:
    if not written:
        return Text("With -o DIR: tables, JSON and a trace for ui.perfetto.dev", "dim")
    grid = Table.grid(padding=(0, 2))
    for index, line in enumerate(written):
        grid.add_row(Text("Written" if index == 0 else "", "dim"), Text(line))
    return grid


def _shortened(text: str, limits: TraceLimits, style: str = "") -> Text:
    return Text(prose(shortened(text, limits.characters)), style)
