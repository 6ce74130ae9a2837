"""One device on the terminal: why it was idle, its copies, launches, kernels and longest gaps."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from pipediag.reporters import labels
from pipediag.reporters.idle_time import idle_parts, longest_gaps, shown_iterator
from pipediag.reporters.quantities import (
    NO_BREAK,
    byte_count,
    measured,
    microseconds,
    milliseconds,
    number,
    percent,
)
from pipediag.reporters.trace_limits import TraceLimits
from pipediag.session.devices import (
    DeviceActivity,
    DeviceCopies,
    DeviceGap,
    DeviceKernel,
    DeviceLaunches,
)

_BAR_CELLS = 20
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
        f"Busy {milliseconds(device.busy_ms)} of {milliseconds(device.span_ms)} "
        f"({percent(device.busy_percent)}); idle {milliseconds(device.idle_ms)} "
        f"({percent(device.idle_percent)}){_gap_count(device)}."
    )
    if device.idle_ms > 0:
        yield _causes(device, limits)
    facts = list(_facts(device, limits))
    if facts:
        grid = _grid()
        for name, text in facts:
            grid.add_row(Text(name, "dim"), text)
        yield grid
    if device.gaps:
        yield Text("Longest gaps", "bold")
        yield _gaps(device, limits)


def _title(device: DeviceActivity) -> Text:
    title = Text(device_name(device), "bold", no_wrap=True, overflow="ellipsis")
    if device.kind == "cpu":
        title.append("  no accelerator: the executor's threads stand for the device", "default")
    elif device.model:
        title.append(f"  {device.model}", "default")
    return title


def _gap_count(device: DeviceActivity) -> str:
    if not device.gap_count:
        return ""
    gaps = "one gap" if device.gap_count == 1 else f"{number(device.gap_count)} gaps"
    return f" in {gaps}, the longest {milliseconds(device.longest_gap_ms)}"


def _causes(device: DeviceActivity, limits: TraceLimits) -> Table:
    """Bars are parts of the idle time; what is not shown is summed in the last row."""
    table = Table.grid(padding=(0, 2))
    parts = idle_parts(device)
    rows = [(part.label, part.ms, part.percent_of_idle) for part in parts[: limits.causes]]
    rest = parts[limits.causes :]
    if rest:
        ms, share = sum(part.ms for part in rest), sum(part.percent_of_idle for part in rest)
        rows.append(("Other causes", ms, share))
    for label, ms, share in rows:
        cells = min(_BAR_CELLS, round(share / 100 * _BAR_CELLS))
        table.add_row(
            "  " + label,
            Text.assemble("█" * cells, ("·" * (_BAR_CELLS - cells), "dim")),
            _right(percent(share)),
            _right(milliseconds(ms)),
        )
    return table


def _facts(device: DeviceActivity, limits: TraceLimits) -> Iterator[tuple[str, RenderableType]]:
    if device.copies:
        yield "Copies", _copies(device.copies[: limits.copies])
    if device.collective_ms:
        yield (
            "Collectives",
            _paragraph(
                f"{milliseconds(device.collective_ms)}, "
                f"{milliseconds(device.exposed_collective_ms)} of them exposed"
            ),
        )
    if device.launches is not None:
        yield "Launches", _paragraph(_launches(device.launches))
    if device.kernels:
        yield "Kernels", _kernels(device.kernels[: limits.kernels])


def _copies(copies: list[DeviceCopies]) -> Table:
    table = Table.grid(padding=(0, 1))
    for _ in range(_COPY_COLUMNS):
        table.add_column(no_wrap=True)
    for copied in copies:
        rate = "" if copied.gb_per_s is None else f"{measured(copied.gb_per_s)}{NO_BREAK}GB/s"
        table.add_row(
            Text(labels.COPY_DIRECTION[copied.direction]),
            _right(milliseconds(copied.ms)),
            _right(f"{milliseconds(copied.exposed_ms)} exposed"),
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
            _right(milliseconds(kernel.ms)),
            _right(f"{number(kernel.count)}x"),
            Text(kernel.name),
        )
    return table


def _launches(launches: DeviceLaunches) -> str:
    text = (
        f"{number(launches.kernels)} kernels, {measured(launches.per_s)} per second; "
        f"median {microseconds(launches.median_kernel_us)}"
    )
    if launches.median_launch_us is not None:
        text += f", its launch {microseconds(launches.median_launch_us)}"
    if launches.shorter_than_launch_percent is not None:
        text += f"; {percent(launches.shorter_than_launch_percent)} shorter than their launch"
    return text


def _gaps(device: DeviceActivity, limits: TraceLimits) -> Table:
    table = Table.grid(padding=(0, 2), expand=True)
    for _ in range(3):
        table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    for gap in longest_gaps(device, limits.gaps):
        table.add_row(
            _right(f"  {milliseconds(gap.duration_ms)}"),
            Text(f"at {milliseconds(gap.start_ms)}", "dim", justify="right"),
            Text(labels.gap_cause(gap.cause)),
            Text(", ".join(_where(gap)), "dim"),
        )
    return table


def _where(gap: DeviceGap) -> Iterator[str]:
    """The most telling first: the end of the line may be cut off."""
    if gap.file is not None:
        yield gap.file if gap.line is None else f"{gap.file}:{gap.line}"
    if gap.iterator is not None:
        yield shown_iterator(gap.iterator)
    elif gap.doing is not None:
        yield f"in {gap.doing}"
    if gap.step is not None:
        yield f"step {gap.step}"


def _grid() -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column()
    return grid


def _paragraph(text: str) -> Text:
    return Text(" ".join(text.split()))


def _right(text: str) -> Text:
    return Text(text, justify="right")
