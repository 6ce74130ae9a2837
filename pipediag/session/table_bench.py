"""What the process that times tables is asked for, and what it tells, as files of JSON.

Plain dataclasses, as it shares its machine with what it times.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pipediag.vocabulary import Scalar, TimedPart, WayName


@dataclass(frozen=True)
class TableKey:
    """Which table it is, for who keeps its ids and who looks for them."""

    layer: str
    variable: str | None
    rows: int
    dim: int

    @property
    def ids_file(self) -> str:
        """The name of the file with its ids: names of layers need not be ones of files."""
        # The user's process has this module too, and needs no hashes unless ids are kept.
        import hashlib

        return hashlib.blake2b(repr(self).encode(), digest_size=12).hexdigest() + ".npz"


@dataclass(frozen=True)
class BenchTable:
    """One table, and the ways that are held against it as it is."""

    ids_file: str
    """An `.npz` with the ids of each batch."""
    rows: int
    """Of the table that is timed: ids are folded into them."""
    dim: int
    dtype: str
    reads_whole: bool
    """Whether it is looked up as Keras' Embedding does, which reads the whole variable."""
    step_ways: list[WayName]
    """Timed with gradient and update."""
    lookup_ways: list[WayName]
    """Timed as a look-up alone."""
    optimizer: str | None = None
    """Class of the one that updates it, of Keras or of `pipediag.optimizers`."""
    arguments: dict[str, Scalar] = field(default_factory=dict)
    slots: int | None = None
    """Variables that it keeps for the table in the run."""
    jit: bool = False
    device: str | None = None
    """As TensorFlow names it; None leaves that to TensorFlow."""


@dataclass(frozen=True)
class BenchPlan:
    """All tables, the time for them, and where the results go."""

    tables: list[BenchTable]
    budget_s: float
    buckets: int
    results: str
    """A file of lines, one message each."""
    directory: str
    """For the file of a table that is mapped into memory."""
    ends_at: float | None = None
    """`time.monotonic()`, which all processes share, by which all has to be over."""

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> BenchPlan:
        fields = json.loads(path.read_text(encoding="utf-8"))
        return cls(**{**fields, "tables": [BenchTable(**one) for one in fields["tables"]]})


@dataclass(frozen=True)
class Placed:
    """A table begins to be timed."""

    table: int
    """Its place in the plan, from 0."""
    device: str
    batches: int


@dataclass(frozen=True)
class Round:
    """A block of the table as it is, and one of the way: milliseconds a step, or a look-up."""

    table: int
    way: WayName
    timed: TimedPart
    base_ms: float
    ms: float


@dataclass(frozen=True)
class NotTimed:
    """No round of the way comes, for this reason; None in place of a way is all of them."""

    table: int
    way: WayName | None
    reason: str


Result = Placed | Round | NotTimed
_KINDS: dict[str, Callable[..., Result]] = {
    kind.__name__: kind for kind in (Placed, Round, NotTimed)
}


def result_line(result: Result) -> str:
    """The result as a line of JSON."""
    return json.dumps({"is": type(result).__name__, **asdict(result)}) + "\n"


def results_in(path: Path) -> Iterator[Result]:
    """All whole lines of a file that may be cut short; none where it is not there."""
    if not path.exists():
        return
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        result = _result(line)
        if result is not None:
            yield result


def _result(line: str) -> Result | None:
    try:
        fields: dict[str, Any] = json.loads(line)
        return _KINDS[fields.pop("is")](**fields)
    except (ValueError, TypeError, KeyError):
        return None
