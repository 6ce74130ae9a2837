"""A trace report on the terminal: steps, each device's idle time with its causes, what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from pipediag.reporters.terminal import (
    FINDING_STYLE,
    MAX_WIDTH,
    Encoded,
    ShareBar,
    facts,
    named_rows,
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
    DeviceGap,
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
_LONGEST_FIRST = 1_000
"""Characters of the first advice."""

_MOST = 3
"""Things of a kind that are shown; the files have all."""
_LONGEST = 240
"""Characters of a paragraph."""


def render(report: TraceReport, console: Console, *, written: Sequence[str]) -> None:
    """Print a trace report, with a line for each file that was written."""
    found = sorted(report.devices, key=_by_name)
    idlest = max(found, key=lambda device: device.idle_ms, default=None)
    shown: list[RenderableType] = [_headline(idlest), _profile(report)]
    if len(found) > 1:
        shown += [Text(), _table(found)]
    if idlest is not None:
        shown += [Text(), *_device(idlest)]
    shown += [Text(), *_findings(report), Text()]
    if written:
        shown.append(named_rows(("Written", Text(line)) for line in written))
    else:
        shown.append(Text("With -o DIR: tables, JSON and a trace for ui.perfetto.dev", "dim"))
    width = min(console.width, MAX_WIDTH)
    console.print(Encoded(Group(*shown)), width=width, highlight=False)


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


def _headline(device: DeviceActivity | None) -> Text:
    if device is None:
        return Text.assemble(("● No device activity in this profile. ", "cyan"), _NO_DEVICE)
    style = "green"
    unused = 100.0 - devices.compute_percent(device)
    if unused >= _MODERATE_PERCENT:
        style = "red" if unused >= _HIGH_PERCENT else "yellow"
    summary = devices.summary(device, _device_name(device))
    lead = prose(summary.lead, f"bold {style}")
    return Text.assemble(("● ", style), lead, unbroken(summary.rest))


def _profile(report: TraceReport) -> Table:
    grid = facts()
    for host in report.hosts[:_MOST]:
        grid.add_row(Text("Profile", "dim"), _path(host))
        rows = [("Steps", _steps_of(host)), *(("Note", one) for one in host.warnings[:1])]
        for name, text in rows:
            grid.add_row(Text(name, "dim"), shortened(text, _LONGEST))
    _add_rest(grid, len(report.hosts))
    for unread in report.unread[:_MOST]:
        grid.add_row(Text("Not read", "yellow"), shortened(unread.reason, _LONGEST))
    _add_rest(grid, len(report.unread))
    return grid


def _add_rest(table: Table, count: int) -> None:
    if count > _MOST:
        table.add_row("", Text(f"and {count - _MOST} more: see --json", "dim"))


def _path(host: TraceHost) -> Text:
    # The end of a long path says more than its start.
    about = f"{_FORMAT[host.format]}, {counted(host.events, 'event')}, {duration(host.span_ms)}"
    cut = len(host.path) > _LONGEST
    return Text(f"{'…' if cut else ''}{host.path[-_LONGEST:]} ({about})")


def _steps_of(host: TraceHost) -> str:
    steps = host.steps
    if steps is None:
        return host.steps_missing or labels.NO_REASON
    shares = sorted(steps.breakdown.items(), key=lambda item: -item[1].percent)
    largest = ", ".join(
        f"{percent(share.percent)} {labels.in_sentence(labels.name_of(labels.STEP_CLASS, name))}"
        for name, share in shares[:_CLASSES_SHOWN]
        if share.percent >= _LEAST_PERCENT
    )
    return (
        f"{steps.count:,}, found by {labels.STEP_BASIS[steps.basis]}; median "
        f"{duration(steps.median_ms)}, 95th percentile {duration(steps.p95_ms)}. {largest}"
    )


def _table(found: Sequence[DeviceActivity]) -> RenderableType:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("Device", no_wrap=True, overflow="ellipsis")
    for heading in ("Span", "Computes", "Idle", "Longest"):
        table.add_column(heading, justify="right", no_wrap=True, min_width=_FIGURE_WIDTH)
    table.add_column("Mostly", no_wrap=True, overflow="ellipsis")
    for device in found[:_MOST]:
        table.add_row(
            Text(_device_name(device)),
            duration(device.span_ms),
            percent(devices.compute_percent(device)),
            percent(device.idle_percent),
            duration(device.longest_gap_ms),
            Text(devices.main_part(device) or ""),
        )
    _add_rest(table, len(found))
    return table


def _device(device: DeviceActivity) -> Iterator[RenderableType]:
    """Yield what is known of one device: of copies, kernels and gaps a few."""
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
        yield _causes(device)
    rows = list(_facts(device))
    if rows:
        yield named_rows(rows)
    if device.gaps:
        left_out = device.gap_count > devices.GROUPED_GAPS
        yield Text(f"The {devices.GROUPED_GAPS} longest gaps" if left_out else "Gaps", "bold")
        yield _gaps(devices.gap_groups(device)[:_MOST])


def _causes(device: DeviceActivity) -> Table:
    table = Table.grid(padding=(0, 2))
    for no_wrap in (False, False, True, True):
        table.add_column(no_wrap=no_wrap)
    for part in devices.idle_parts(device):
        share = part.percent_of_idle
        cells = right(percent(share)), right(duration(part.ms))
        table.add_row("  " + part.label, ShareBar(share), *cells)
    return table


def _facts(device: DeviceActivity) -> Iterator[tuple[str, RenderableType]]:
    for copied in device.copies[:_MOST]:
        yield "Copies", prose(_copies(copied))
    if device.collective_ms:
        exposed = duration(device.exposed_collective_ms)
        yield "Collectives", prose(f"{duration(device.collective_ms)}, {exposed} of them exposed")
    if device.launches is not None:
        yield "Launches", prose(_launches(device.launches))
    if device.kernels:
        yield "Kernels", _kernels(device.kernels[:_MOST])


def _copies(copied: DeviceCopies) -> str:
    known = [
        labels.COPY_DIRECTION[copied.direction],
        duration(copied.ms),
        f"{duration(copied.exposed_ms)} exposed",
        f"{number(copied.count)}x",
    ]
    if copied.bytes is not None:
        known.append(byte_count(copied.bytes))
    if copied.gb_per_s is not None:
        known.append(f"{measured(copied.gb_per_s)}{NO_BREAK}GB/s")
    return " ".join(known)


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


def _gaps(groups: Iterable[Sequence[DeviceGap]]) -> Table:
    """Return one line for all gaps of one cause and place; a single one says when it was."""
    table = _expanded(2)
    table.add_column(no_wrap=True)
    for gaps in groups:
        whole_ms, first = sum(gap.duration_ms for gap in gaps), gaps[0]
        times, at = f"{number(len(gaps))} x ", f"{duration(whole_ms)} in all"
        place = devices.gap_place(first)
        if len(gaps) == 1:
            times, at = "", f"at {duration(first.start_ms)}"
            step = None if first.step is None else f"step {first.step}"
            place = ", ".join(filter(None, (place, step)))
        table.add_row(
            right(f"  {times}{duration(whole_ms / len(gaps))}"),
            Text(labels.name_of(labels.GAP_CAUSE, first.cause)),
            Text(place, "dim"),
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


def _findings(report: TraceReport) -> Iterator[RenderableType]:
    groups = advice.group(report)
    found = [*groups.to_do, *groups.to_know]
    if not found:
        yield _nothing_found(report)
        return
    yield Text("Findings", "bold")
    grid = facts(gap=1)
    for index, finding in enumerate(found[:_MOST], start=1):
        # The gain first, as a long title may be cut.
        gain = finding.speedup_at_most
        title = f"{'' if gain is None else f'at most {speedup(gain)}: '}{finding.title}"
        style = FINDING_STYLE[finding.severity]
        grid.add_row(f"{index:2}.", shortened(title, _LONGEST, style))
        longest = _LONGEST_FIRST if index == 1 else _LONGEST
        grid.add_row("", shortened(finding.advice, longest, "dim"))
    _add_rest(grid, len(found))
    yield grid


def _nothing_found(report: TraceReport) -> Text:
    text = "No rule found anything above its threshold"
    device = max(report.devices, key=lambda device: device.idle_ms, default=None)
    parts = devices.idle_parts(device) if device else []
    part = max(parts, key=lambda part: part.ms, default=None)
    if part is not None:
        cause = labels.in_sentence(part.label)
        text += f"; largest cause: {cause}, {percent(part.percent_of_span)}"
    return prose(text + ".")
