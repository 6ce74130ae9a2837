"""The one place in the source that a reader of the verdict wants to see."""

from __future__ import annotations

from dataclasses import dataclass

from pipediag.facts.order import worth_doing
from pipediag.session.model import Session

LINES_AROUND = 3
"""Above and below a place: enough to recognise it, and to see what a chain goes on with."""


@dataclass(frozen=True)
class SourcePlace:
    """A line, and the operation whose call stands there, where it is one."""

    file: str
    line: int | None
    op_id: str | None = None


def culprit_place(session: Session) -> SourcePlace | None:
    """What the verdict names; else what the first advice is about; else the loop that is slow.

    None where nothing is slow and nothing is advised, and where no place is known. What another
    part of the run takes is behind the operation that makes the step or an epoch's start wait: that
    one is a line to change, the part's only the call in which the time passes.
    """
    verdict = session.verdict
    named = _place(verdict.file, verdict.line, verdict.op_id)
    of_run = _place(verdict.where_file, verdict.where_line)
    of_the_step = verdict.where in (None, "steps", "epoch_start")
    found = named or of_run if of_the_step else of_run or named
    if found is not None:
        return found
    advised = next((one for one in session.findings if worth_doing(one)), None)
    if advised is not None and advised.file is not None:
        return _place(advised.file, advised.line, advised.op_id)
    loop = session.diagnosed_loop()
    if loop is None or verdict.severity not in ("high", "moderate"):
        return None
    return _place(loop.file, loop.line)


def _place(file: str | None, line: int | None, op_id: str | None = None) -> SourcePlace | None:
    return SourcePlace(file, line, op_id) if file is not None else None
