"""What a script's own clock wrote of its run, as seconds of the ledger's parts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pipediag.vocabulary import RUN_PARTS, RunPartName

Parts = dict[RunPartName, float]
"""Seconds."""


@dataclass(frozen=True)
class Stamps:
    """Times are `time.monotonic()`, which all processes of a machine share."""

    began_s: float
    """The script's first line."""
    ended_s: float
    """Its end, before the interpreter's."""
    begun: int
    """Trainings."""
    legs: tuple[Parts, ...]
    """Each ends with a training; the last one with the run."""

    def parts(self, trainings: int | None = None) -> Parts:
        """All of it, or up to the end of so many trainings."""
        return added(self.legs if trainings is None else self.legs[:trainings])


def read_stamps(path: Path) -> Stamps | None:
    """None where the script wrote nothing, as it was stopped or has failed."""
    if not path.is_file():
        return None
    read = json.loads(path.read_text(encoding="utf-8"))
    legs = tuple(_known(leg) for leg in read["legs"])
    return Stamps(read["began"], read["ended"], read["begun"], legs)


def added(all_parts: Iterable[Mapping[RunPartName, float]]) -> Parts:
    """Part by part, in the ledger's order."""
    listed = list(all_parts)
    sums: Parts = {part: sum(parts.get(part, 0.0) for parts in listed) for part in RUN_PARTS}
    return {part: seconds for part, seconds in sums.items() if seconds > 0}


def _known(leg: Mapping[str, float]) -> Parts:
    if strange := set(leg) - set(RUN_PARTS):
        raise ValueError(f"the stamps tell of {', '.join(sorted(strange))}, which is no part")
    return {part: leg[part] for part in RUN_PARTS if part in leg}
