"""Memory of the process and time of the steps that grow from epoch to epoch."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from pipediag.facts.limits import Threshold
from pipediag.facts.names import exact_time, memory_size
from pipediag.facts.step import UNEVEN
from pipediag.rules.rule import Place, Rule, known
from pipediag.session.findings import Finding
from pipediag.session.ledger import EpochSeen
from pipediag.session.model import Session

STRETCHES = Threshold(
    "stretches of epochs, each above the one before",
    5.0,
    "stretches",
    "own choice: of five in any order, one in 120 rises throughout",
)
GROWN = Threshold(
    "growth of the process's memory over the epochs seen",
    5.0,
    "% of it",
    "measured: two scripts that keep nothing grew by 2 % in 30 and 40 epochs",
)
SLOWER = Threshold(
    "steps of the last stretch over those of the first",
    UNEVEN,
    "times",
    "own choice: twice the tenth by which repeated runs of one script differ",
)
_EVEN = 0.5
"""Part of the mean growth that every stretch has to have. Own choice: memory that is taken once,
as by a cache or an allocator, grows ever less."""
_Stretches = list[npt.NDArray[np.float64]]


def _epochs(session: Session) -> tuple[list[EpochSeen], str, Place]:
    """Return the epochs, none where they are few or of several trainings, in words, and a line."""
    epochs, loop = known(session.run).whole_epochs, known(session.diagnosed_loop())
    in_order = all(one.number < other.number for one, other in pairwise(epochs))
    if not in_order or len(epochs) < STRETCHES.value:
        return [], "", (None, None)
    span = f"epochs {epochs[0].number + 1} to {epochs[-1].number + 1}"
    return epochs, span, (loop.file, loop.line)


def _stretches(values: npt.ArrayLike) -> _Stretches:
    return np.array_split(np.array(values), int(STRETCHES.value))


def _rises(stretches: _Stretches) -> npt.NDArray[np.float64]:
    """Return by how much the median of each stretch lies above that of the one before."""
    return np.diff([float(np.median(one)) for one in stretches])


MEMORY_GROWTH = Rule(
    id="memory-growth",
    title="Find what keeps memory from epoch to epoch",
    why="The process's memory grew by about as much in each stretch of the epochs. A longer "
    "training ends when none is left, and the system then stops it without a message.",
    fix="Append `float(loss)` to lists and not tensors; call `model(x)` in place of `predict`; "
    "create models, datasets and iterators once. `tracemalloc` shows lines that keep objects.",
    needs=("loop", "run"),
    thresholds=(STRETCHES, GROWN),
    untried="Only a change of the script can tell what keeps it.",
)


@MEMORY_GROWTH.found_by
def _check_memory_growth(session: Session) -> Iterator[Finding]:
    (epochs, span, place), samples = _epochs(session), session.host_samples
    if not samples or not epochs:
        return
    at, rss = [one.at_ms for one in samples], [float(one.rss_bytes) for one in samples]
    held = np.interp([epoch.end_ms for epoch in epochs], at, rss)
    rises = _rises(_stretches(held))
    each = rises / _rises(_stretches([epoch.number for epoch in epochs]))
    little = held[-1] - held[0] < GROWN.value / 100.0 * held[0]
    if little or rises.min() <= 0 or each.min() < _EVEN * each.mean():
        return
    grown = float(np.median(each))
    left = next((one.available_bytes for one in reversed(samples) if one.available_bytes), None)
    advice = f"The process's memory grew by {memory_size(grown)} an epoch in {span}."
    if left:
        advice += f" {memory_size(left)} are left, enough for about {left / grown:,.0f} more."
    if any(op.kind == "cache" for op in session.ops):
        advice += " A cache that is still being filled grows so, too."
    numbers = {"memory_growth_bytes_per_epoch": grown, "memory_left_bytes": left}
    yield MEMORY_GROWTH.finding("informative", advice, place=place, evidence=numbers)


SLOWER_STEPS = Rule(
    id="slower-steps",
    title="Find what makes each epoch slower than the one before",
    why="Something that a step goes through grows with the training: a list that is read whole, a "
    "metric over all data so far, or a graph to which each step adds operations.",
    fix="Keep sums in place of lists, reset metrics at the end of an epoch, and create functions, "
    "models and iterators once. A machine that gets hotter or busier slows steps as well.",
    needs=("loop", "run"),
    thresholds=(STRETCHES, SLOWER),
    untried="Only a change of the script can tell what grows.",
)


@SLOWER_STEPS.found_by
def _check_slower_steps(session: Session) -> Iterator[Finding]:
    epochs, span, place = _epochs(session)
    stretches = _stretches([epoch.steps_ms for epoch in epochs])
    if not epochs or _rises(stretches).min() <= 0 or stretches[-1].min() <= stretches[0].max():
        return
    first, last = (float(np.median(stretches[end])) for end in (0, -1))
    if last >= SLOWER.value * first:
        yield SLOWER_STEPS.finding(
            "informative",
            f"An epoch's steps took {exact_time(first)} at the beginning of {span}, and "
            f"{exact_time(last)} at their end, {last / first:.2g}x as long, rising throughout.",
            place=place,
            evidence={"first_epochs_ms": first, "last_epochs_ms": last},
        )
