"""What other tables hold in one cell or leave out, one row each: evidence, copies, hot lines."""

from __future__ import annotations

from collections.abc import Iterator

from pipediag.reporters.tables.device_rows import Row
from pipediag.session.host import HotLine
from pipediag.session.model import Session

EVIDENCE_COLUMNS = ("finding", "rule", "op_id", "name", "value", "number")
COPY_COLUMNS = (
    "device",
    "device_kind",
    "host",
    "direction",
    "copies",
    "copy_ms",
    "exposed_copy_ms",
    "copied_bytes",
    "copied_gb_per_s",
)
HOT_PYTHON_COLUMNS = tuple(HotLine.model_fields)


def evidence_rows(session: Session) -> Iterator[Row]:
    """One row a fact that a finding rests on; `finding` is its row in `findings.csv`, from 0.

    `value` is the fact as text, `number` the same where it is one.
    """
    for place, finding in enumerate(session.findings):
        for name, value in finding.evidence.items():
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            yield {
                "finding": place,
                "rule": finding.rule,
                "op_id": finding.op_id,
                "name": name,
                "value": None if value is None else _as_text(value),
                "number": value if is_number else None,
            }


def _as_text(value: str | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def copy_rows(session: Session) -> Iterator[Row]:
    """One row a device and direction."""
    for device in session.devices:
        for copies in device.copies:
            yield {
                "device": device.name,
                "device_kind": device.kind,
                "host": device.host,
                "direction": copies.direction,
                "copies": copies.count,
                "copy_ms": copies.ms,
                "exposed_copy_ms": copies.exposed_ms,
                "copied_bytes": copies.bytes,
                "copied_gb_per_s": copies.gb_per_s,
            }


def hot_python_rows(session: Session) -> Iterator[Row]:
    """One row a line of Python that was seen running."""
    for hot in session.host.hot_python if session.host else []:
        yield hot.model_dump()
