"""A trace report on the terminal: steps, each device's idle time with its causes, what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from pipediag.facts.devices import full_name
from pipediag.facts.names import STEP_CLASS, in_sentence
from pipediag.reporters.terminal import (
    MAX_WIDTH,
    Encoded,
    facts,
    named_rows,
    prose,
    right,
    shortened,
    unbroken,
)
from pipediag.reporters.words import advice, devices, labels
from pipediag.reporters.words.quantities import counted, duration, number, percent, speedup
from pipediag.session.devices import DeviceActivity, DeviceGap, TraceHost, TraceReport
from pipediag.trace import ON_TPU

_FORMAT = {"xplane": "XPlane", "kineto": "Kineto"}
_FINDING_STYLE = {"error": "red", "warn": "yellow", "info": "cyan"}
_NO_DEVICE = "Did the profiler reach the GPU (CUPTI, ROCm)? In PyTorch: activities=[CPU, CUDA]."
_CLASSES_SHOWN = 4
_LEAST_PERCENT = 0.05
_BAR_CELLS = 20
_LONGEST_ADVICE = 600
_MOST = 3
"""Things of a kind that are shown; the files have all."""
_LONGEST = 240
"""Characters of a paragraph."""


def render(report: TraceReport, console: Console, *, written: Sequence[str]) -> None:
    """Print a trace report, with a line for each file that was written."""
    found = sorted(report.devices, key=lambda one: (one.host or "", len(one.name), one.name))
    idlest = max(found, key=lambda device: device.idle_ms, default=None)
    shown: list[RenderableType] = [_headline(idlest, report), _profile(report)]
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


def _headline(device: DeviceActivity | None, report: TraceReport) -> Text:
    if device is None:
        if any(ON_TPU in host.warnings for host in report.hosts):
            return Text(f"● {ON_TPU}", "cyan")
        return Text.assemble(("● No device activity in this profile. ", "cyan"), _NO_DEVICE)
    lead, rest = devices.summary(device, full_name(device))
    return Text.assemble(prose(f"● {lead}", "bold"), unbroken(rest))


def _profile(report: TraceReport) -> Table:
    grid = facts()
    for host in report.hosts[:_MOST]:
        # Devices may have been at work before the first step, and after the last one.
        over = f"{'steps over ' if host.steps else ''}{duration(host.span_ms)}"
        about = f"{_FORMAT[host.format]}, {counted(host.events, 'event')}, {over}"
        # The end of a long path says more than its start.
        cut = "…" if len(host.path) > _LONGEST else ""
        grid.add_row(Text("Profile", "dim"), Text(f"{cut}{host.path[-_LONGEST:]} ({about})"))
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


def _steps_of(host: TraceHost) -> str:
    steps = host.steps
    if steps is None:
        return host.steps_missing or labels.NO_REASON
    shares = sorted(steps.breakdown.items(), key=lambda item: -item[1].percent)
    largest = ", ".join(
        f"{percent(share.percent)} {in_sentence(STEP_CLASS[name])}"
        for name, share in shares[:_CLASSES_SHOWN]
        if share.percent >= _LEAST_PERCENT
    )
    return (
        f"{steps.count:,}, found by {labels.STEP_BASIS[steps.basis]}; median "
        f"{duration(steps.median_ms)}, 95th percentile {duration(steps.p95_ms)}. {largest}"
    )


def _table(found: Sequence[DeviceActivity]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("Device", no_wrap=True, overflow="ellipsis")
    for heading in ("Span", "Computes", "Idle", "Longest"):
        table.add_column(heading, justify="right", no_wrap=True, min_width=7)
    table.add_column("Mostly", no_wrap=True, overflow="ellipsis")
    for device in found[:_MOST]:
        table.add_row(
            Text(full_name(device)),
            duration(device.span_ms),
            percent(devices.compute_percent(device)),
            percent(device.idle_percent),
            duration(device.longest_gap_ms),
            Text(devices.main_part(device) or ""),
        )
    _add_rest(table, len(found))
    return table


def _device(device: DeviceActivity) -> Iterator[RenderableType]:
    """Yield what is known of one device: of kernels and gaps a few."""
    title = Text(full_name(device), "bold", no_wrap=True, overflow="ellipsis")
    if device.model:
        title.append(f"  {device.model}", "default")
    yield title
    busy = "Operations ran" if device.kind == "cpu" else "Busy"
    yield prose(
        f"{busy} {duration(device.busy_ms)} of {duration(device.span_ms)} "
        f"({percent(device.busy_percent)}); idle {duration(device.idle_ms)} "
        f"({percent(device.idle_percent)}){devices.gap_counts(device)}."
    )
    causes = Table.grid(padding=(0, 2))
    for part in devices.idle_parts(device):
        filled = min(_BAR_CELLS, max(0, round(part.percent_of_idle / 100 * _BAR_CELLS)))
        bar = Text.assemble("█" * filled, ("·" * (_BAR_CELLS - filled), "dim"))
        figures = right(percent(part.percent_of_idle)), right(duration(part.ms))
        causes.add_row(f"  {part.label}", bar, *figures)
    if causes.row_count:
        yield causes
    if device.kernels:
        yield Text("Kernels", "bold")
        kernels = _grid()
        for kernel in device.kernels[:_MOST]:
            amounts = right(f"  {duration(kernel.ms)}"), right(f"{number(kernel.count)}x")
            kernels.add_row(*amounts, Text(kernel.name))
        yield kernels
    if device.gaps:
        left_out = device.gap_count > devices.GROUPED_GAPS
        yield Text(f"The {devices.GROUPED_GAPS} longest gaps" if left_out else "Gaps", "bold")
        gaps = _grid()
        gaps.add_column(no_wrap=True)
        for group in devices.gap_groups(device)[:_MOST]:
            gaps.add_row(*_gaps(group))
        yield gaps


def _gaps(gaps: Sequence[DeviceGap]) -> Iterator[Text]:
    """Yield the cells for all gaps of one cause and place."""
    whole_ms, first = sum(gap.duration_ms for gap in gaps), gaps[0]
    yield right(f"  {number(len(gaps))} x {duration(whole_ms / len(gaps))}")
    yield Text(labels.GAP_CAUSE[first.cause])
    yield Text(devices.gap_place(first), "dim")
    yield Text(f"{duration(whole_ms)} in all", "dim", justify="right")


def _grid() -> Table:
    """Return a grid with two columns, and one as wide as is left, which may be cut."""
    table = Table.grid(padding=(0, 2), expand=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    return table


def _findings(report: TraceReport) -> Iterator[RenderableType]:
    groups = advice.group(report)
    found = [*groups.to_do, *groups.to_know]
    if not found:
        yield Text("No rule found anything above its threshold.")
        return
    yield Text("Findings", "bold")
    grid = facts(gap=1)
    for index, finding in enumerate(found[:_MOST], start=1):
        # The gain first, as a long title may be cut.
        gain = finding.speedup_at_most
        title = f"{'' if gain is None else f'at most {speedup(gain)}: '}{finding.title}"
        style = _FINDING_STYLE[finding.severity]
        grid.add_row(f"{index:2}.", shortened(title, _LONGEST, style))
        grid.add_row("", shortened(finding.advice, _LONGEST_ADVICE, "dim"))
    _add_rest(grid, len(found))
    yield grid
