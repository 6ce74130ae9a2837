"""Tables of a session as pandas DataFrames, with the columns of the CSV files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipediag.encoding.visible import visible
from pipediag.errors import PipediagError
from pipediag.reporters.tables.csv import tables
from pipediag.session.model import Session

if TYPE_CHECKING:
    import pandas


def frame(session: Session, name: str) -> pandas.DataFrame:
    """The table that is `<name>.csv` in a report's directory.

    Characters that a terminal would obey or hide are spelled out: a session may be a stranger's.

    Raises:
        PipediagError: pandas is not installed, or there is no such table.
    """
    try:
        import pandas
    except ImportError as error:
        raise PipediagError(
            "pandas is not installed, so there is no DataFrame. Install it, or read the records of "
            "`.session`; `.save(directory)` writes the same tables as CSV."
        ) from error
    found = {table.name: table for table in tables(session)}
    if name not in found:
        raise PipediagError(f"there is no table {name!r}; the tables are {', '.join(found)}.")
    table = found[name]
    rows = list(table.rows)
    columns = {
        column: _column(pandas, [_shown(row.get(column)) for row in rows])
        for column in table.columns
    }
    return pandas.DataFrame(columns)


def _column(pandas: Any, values: list[Any]) -> Any:
    """Whole numbers stay whole beside what is missing."""
    known = [value for value in values if value is not None]
    whole = known and all(type(value) is int for value in known)
    return pandas.Series(values, dtype="Int64" if whole else None)


def _shown(value: Any) -> Any:
    return visible(value) if isinstance(value, str) else value
