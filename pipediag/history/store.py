"""The file that keeps sessions: an SQLite data base, one row for each."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

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
        return [
            Series(script, tuple(json.loads(args)), fingerprint, metric, points)
            for script, args, fingerprint in self._connection.execute(
                "select distinct script, args, fingerprint from sessions"
                " order by script, args, fingerprint"
            ).fetchall()
            for metric in METRICS
            if (points := self._points(script, args, fingerprint, metric.name))
        ]

    def _points(self, script: str, args: str, fingerprint: str, name: str) -> tuple[Point, ...]:
        rows = self._connection.execute(
            "select created_at, commit_id, value from sessions"
            " join metrics on metrics.session_id = sessions.id"
            " where script = ? and args = ? and fingerprint = ? and name = ?"
            " order by created_at desc, sessions.id desc limit ?",
            (script, args, fingerprint, name, _MOST_ROWS),
        ).fetchall()
        return tuple(Point(*row) for row in reversed(rows))


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
    except sqlite3.Error as error:
        raise PipediagError(
            f"{path} cannot be used as a history: {error}. Name another file with --file."
        ) from error


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    (version,) = connection.execute("pragma user_version").fetchone()
    if version > VERSION:
        raise PipediagError(
            f"{path} was written by a newer pipediag (version {version} of its tables, and this "
            f"one knows {VERSION}). Upgrade pipediag to use it."
        )
    connection.executescript(_TABLES)
    connection.execute(f"pragma user_version = {VERSION}")


def _storable(value: object) -> object:
    """SQLite keeps UTF-8; a file name that is none comes with surrogates."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
