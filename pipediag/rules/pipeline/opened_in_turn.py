"""Operations that open one source after the other, and the same with several open at once."""

from __future__ import annotations

from pipediag.facts.pipeline import place_name
from pipediag.session.edits import AUTOTUNE, Change, Replace, SetParameters
from pipediag.session.pipeline import Operation


def opens_in_turn(outer: Operation) -> bool:
    """Whether the operation reads from one of the datasets that its function makes at a time."""
    calls = outer.parameters.get("num_parallel_calls")
    return outer.kind == "flat_map" or (outer.kind == "interleave" and calls in (None, 1))


def opened_at_once(outer: Operation, count: int, calls: int, sources: str) -> tuple[Change, str]:
    """What makes it read from several, and that in a few words.

    Args:
        outer: an operation that opens in turn.
        count: how many are open at once where one was.
        calls: how many are read from at once.
        sources: what they are called.
    """
    if outer.kind == "flat_map":
        return (
            Replace(outer.id, "interleave", {"cycle_length": count, "num_parallel_calls": calls}),
            f"interleave of {count} {sources} in place of the {place_name(outer)}",
        )
    change = SetParameters(outer.id, {"num_parallel_calls": calls})
    said = f"num_parallel_calls={'AUTOTUNE' if calls == AUTOTUNE else calls}"
    if outer.parameters.get("cycle_length") == 1:
        # So many calls would still wait for the one that is open.
        change = SetParameters(outer.id, {"num_parallel_calls": calls, "cycle_length": count})
        said = f"cycle_length={count}, {said}"
    return change, f"{said} on the {place_name(outer)}"
