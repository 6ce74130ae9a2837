"""How many elements a cache would hold, of all the data and in a trial."""

from __future__ import annotations

import math
from collections.abc import Iterable

from pipediag.facts.epochs import fills_a_shuffle, seen_time
from pipediag.facts.pipeline import keeps_elements, place_name, upstream
from pipediag.session.edits import Change, Edit, Insert
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.tensorflow_names import CACHES
from pipediag.vocabulary import Scalar

FILL_S = 2.0
LEAST_BATCHES = 8
FULL = "Measured once the cache is full."
_ON_DISK = (
    "Measured once the cache is full, on a part of it in the directory for temporary files, whose "
    "disk may not be the one that you choose; read from the disk, as the whole of it would be."
)


def cache_behind(
    session: Session,
    op: Operation,
    rule: str,
    *,
    first: Iterable[Change] = (),
    on_disk: bool = False,
    whole_epoch: bool = False,
) -> Edit | None:
    """Return the edit that puts a filled cache behind the operation, after the `first` changes.

    None where it is not known how many elements pass in a step.
    """
    elements = elements_to_cache(session, op)
    if elements is None:
        return None
    where: dict[str, Scalar] = {"on_disk": True} if on_disk else {}
    return Edit(
        id=f"{rule}:{op.id}",
        label=f"cache{' on disk' if on_disk else ''} behind the {place_name(op)}",
        changes=(*first, Insert(op.id, "cache", {"elements": elements, **where})),
        caveat=_ON_DISK if on_disk else FULL,
        whole_epoch=whole_epoch,
    )


def elements_to_cache(session: Session, op: Operation) -> int | None:
    """What two seconds make at the rate of this run; at least eight batches, at most all.

    All where none pass in a step, as they do where a shuffle has taken them before.
    """
    if session.steps is None or not op.elements:
        return elements_of_a_pass(session, op) if fills_a_shuffle(session, op) else None
    in_time = FILL_S * 1000.0 / session.steps.mean_ms * op.elements
    wanted = math.ceil(max(in_time, LEAST_BATCHES * op.elements))
    number = elements_of_a_pass(session, op)
    return wanted if number is None else min(wanted, number)


def elements_of_a_pass(session: Session, op: Operation) -> int | None:
    """Elements of one pass at this operation, or as many as reach it at most; None if unknown."""
    for other in [op, *upstream(session, op)]:
        if other.kind != "repeat" and other.cardinality is not None and other.cardinality >= 0:
            return other.cardinality
        if other.kind not in CACHES and not keeps_elements([other]):
            return None
    return None


def elements_seen_in_a_pass(session: Session, op: Operation) -> int | None:
    """Elements of one pass at this operation by the epochs that were seen to their end.

    None where none was, and where `steps_per_epoch` cuts epochs out of data whose end is unknown.
    """
    loop, run = session.diagnosed_loop(), session.run
    if loop is None or run is None or not run.epochs_seen or not op.elements:
        return None
    if seen_time(session) is None or (loop.keras is not None and loop.keras.steps_per_epoch):
        return None
    return math.ceil(loop.steps / run.epochs_seen * op.elements)
