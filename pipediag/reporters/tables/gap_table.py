"""Every idle gap of a profile's devices as one table, written piece by piece.

A session keeps the longest gaps of a device; this table is made from the columns of all of them.
"""

from __future__ import annotations

from codecs import getwriter
from collections.abc import Iterator, Sequence
from pathlib import Path

from pipediag.encoding.markup import write_csv
from pipediag.measures.profile import all_gaps
from pipediag.reporters.tables.device_rows import GAP_COLUMNS
from pipediag.session.files import replacing
from pipediag.trace.device.traces import DeviceTrace
from pipediag.trace.summary import TraceSummary
from pipediag.vocabulary import Scalar


def write_gap_table(path: Path, summaries: Sequence[tuple[str, TraceSummary]]) -> None:
    """Write a row for each gap from the floor on: device by device, in order of time.

    The columns are `GAP_COLUMNS`; a profile alone knows no operations and lines of a script.

    Args:
        path: the CSV file, replaced whole or not at all.
        summaries: with the host of each; of one alone the host is not shown.

    Raises:
        PipediagError: a file cannot be written.
    """
    with replacing(path) as file:
        write_csv(getwriter("utf-8")(file), GAP_COLUMNS, _all_rows(summaries))


def _all_rows(summaries: Sequence[tuple[str, TraceSummary]]) -> Iterator[tuple[Scalar, ...]]:
    several = len(summaries) > 1
    for host, summary in summaries:
        for device in summary.devices:
            yield from _rows(device, summary, host if several else None)


def _rows(
    device: DeviceTrace, summary: TraceSummary, host: str | None
) -> Iterator[tuple[Scalar, ...]]:
    for _, gaps in all_gaps(device, summary):
        for start, duration, cause, iterator, buffered, doing, step, split in zip(
            gaps.start_ms,
            gaps.duration_ms,
            gaps.cause,
            gaps.iterator,
            gaps.buffered_elements,
            gaps.doing,
            gaps.step,
            gaps.causes_ms,
            strict=True,
        ):
            yield (
                device.name,
                device.kind,
                start,
                duration,
                cause,
                None,
                None,
                None,
                iterator[0] if iterator else None,
                buffered,
                doing,
                step,
                host,
                *split,
            )
