"""Devices and their idle gaps as rows of tables, of a session or of any profile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pipediag.session.devices import DeviceActivity, DeviceCopies
from pipediag.session.record import Record
from pipediag.vocabulary import COPY_DIRECTIONS, GAP_CAUSES, Scalar

Row = Mapping[str, Scalar]


GAP_COLUMNS = (
    "device",
    "device_kind",
    "start_ms",
    "duration_ms",
    "cause",
    "op_id",
    "file",
    "line",
    "iterator",
    "buffered_elements",
    "doing",
    "step",
    "host",
    *(f"{cause}_ms" for cause in GAP_CAUSES),
)

_ACTIVITY = (
    "name",
    "kind",
    "host",
    "model",
    "span_ms",
    "busy_ms",
    "idle_ms",
    "busy_percent",
    "idle_percent",
    "longest_gap_ms",
    "gap_count",
    "noise_ms",
    "gap_floor_us",
)
_OVERLAP = (
    "compute_ms",
    "copy_ms",
    "exposed_copy_ms",
    "collective_ms",
    "exposed_collective_ms",
    "matmul_ms",
    "tensor_core_ms",
)
_LAUNCHES = {
    "kernels": "kernels",
    "per_s": "kernels_per_s",
    "matched": "kernels_with_launch",
    "median_kernel_us": "median_kernel_us",
    "median_launch_us": "median_launch_us",
    "shorter_than_launch_percent": "shorter_than_launch_percent",
    "median_delay_us": "median_launch_delay_us",
}
_COPIES = {
    "count": "copies",
    "ms": "copy_ms",
    "exposed_ms": "exposed_copy_ms",
    "bytes": "copied_bytes",
    "gb_per_s": "copied_gb_per_s",
}

DEVICE_COLUMNS = (
    *_ACTIVITY,
    *(f"idle_{cause}_ms" for cause in GAP_CAUSES),
    *_OVERLAP,
    *_LAUNCHES.values(),
    *(f"{direction}_{column}" for direction in COPY_DIRECTIONS for column in _COPIES.values()),
)


def gap_rows(devices: Sequence[DeviceActivity]) -> Iterator[Row]:
    """One row a gap; what is not known stays empty."""
    for device in devices:
        for gap in device.gaps:
            yield {
                "device": device.name,
                "device_kind": device.kind,
                "host": device.host,
                **gap.model_dump(exclude={"causes_ms"}),
                **_by_cause(gap.causes_ms, "{}_ms"),
            }


def device_rows(devices: Sequence[DeviceActivity]) -> Iterator[Row]:
    """One row a device; idle time by cause and `noise_ms` add up to `idle_ms`."""
    for device in devices:
        copies = {copied.direction: copied for copied in device.copies}
        yield {
            **_fields(device, {name: name for name in (*_ACTIVITY, *_OVERLAP)}),
            **_by_cause(device.causes_ms, "idle_{}_ms"),
            **_fields(device.launches, _LAUNCHES),
            **{
                f"{direction}_{column}": value
                for direction in COPY_DIRECTIONS
                for column, value in _copied(copies.get(direction)).items()
            },
        }


def _copied(copies: DeviceCopies | None) -> Row:
    return _fields(copies, _COPIES)


def _fields(record: Record | None, columns: Mapping[str, str]) -> dict[str, Scalar]:
    return {column: getattr(record, name, None) for name, column in columns.items()}


def _by_cause(causes_ms: Mapping[str, float], column: str) -> dict[str, Scalar]:
    """A cause that the gap does not have took no time; without any, nothing is known."""
    missing = 0.0 if causes_ms else None
    return {column.format(cause): causes_ms.get(cause, missing) for cause in GAP_CAUSES}
