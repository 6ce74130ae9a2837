"""The file that keeps sessions: an SQLite data base, one row for each."""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from pipediag.errors import PipediagError
from pipediag.history.metrics import METRICS, Metric
from pipediag.session.model import Session
from pipediag.session.store import dump_session

VERSION = 1
"""Of the tables; a file with a higher one was written by a newer pipediag."""

_MOST_ROWS = 10_000
"""Of one series that are read; the newest."""

_TABLES = """
create table if not exists sessions (
    id integer primary key,
    digest text not null unique,
    created_at text not null,
    script text not null,
    args text not null,
    fingerprint text not null,
    commit_id text,
    session blob not null
);
create table if not exists metrics (
    session_id integer not null references sessions(id),
    name text not null,
    value real not null,
    primary key (session_id, name)
);
"""


@dataclass(frozen=True)
class Point:
    """One measurement."""

    created_at: str
    commit: str | None
    value: float


@dataclass(frozen=True)
class Series:
    """One metric of one script with its arguments, on one machine."""

    script: str
    args: tuple[str, ...]
    fingerprint: str
    metric: Metric
    points: tuple[Point, ...]
    """The oldest first."""


class _StrangeRow(Exception):  # noqa: N818 - what SQLite took and no pipediag has written
    """The end of a sentence."""


class History:
    """An open file; use `opened`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def add(self, session: Session, commit: str | None) -> bool:
        """Keeps the session and its metrics; False where it is in the file already."""
        text = dump_session(session).encode("utf-8", "surrogatepass")
        row = (
            hashlib.sha256(text).hexdigest(),
            session.created_at,
            session.script.path,
            json.dumps(session.script.args),
            session.environment.fingerprint,
            commit,
            zlib.compress(text),
        )
        with self._connection as connection:
            done = connection.execute(
                "insert or ignore into sessions (digest, created_at, script, args, fingerprint,"
                " commit_id, session) values (?, ?, ?, ?, ?, ?, ?)",
                tuple(map(_storable, row)),
            )
            if not done.rowcount:
                return False
            found = ((metric.name, metric.of(session)) for metric in METRICS)
            connection.executemany(
                "insert into metrics (session_id, name, value) values (?, ?, ?)",
                [(done.lastrowid, name, value) for name, value in found if value is not None],
            )
        return True

    def series(self) -> list[Series]:
        """Every metric of every script and machine, as it went."""
        rows = self._connection.execute(
            "select script, args, fingerprint, name, created_at, commit_id, value from sessions"
            " join metrics on metrics.session_id = sessions.id"
            " order by script, args, fingerprint, created_at, sessions.id"
        )
        return [
            series
            for of_one, found in groupby(rows, key=lambda row: row[:3])
            for series in _of_script(of_one, found)
        ]


def _of_script(of_one: tuple[object, ...], rows: Iterable[tuple[Any, ...]]) -> Iterator[Series]:
    """The newest of each metric, in one pass."""
    script, args, fingerprint = of_one
    if not all(isinstance(cell, str) for cell in of_one):
        raise _StrangeRow("a row of it names no script")
    points: dict[str, deque[Point]] = {metric.name: deque(maxlen=_MOST_ROWS) for metric in METRICS}
    for _, _, _, name, *measured in rows:
        if name in points:
            points[name].append(_point(*measured))
    for metric in METRICS:
        if points[metric.name]:
            found = tuple(points[metric.name])
            yield Series(str(script), _arguments(str(args)), str(fingerprint), metric, found)


@contextmanager
def opened(path: Path, *, create: bool) -> Iterator[History]:
    """The history in that file, which is made where it may be and is missing.

    Raises:
        PipediagError: missing, no history, or written by a newer pipediag.
    """
    if not create and not path.is_file():
        raise PipediagError(
            f"There is no history {path}. `pipediag history add SESSION` begins one."
        )
    try:
        connection = sqlite3.connect(path)
        try:
            _prepare(connection, path)
            yield History(connection)
        finally:
            connection.close()
    except (sqlite3.Error, _StrangeRow) as error:
        raise PipediagError(
            f"{path} cannot be used as a history: {error}. Name another file with --file."
        ) from error


def _arguments(text: str) -> tuple[str, ...]:
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise _StrangeRow("a row of it holds no arguments of a script")
    return tuple(given)


def _point(created_at: object, commit: object, value: object) -> Point:
    if (
        not isinstance(created_at, str)
        or not (commit is None or isinstance(commit, str))
        or not isinstance(value, float)
        or not math.isfinite(value)
    ):
        raise _StrangeRow("a row of it holds no measurement")
    return Point(created_at, commit, value)


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    # In one statement, as another process may be making the file.
    version, tables = connection.execute(
        "select user_version, (select count(*) from sqlite_master) from pragma_user_version"
    ).fetchone()
    if version > VERSION:
        raise PipediagError(
            f"{path} was written by a newer pipediag (version {version} of its tables, and this "
            f"one knows {VERSION}). Upgrade pipediag to use it."
        )
    if version == 0:
        if tables:
            raise PipediagError(
                f"{path} is a data base of another program, so nothing was written. Name another "
                "file with --file."
            )
        # All or nothing: a file with some of the tables would be taken for another program's.
        connection.executescript(
            f"begin immediate; {_TABLES} pragma user_version = {VERSION}; commit;"
        )


def _storable(value: object) -> object:
    """SQLite keeps UTF-8; a file name that is none comes with surrogates."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
