"""Readers of several files that read one after the other, and the same with several at once."""

from __future__ import annotations

from pipediag.facts.machine import cpus
from pipediag.facts.pipeline import place_name
from pipediag.rules.pipeline.opened_in_turn import opened_at_once, opens_in_turn
from pipediag.session.edits import AUTOTUNE, Change, Edit, SetParameters
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation

MOST_FILES = 16


def read_in_turn(session: Session, reader: Operation) -> bool:
    """Whether it reads one of several files at a time."""
    outer = session.operation(reader.inside_function_of)
    if outer is not None:
        return opens_in_turn(outer)
    files = reader.parameters.get("file_count")
    several = files is None or (isinstance(files, int) and files > 1)
    return several and reader.parameters.get("num_parallel_reads") in (None, 1)


def how_many(session: Session) -> int:
    """Files that are open at once where one was."""
    return max(2, min(MOST_FILES, int(cpus(session))))


def files_at_once(
    session: Session, reader: Operation, rule: str, *, whole_epoch: bool = False
) -> Edit:
    """Several files at once: by the reader itself, or by the operation that opens them."""
    change: Change
    outer = session.operation(reader.inside_function_of)
    if outer is None:
        change = SetParameters(reader.id, {"num_parallel_reads": AUTOTUNE})
        label = f"num_parallel_reads=AUTOTUNE on the {place_name(reader)}"
    else:
        change, label = opened_at_once(outer, how_many(session), AUTOTUNE, "files")
    return Edit(
        id=f"{rule}:{reader.id}",
        label=label,
        changes=(change,),
        caveat="Measured on files as they are by then: what was read before may lie in memory.",
        whole_epoch=whole_epoch,
    )
