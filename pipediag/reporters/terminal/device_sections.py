"""One device on the terminal: why it was idle, its copies, launches, kernels and longest gaps."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from pipediag.reporters.terminal.encoded import prose
from pipediag.reporters.terminal.share_bar import ShareBar
from pipediag.reporters.terminal.trace_limits import TraceLimits
from pipediag.reporters.words import labels
from pipediag.reporters.words.device_summary import gap_counts
from pipediag.reporters.words.gap_groups import GROUPED_GAPS, gap_groups
from pipediag.reporters.words.idle_time import idle_parts
from pipediag.reporters.words.quantities import (
    NO_BREAK,
    byte_count,
    counted,
    duration,
    measured,
    microseconds,
    number,
    percent,
)
from pipediag.session.devices import (
    DeviceActivity,
    DeviceCopies,
    DeviceKernel,
    DeviceLaunches,
)

_LONGEST_HOST = 24
_COPY_COLUMNS = 6


def device_name(device: DeviceActivity) -> str:
    """With the host, where the profile has several."""
    if device.host is None:
        return device.name
    host = device.host
    shown = host if len(host) <= _LONGEST_HOST else host[: _LONGEST_HOST - 1] + "…"
    return f"{device.name} on {shown}"


def device_sections(device: DeviceActivity, limits: TraceLimits) -> Iterator[RenderableType]:
    """Everything about one device that fits the limits; what it does not have is left out."""
    yield _title(device)
    yield _paragraph(
        f"{_busy(device)} {duration(device.busy_ms)} of {duration(device.span_ms)} "
        f"({percent(device.busy_percent)}); idle {duration(device.idle_ms)} "
        f"({percent(device.idle_percent)}){gap_counts(device)}."
    )
    if device.idle_ms > 0:
        yield _causes(device, limits)
    facts = list(_facts(device, limits))
    if facts:
        grid = _grid()
        for name, text in facts:
            grid.add_row(Text(name, "dim"), text)
        yield grid
    if device.gaps and limits.gaps:
        yield Text(_gaps_title(device), "bold")
        yield _gaps(device, limits)


def _title(device: DeviceActivity) -> Text:
    title = Text(device_name(device), "bold", no_wrap=True, overflow="ellipsis")
    if device.kind == "cpu":
        title.append("  no accelerator: the executor's threads stand for the device", "default")
    elif device.model:
        title.append(f"  {device.model}", "default")
    return title


def _busy(device: DeviceActivity) -> str:
    return "Operations ran" if device.kind == "cpu" else "Busy"


def _causes(device: DeviceActivity, limits: TraceLimits) -> Table:
    """Bars are parts of the idle time; what is not shown is summed in the last row."""
    table = Table.grid(padding=(0, 2))
    for no_wrap in (False, False, True, True):
        table.add_column(no_wrap=no_wrap)
    parts = idle_parts(device)
    rows = [(part.label, part.ms, part.percent_of_idle) for part in parts[: limits.causes]]
    rest = parts[limits.causes :]
    if rest:
        ms, share = sum(part.ms for part in rest), sum(part.percent_of_idle for part in rest)
        rows.append(("Other causes", ms, share))
    for label, ms, share in rows:
        table.add_row(
            "  " + label,
            ShareBar(share),
            _right(percent(share)),
            _right(duration(ms)),
        )
    return table


def _facts(device: DeviceActivity, limits: TraceLimits) -> Iterator[tuple[str, RenderableType]]:
    if device.copies:
        yield "Copies", _copies(device.copies[: limits.copies])
    if device.collective_ms:
        yield (
            "Collectives",
            _paragraph(
                f"{duration(device.collective_ms)}, "
                f"{duration(device.exposed_collective_ms)} of them exposed"
            ),
        )
    if device.launches is not None:
        yield "Launches", _paragraph(_launches(device.launches))
    if device.kernels and limits.kernels:
        yield "Kernels", _kernels(device.kernels[: limits.kernels])


def _copies(copies: list[DeviceCopies]) -> Table:
    table = Table.grid(padding=(0, 1))
    for _ in range(_COPY_COLUMNS):
        table.add_column(no_wrap=True)
    for copied in copies:
        rate = "" if copied.gb_per_s is None else f"{measured(copied.gb_per_s)}{NO_BREAK}GB/s"
        table.add_row(
            Text(labels.COPY_DIRECTION[copied.direction]),
            _right(duration(copied.ms)),
            _right(f"{duration(copied.exposed_ms)} exposed"),
            _right(f"{number(copied.count)}x"),
            _right("" if copied.bytes is None else byte_count(copied.bytes)),
            _right(rate),
        )
    return table


def _kernels(kernels: list[DeviceKernel]) -> Table:
    table = Table.grid(padding=(0, 2), expand=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    for kernel in kernels:
        table.add_row(
            _right(duration(kernel.ms)),
            _right(f"{number(kernel.count)}x"),
            Text(kernel.name),
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


def _gaps(device: DeviceActivity, limits: TraceLimits) -> Table:
    """One line for all of one cause and place; a single one says when it was."""
    table = Table.grid(padding=(0, 2), expand=True)
    for _ in range(2):
        table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    table.add_column(no_wrap=True)
    for group in gap_groups(device)[: limits.gaps]:
        times = f"{number(group.count)} x " if group.count > 1 else ""
        at = (
            f"at {duration(group.start_ms)}" if group.count == 1 else f"{duration(group.ms)} in all"
        )
        table.add_row(
            _right(f"  {times}{duration(group.mean_ms)}"),
            Text(labels.gap_cause(group.cause)),
            Text(group.place, "dim"),
            Text(at, "dim", justify="right"),
        )
    return table


def _gaps_title(device: DeviceActivity) -> str:
    left_out = device.gap_count > GROUPED_GAPS
    return f"The {GROUPED_GAPS} longest gaps" if left_out else "Gaps"


def _grid() -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column()
    return grid


def _paragraph(text: str) -> Text:
    return Text(prose(text))


def _right(text: str) -> Text:
    return Text(text, justify="right")
