"""Whether a changed pipeline hands out the same batches, on real elements, before it is timed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipediag.capture.replay.comparison import difference_of, spec_difference
from pipediag.capture.replay.elements import Reading, first_elements
from pipediag.capture.replay.one_shot import one_shot_source
from pipediag.capture.replay.parts import Parts, changed_parts
from pipediag.capture.replay.refusal import NotReplayableError
from pipediag.session.edits import Change, Check, Move, as_written, touched

READING_LIMIT_S = 5.0
"""No check reads on for longer; what was read by then is compared."""
_MOST_ELEMENTS = 64


def verify(dataset: Any, changes: Sequence[Change], check: Check) -> None:
    """Run the changed part of the pipeline and the same part as written on the same elements.

    The elements are taken once, from where both are still the same, so that a shuffle upstream
    does not matter. Where the part itself is random, only structure, types and ranks are compared.

    Raises:
        NotReplayableError: the batches differ, the changed part fails, or it can't be checked.
    """
    if touched(changes) <= {"model"}:
        return
    refusal = one_shot_source(dataset)
    if refusal is not None:
        raise NotReplayableError(refusal)
    # Filling a cache would cost more than the check.
    parts = changed_parts(dataset, [as_written(change) for change in changes], READING_LIMIT_S)
    _refuse(spec_difference(parts.before.element_spec, parts.after.element_spec))
    expected, found = _read(parts.before), _read(parts.after)
    by_value = check == "equal" and not parts.random
    if by_value:
        _refuse(_count_difference(expected, found))
    difference = difference_of(expected.elements, found.elements, values=by_value)
    if difference is not None and by_value and _differs_from_itself(parts, expected):
        if any(isinstance(change, Move) for change in changes):
            raise NotReplayableError(
                "The pipeline hands out other values every time, so it can't be checked whether "
                "moving an operation changes them."
            )
        difference = difference_of(expected.elements, found.elements, values=False)
    _refuse(difference)


def _refuse(difference: str | None) -> None:
    if difference is not None:
        raise NotReplayableError(f"The batches differ: {difference}.")


def _read(dataset: Any) -> Reading:
    return first_elements(dataset, _MOST_ELEMENTS, READING_LIMIT_S)


def _count_difference(expected: Reading, found: Reading) -> str | None:
    before, after = len(expected.elements), len(found.elements)
    if expected.exhausted and found.exhausted and before != after:
        return f"there are {after} where there were {before}"
    return None


def _differs_from_itself(parts: Parts, expected: Reading) -> bool:
    again = _read(parts.before)
    return difference_of(expected.elements, again.elements, values=True) is not None
