"""A trace report on the terminal: steps, each device's idle time with its causes, what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from pipediag.reporters.terminal import (
    FINDING_STYLE,
    ShareBar,
    facts,
    print_fitting,
    prose,
    right,
    shortened,
    unbroken,
)
from pipediag.reporters.words import advice, devices, labels
from pipediag.reporters.words.quantities import (
    NO_BREAK,
    byte_count,
    counted,
    duration,
    measured,
    microseconds,
    number,
    percent,
    speedup,
)
from pipediag.session.devices import (
    DeviceActivity,
    DeviceCopies,
    DeviceKernel,
    DeviceLaunches,
    TraceHost,
    TraceReport,
)

_FORMAT = {"xplane": "XPlane", "kineto": "Kineto"}
_MODERATE_PERCENT = 15.0
_HIGH_PERCENT = 40.0
"""Shares without computing; they only choose the colour of the first line."""
_NO_DEVICE = "Did the profiler reach the GPU (CUPTI, ROCm)? In PyTorch: activities=[CPU, CUDA]."
_CLASSES_SHOWN = 4
_LEAST_PERCENT = 0.05
_FIGURE_WIDTH = 7
_LONGEST_HOST = 24


class Limits(NamedTuple):
    """Amounts of a trace report that are shown."""

    files: int
    devices: int
    """Shown in full: those with most idle time, in order of their names."""
    rows: int
    """Devices in the table where there are several."""
    causes: int
    copies: int
    """Directions of copies."""
    kernels: int
    gaps: int
    findings: int
    advised: int
    """Findings that show their advice."""
    first_advice: int
    """Characters of the first finding's advice; kernels and gaps go before it is cut."""
    characters: int
    """Characters of any other paragraph."""


UNLIMITED = Limits(1000, 1000, 1000, 20, 20, 20, 100, 1000, 1000, 10_000, 10_000)
SPARING = (
    Limits(4, 2, 8, 10, 6, 5, 6, 5, 3, 1000, 240),
    Limits(3, 1, 8, 10, 6, 3, 5, 4, 3, 1000, 240),
    Limits(3, 1, 8, 10, 6, 2, 3, 4, 1, 1000, 240),
    Limits(2, 1, 6, 6, 4, 1, 2, 4, 1, 1000, 240),
    Limits(2, 1, 6, 6, 4, 0, 1, 3, 1, 500, 150),
    Limits(1, 1, 2, 3, 2, 1, 2, 2, 1, 150, 62),
    Limits(1, 1, 2, 3, 2, 0, 1, 2, 0, 150, 62),
)
"""Less and less, tried in turn; the last one fits any report at 80 columns."""


def render(
    report: TraceReport, console: Console, *, written: Sequence[str], verbose: bool = False
) -> None:
    """Print a trace report: under 40 lines, unless `verbose`.

    Args:
        report: what was found.
        console: where to.
        written: a line for each file that was written; none where nothing was.
        verbose: shows every device, and more of their kernels and gaps.
    """
    all_limits = (UNLIMITED,) if verbose else SPARING
    print_fitting(console, (_sections(report, written, limits) for limits in all_limits))


def _sections(
    report: TraceReport, written: Sequence[str], limits: Limits
) -> Iterator[RenderableType]:
    found = sorted(report.devices, key=_by_name)
    idlest = sorted(found, key=lambda device: -device.idle_ms)[: limits.devices]
    yield _headline(idlest)
    yield _profile(report, limits)
    if len(found) > 1:
        yield Text()
        yield _table(found, limits)
    for device in sorted(idlest, key=_by_name):
        yield Text()
        yield from _device(device, limits)
    yield from _findings(report, limits)
    yield Text()
    if not written:
        yield Text("With -o DIR: tables, JSON and a trace for ui.perfetto.dev", "dim")
    else:
        yield _rows(
            ("Written" if index == 0 else "", Text(line)) for index, line in enumerate(written)
        )


def _by_name(device: DeviceActivity) -> tuple[str, list[str | int]]:
    """Return a key by host, and on each GPU:2 before GPU:10."""
    parts = re.split(r"(\d+)", device.name)
    return device.host or "", [int(part) if part.isdecimal() else part for part in parts]


def _device_name(device: DeviceActivity) -> str:
    if device.host is None:
        return device.name
    host = device.host
    shown = host if len(host) <= _LONGEST_HOST else host[: _LONGEST_HOST - 1] + "…"
    return f"{device.name} on {shown}"


def _headline(idlest: list[DeviceActivity]) -> Text:
    if not idlest:
        return Text.assemble(("● No device activity in this profile. ", "cyan"), _NO_DEVICE)
    device = idlest[0]
    style = "green"
    unused = 100.0 - devices.compute_percent(device)
    if unused >= _MODERATE_PERCENT:
        style = "red" if unused >= _HIGH_PERCENT else "yellow"
    summary = devices.summary(device, _device_name(device))
    lead = prose(summary.lead, f"bold {style}")
    return Text.assemble(("● ", style), lead, unbroken(summary.rest))


def _profile(report: TraceReport, limits: Limits) -> Table:
    """Return the files with their steps; those that could not be read with the reason."""
    most = limits.characters
    grid = facts()
    for host in report.hosts[: limits.files]:
        grid.add_row(Text("Profile", "dim"), _path(host, most))
        grid.add_row(Text("Steps", "dim"), shortened(_steps_of(host), most))
        for warning in host.warnings[:1]:
            grid.add_row(Text("Note", "dim"), shortened(warning, most))
    more = len(report.hosts) - limits.files
    if more > 0:
        grid.add_row("", Text(f"and {more} more: see --verbose or --json", "dim"))
    if clocks := _clocks(report):
        grid.add_row(Text("Clocks", "dim"), shortened(clocks, most))
    for unread in report.unread[: limits.files]:
        grid.add_row(Text("Not read", "yellow"), shortened(unread.reason, most))
    left = len(report.unread) - limits.files
    if left > 0:
        grid.add_row("", Text(f"and {left} more could not be read", "yellow"))
    return grid


def _clocks(report: TraceReport) -> str | None:
    """Return which of several hosts begins its steps last, or why that is not known."""
    late = {
        host.host: host.steps_late_ms for host in report.hosts if host.steps_late_ms is not None
    }
    if not late:
        return report.steps_late_missing
    last = max(late, key=lambda host: late[host])
    return f"{last} begins its steps last, {duration(late[last])} after the first, by its own clock"


def _path(host: TraceHost, longest: int) -> Text:
    # The end of a long path says more than its start.
    about = f"{_FORMAT[host.format]}, {counted(host.events, 'event')}, {duration(host.span_ms)}"
    path = host.path if len(host.path) <= longest else "…" + host.path[1 - longest :]
    return Text(f"{path} ({about})")


def _steps_of(host: TraceHost) -> str:
    steps = host.steps
    if steps is None:
        return host.steps_missing or labels.NO_REASON
    shares = sorted(steps.breakdown.items(), key=lambda item: -item[1].percent)
    largest = ", ".join(
        f"{percent(share.percent)} {labels.in_sentence(labels.step_class(name))}"
        for name, share in shares[:_CLASSES_SHOWN]
        if share.percent >= _LEAST_PERCENT
    )
    return (
        f"{steps.count:,}, found by {labels.STEP_BASIS[steps.basis]}; median "
        f"{duration(steps.median_ms)}, 95th percentile {duration(steps.p95_ms)}. {largest}"
    )


def _table(found: Sequence[DeviceActivity], limits: Limits) -> RenderableType:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("Device", no_wrap=True, overflow="ellipsis")
    for heading in ("Span", "Computes", "Idle", "Longest"):
        table.add_column(heading, justify="right", no_wrap=True, min_width=_FIGURE_WIDTH)
    table.add_column("Mostly", no_wrap=True, overflow="ellipsis")
    for device in found[: limits.rows]:
        table.add_row(
            Text(_device_name(device)),
            duration(device.span_ms),
            percent(devices.compute_percent(device)),
            percent(device.idle_percent),
            duration(device.longest_gap_ms),
            Text(devices.main_part(device) or ""),
        )
    if len(found) > limits.rows:
        table.add_row(Text(f"and {len(found) - limits.rows} more", "dim"))
    return table


def _device(device: DeviceActivity, limits: Limits) -> Iterator[RenderableType]:
    """Yield what is known of one device and fits the limits."""
    title = Text(_device_name(device), "bold", no_wrap=True, overflow="ellipsis")
    if device.kind == "cpu":
        title.append("  no accelerator: the executor's threads stand for the device", "default")
    elif device.model:
        title.append(f"  {device.model}", "default")
    yield title
    busy = "Operations ran" if device.kind == "cpu" else "Busy"
    yield prose(
        f"{busy} {duration(device.busy_ms)} of {duration(device.span_ms)} "
        f"({percent(device.busy_percent)}); idle {duration(device.idle_ms)} "
        f"({percent(device.idle_percent)}){devices.gap_counts(device)}."
    )
    if device.idle_ms > 0:
        yield _causes(device, limits)
    rows = list(_facts(device, limits))
    if rows:
        yield _rows(rows)
    if device.gaps and limits.gaps:
        left_out = device.gap_count > devices.GROUPED_GAPS
        yield Text(f"The {devices.GROUPED_GAPS} longest gaps" if left_out else "Gaps", "bold")
        yield _gaps(device, limits)


def _causes(device: DeviceActivity, limits: Limits) -> Table:
    """Return the parts of the idle time; what is not shown is summed in the last row."""
    parts = devices.idle_parts(device)
    rows = [(part.label, part.ms, part.percent_of_idle) for part in parts[: limits.causes]]
    rest = parts[limits.causes :]
    if rest:
        ms, share = sum(part.ms for part in rest), sum(part.percent_of_idle for part in rest)
        rows.append(("Other causes", ms, share))
    table = Table.grid(padding=(0, 2))
    for no_wrap in (False, False, True, True):
        table.add_column(no_wrap=no_wrap)
    for label, ms, share in rows:
        table.add_row("  " + label, ShareBar(share), right(percent(share)), right(duration(ms)))
    return table


def _facts(device: DeviceActivity, limits: Limits) -> Iterator[tuple[str, RenderableType]]:
    if device.copies:
        yield "Copies", _copies(device.copies[: limits.copies])
    if device.collective_ms:
        exposed = duration(device.exposed_collective_ms)
        yield "Collectives", prose(f"{duration(device.collective_ms)}, {exposed} of them exposed")
    if device.launches is not None:
        yield "Launches", prose(_launches(device.launches))
    if device.kernels and limits.kernels:
        yield "Kernels", _kernels(device.kernels[: limits.kernels])


def _copies(copies: list[DeviceCopies]) -> Table:
    table = Table.grid(padding=(0, 1))
    for copied in copies:
        rate = "" if copied.gb_per_s is None else f"{measured(copied.gb_per_s)}{NO_BREAK}GB/s"
        table.add_row(
            Text(labels.COPY_DIRECTION[copied.direction]),
            right(duration(copied.ms)),
            right(f"{duration(copied.exposed_ms)} exposed"),
            right(f"{number(copied.count)}x"),
            right("" if copied.bytes is None else byte_count(copied.bytes)),
            right(rate),
        )
    for column in table.columns:
        column.no_wrap = True
    return table


def _kernels(kernels: list[DeviceKernel]) -> Table:
    table = _expanded(2)
    for kernel in kernels:
        table.add_row(
            right(duration(kernel.ms)), right(f"{number(kernel.count)}x"), Text(kernel.name)
        )
    return table


def _launches(launches: DeviceLaunches) -> str:
    text = (
        f"{counted(launches.kernels, 'kernel')}, {measured(launches.per_s)} per second; "
        f"median kernel {microseconds(launches.median_kernel_us)}"
    )
    if launches.median_launch_us is not None:
        text += f", median launch call {microseconds(launches.median_launch_us)}"
    if launches.shorter_than_launch_percent is not None:
        text += f"; {percent(launches.shorter_than_launch_percent)} shorter than their launch"
    return text


def _gaps(device: DeviceActivity, limits: Limits) -> Table:
    """Return one line for all gaps of one cause and place; a single one says when it was."""
    table = _expanded(2)
    table.add_column(no_wrap=True)
    for group in devices.gap_groups(device)[: limits.gaps]:
        several = group.count > 1
        times = f"{number(group.count)} x " if several else ""
        at = f"{duration(group.ms)} in all" if several else f"at {duration(group.start_ms)}"
        table.add_row(
            right(f"  {times}{duration(group.ms / group.count)}"),
            Text(labels.gap_cause(group.cause)),
            Text(group.place, "dim"),
            Text(at, "dim", justify="right"),
        )
    return table


def _expanded(columns: int) -> Table:
    """Return a grid as wide as the terminal, whose column behind the first ones may be cut."""
    table = Table.grid(padding=(0, 2), expand=True)
    for _ in range(columns):
        table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    return table


def _rows(rows: Iterable[tuple[str, RenderableType]]) -> Table:
    grid = facts()
    for name, shown in rows:
        grid.add_row(Text(name, "dim"), shown)
    return grid


def _findings(report: TraceReport, limits: Limits) -> Iterator[RenderableType]:
    groups = advice.group(report)
    found = [*groups.to_do, *groups.to_know]
    if limits is UNLIMITED:
        found += groups.unsettled
    yield Text()
    if not found:
        yield _nothing_found(report)
        return
    yield Text("Findings", "bold")
    for index, finding in enumerate(found[: limits.findings], start=1):
        # The gain first, as a long title may be cut.
        most = finding.speedup_at_most
        bound = "" if most is None else f"at most {speedup(most)}: "
        title, style = bound + finding.title, FINDING_STYLE[finding.severity]
        yield _indented(f"{index:2}.", shortened(title, limits.characters, style))
        if index <= limits.advised:
            longest = limits.first_advice if index == 1 else limits.characters
            yield _indented("", shortened(finding.advice, longest, "dim"))
    if len(found) > limits.findings:
        yield Text(f"   {len(found) - limits.findings} more: see --verbose or --json", "dim")


def _nothing_found(report: TraceReport) -> Text:
    text = "No rule found anything above its threshold"
    device = max(report.devices, key=lambda device: device.idle_ms, default=None)
    parts = devices.idle_parts(device) if device else []
    part = max(parts, key=lambda part: part.ms, default=None)
    if part is not None:
        cause = labels.in_sentence(part.label)
        text += f"; largest cause: {cause}, {percent(part.percent_of_span)}"
    return prose(text + ".")


def _indented(mark: str, text: Text) -> Table:
    grid = Table.grid()
    grid.add_column(width=4)
    grid.add_column()
    grid.add_row(mark, text)
    return grid
