"""The session as tables: one function gives each as a DataFrame, and the CSV files are these.

Columns are the fields of the records that docs/session.md lists, with the ends of an interval in
two columns.
Times called `start_ms` and `at_ms` are of one clock, which starts with the recording; those of gaps
count from the first step of the profile.

pandas is imported only where a table is made.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar, get_origin, get_type_hints

from pipediag.encoding import as_csv, visible
from pipediag.errors import PipediagError
from pipediag.facts.embeddings import padding_percent
from pipediag.session.devices import DeviceActivity, DeviceCopies, DeviceGap
from pipediag.session.findings import Finding
from pipediag.session.ledger import RunGain, RunPart
from pipediag.session.loops import Embedding, Loop, Share, StepRow
from pipediag.session.model import HostSample, HotLine, Session
from pipediag.session.pipeline import Operation
from pipediag.session.record import Record, annotation_parts
from pipediag.session.recorded_loops import EmbeddingIds
from pipediag.session.recording import RecordedFunction
from pipediag.session.trials import Trial, TrialBlock
from pipediag.vocabulary import COPY_DIRECTIONS, GAP_CAUSES, GapCause

if TYPE_CHECKING:
    import pandas

Row = dict[str, Any]
_Item = TypeVar("_Item")


def text(session: Session, name: str) -> str:
    """Return a table as CSV. Raises PipediagError: there is no such table."""
    return as_csv(table(session, name))


def table(session: Session, name: str) -> pandas.DataFrame:
    """Return the table that is `<name>.csv` in a report.

    Characters that a terminal would obey or hide are spelled out: a session may be a stranger's.

    Raises PipediagError: there is no such table.
    """
    if name not in TABLES:
        raise PipediagError(f"there is no table {name!r}; the tables are {', '.join(TABLES)}.")
    return TABLES[name](session)


def breakdown(session: Session) -> pandas.DataFrame:
    """Return one row for each class of the step's time; the percents add up to 100."""
    shares = session.breakdown or {}
    rows = [{"class": name, **_cells(Share, share)} for name, share in shares.items()]
    return _frame(rows, ("class", *_cells(Share)))


def pipeline(session: Session) -> pandas.DataFrame:
    """Return one row for each operation of the input pipeline, in the order of the data."""

    def row(op: Operation | None) -> Row:
        function = op.function if op is not None else None
        return _cells(Operation, op) | _cells(RecordedFunction, function, "function_")

    slowest = session.pipeline.bottleneck_op_id if session.pipeline else None
    rows = [
        {"position": position, **row(op), "bottleneck": op.id == slowest}
        for position, op in enumerate(session.ops)
    ]
    return _frame(rows, ("position", *row(None), "bottleneck"))


def embeddings(session: Session) -> pandas.DataFrame:
    """Return one row for each embedding table, with the ids of a few batches (`ids_`)."""

    def row(found: Embedding | None) -> Row:
        cells = _cells(Embedding, found)
        cells["padding_percent"] = padding_percent(found) if found else None
        return cells | _cells(EmbeddingIds, found.ids if found else None, "ids_")

    return _table(session.embeddings, row)


def findings(session: Session) -> pandas.DataFrame:
    """Return one row for each finding, with its edit, its trial and its gain for the run."""

    def row(finding: Finding | None) -> Row:
        edit = finding.edit if finding else None
        return {
            **_cells(Finding, finding),
            "edit_id": edit.id if edit else None,
            "edit_label": edit.label if edit else None,
            **_cells(Trial, finding.trial if finding else None, "trial_"),
            **_cells(RunGain, finding.for_run if finding else None, "run_"),
        }

    return _table(session.findings, row)


def gap_table(found: Sequence[DeviceActivity]) -> pandas.DataFrame:
    """Return one row for each idle gap; `step` counts the steps of the profile's window from 0."""
    rows = [_gap(device, gap) for device in found for gap in device.gaps]
    return _frame(rows, _gap(None, None))


def device_table(found: Sequence[DeviceActivity]) -> pandas.DataFrame:
    """Return one row for each device; idle time by cause and `noise_ms` add up to `idle_ms`."""

    def row(device: DeviceActivity | None) -> Row:
        copies = {one.direction: one for one in device.copies} if device else {}
        cells = _cells(DeviceActivity, device, leaving_out={"causes_ms"})
        cells |= _by_cause(device.causes_ms if device else {}, "idle_{}_ms")
        for direction in COPY_DIRECTIONS:
            one, prefix = copies.get(direction), f"{direction}_copy_"
            cells |= _cells(DeviceCopies, one, prefix, leaving_out={"direction"})
        return cells

    return _table(found, row)


def _records(
    kind: type[Any], items: Callable[[Session], Sequence[object]]
) -> Callable[[Session], pandas.DataFrame]:
    """Return a table that has a row for each of these records."""
    return lambda session: _table(items(session), partial(_cells, kind))


TABLES: dict[str, Callable[[Session], pandas.DataFrame]] = {
    "run": _records(RunPart, lambda session: session.run.parts if session.run else []),
    "breakdown": breakdown,
    "loops": _records(Loop, lambda session: session.loops),
    "steps": _records(StepRow, lambda session: session.step_rows),
    "pipeline": pipeline,
    "embeddings": embeddings,
    "findings": findings,
    "trials": _records(TrialBlock, lambda session: session.trials.blocks if session.trials else []),
    "gaps": lambda session: gap_table(session.devices),
    "devices": lambda session: device_table(session.devices),
    "host": _records(HostSample, lambda session: session.host_samples),
    "hot_python": _records(
        HotLine, lambda session: session.host.hot_python if session.host else []
    ),
}


def _gap(device: DeviceActivity | None, gap: DeviceGap | None) -> Row:
    return {
        "device": device and device.name,
        "device_kind": device and device.kind,
        "host": device and device.host,
        **_cells(DeviceGap, gap, leaving_out={"causes_ms"}),
        **_by_cause(gap.causes_ms if gap else {}, "{}_ms"),
    }


def _by_cause(causes_ms: dict[GapCause, float], column: str) -> Row:
    """Return a cell for each cause: 0 for one that has no part, None where nothing is known."""
    missing = 0.0 if causes_ms else None
    return {column.format(cause): causes_ms.get(cause, missing) for cause in GAP_CAUSES}


def _table(items: Sequence[_Item], row: Callable[[_Item | None], Row]) -> pandas.DataFrame:
    """Return one row for each item; the row of none gives the columns."""
    return _frame(list(map(row, items)), row(None))


def _frame(rows: Sequence[Row], columns: Iterable[str]) -> pandas.DataFrame:
    """Return rows as a DataFrame in which whole numbers stay whole beside missing values."""
    import pandas

    series = {}
    for name in columns:
        values = [row.get(name) for row in rows]
        kinds = {type(value) for value in values if value is not None}
        whole = {int: "Int64", bool: "boolean"}.get(kinds.pop()) if len(kinds) == 1 else None
        shown = [visible(value) if isinstance(value, str) else value for value in values]
        series[name] = pandas.Series(shown, dtype=whole)
    return pandas.DataFrame(series)


def _cells(
    kind: type[Any],
    record: object = None,
    prefix: str = "",
    leaving_out: Collection[str] = (),
) -> Row:
    """Return the record's fields as cells; without a record, the columns with nothing in them.

    An interval has a column for each end; texts in a list and named values are joined. Other
    records and lists are left out: they have tables of their own.
    """
    row: Row = {}
    fields: Callable[[Any], list[tuple[str, str]]] = _fields
    for name, how in fields(kind):
        if name in leaving_out:
            continue
        value = getattr(record, name, None)
        if how == "interval":
            row[f"{prefix}{name}_low"], row[f"{prefix}{name}_high"] = value or (None, None)
        elif how == "texts":
            row[prefix + name] = None if value is None else " ".join(value)
        elif how == "named":
            pairs = (value or {}).items()
            row[prefix + name] = "; ".join(f"{key}={one}" for key, one in pairs)
        else:
            row[prefix + name] = value
    return row


@cache
def _fields(kind: Hashable) -> list[tuple[str, str]]:
    if isinstance(kind, type) and issubclass(kind, Record):
        types = {name: field.annotation for name, field in kind.model_fields.items()}
    else:
        types = get_type_hints(kind)
    found = ((name, _holds(annotation)) for name, annotation in types.items())
    return [(name, holds) for name, holds in found if holds]


def _holds(annotation: Any) -> str | None:
    parts = list(annotation_parts(annotation))
    origins = {get_origin(part) for part in parts}
    if list in origins:
        return "texts" if list[str] in parts else None
    if dict in origins:
        return "named"
    if tuple in origins:
        return "interval"
    is_record = any(isinstance(one, type) and one.__module__ != "builtins" for one in parts)
    return None if is_record else "value"
