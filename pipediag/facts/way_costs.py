"""What ways out of a table cost in time: as they were timed, and by what crosses the link."""

from __future__ import annotations

from pipediag.facts.table_ways import Shares
from pipediag.session.embeddings import Embedding
from pipediag.session.memory_plan import WayOut
from pipediag.session.model import Session
from pipediag.session.way_times import NOT_ASKED, TableTimes, WayTime
from pipediag.vocabulary import WayName

_NO_LINK = (
    "How fast the link is was not given. `pipediag plan-memory --session DIR --link 16GB/s` plans "
    "with a rate, from a recorded run."
)
_BY_BUCKETS: frozenset[WayName] = frozenset({"hashing", "quotient-remainder"})


def over_link(way: WayOut, bytes_per_s: int | None) -> WayOut:
    """With what its exchange takes at least in each step, or why that is not known.

    The rate alone is reckoned with: what a transfer takes to begin comes on top.
    """
    exchanged = way.exchanged_bytes_per_step
    if exchanged is None:
        return way.model_copy(update={"link_missing": way.exchanged_missing})
    if bytes_per_s is None:
        return way.model_copy(update={"link_missing": _NO_LINK})
    return way.model_copy(update={"link_ms": 1e3 * exchanged / bytes_per_s})


def times_of(
    session: Session, table: Embedding, shares: Shares
) -> tuple[TableTimes | None, str | None]:
    """What was timed of the table, or why nothing was."""
    if session.way_times is None:
        return None, session.way_times_missing or NOT_ASKED
    timed = session.way_times
    found = next(
        (one for one in timed.tables if (one.layer, one.variable) == (table.layer, table.variable)),
        None,
    )
    if found is None or found.missing is not None:
        return None, found.missing if found else NOT_ASKED
    ways = [_for_buckets(way, timed.buckets, shares.buckets) for way in found.ways]
    return found.model_copy(update={"ways": ways}), None


def _for_buckets(way: WayTime, timed: int, wanted: int) -> WayTime:
    if way.way not in _BY_BUCKETS or timed == wanted or way.missing is not None:
        return way
    reason = f"It was timed with {timed} ids a row, and the plan is of {wanted}."
    return WayTime(way=way.way, missing=reason)
