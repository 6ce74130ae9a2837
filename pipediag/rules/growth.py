"""Memory of the process and time of the steps that grow from epoch to epoch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from pipediag.facts.limits import Threshold
from pipediag.facts.names import exact_time, memory_size
from pipediag.facts.step import UNEVEN
from pipediag.rules.rule import Rule, known
from pipediag.session.findings import Finding
from pipediag.session.ledger import EpochSeen
from pipediag.session.model import Session
from pipediag.vocabulary import Scalar

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


def _epochs(session: Session) -> list[EpochSeen]:
    """Return the whole epochs of one training; none where they are of several."""
    epochs = known(session.run).whole_epochs
    in_order = all(one.number < other.number for one, other in pairwise(epochs))
    return epochs if in_order else []


def _stretches(values: Sequence[float]) -> list[npt.NDArray[np.float64]]:
    """Return stretches whose medians rise throughout; none where they don't, or are too few."""
    count = int(STRETCHES.value)
    if len(values) < count:
        return []
    found = np.array_split(np.array(values), count)
    rises = np.diff([float(np.median(one)) for one in found])
    return found if bool((rises > 0).all()) else []


MEMORY_GROWTH = Rule(
    id="memory-growth",
    title="Find what keeps memory from epoch to epoch",
    why="The process's memory grew by about as much in each stretch of the epochs. A longer "
    "training ends when none is left, and the system then stops it without a message.",
    fix="Append `float(loss)` to lists and not tensors, and clear lists that no one reads. In a "
    "loop call `model(x)` in place of `predict`, and create models, datasets and iterators once; "
    "`tf.keras.backend.clear_session()` frees those of earlier models. `tracemalloc` shows the "
    "lines that keep Python objects.",
    needs=("loop", "run"),
    thresholds=(STRETCHES, GROWN),
    untried="Only a change of the script can tell what keeps it.",
)


@MEMORY_GROWTH.found_by
def _check_memory_growth(session: Session) -> Iterator[Finding]:
    epochs, samples = _epochs(session), session.host_samples
    if not samples:
        return
    at, rss = [one.at_ms for one in samples], [float(one.rss_bytes) for one in samples]
    held = [float(one) for one in np.interp([epoch.end_ms for epoch in epochs], at, rss)]
    stretches = _stretches(held)
    if not stretches or held[-1] - held[0] < GROWN.value / 100.0 * held[0]:
        return
    epochs_between = np.diff(
        [np.median(one) for one in np.array_split([one.number for one in epochs], len(stretches))]
    )
    each = np.diff([np.median(one) for one in stretches]) / epochs_between
    if float(each.min()) < _EVEN * float(each.mean()):
        return
    grown = float(np.median(each))
    left = next((one.available_bytes for one in reversed(samples) if one.available_bytes), None)
    advice = f"The process's memory grew by {memory_size(grown)} an epoch in {_span(epochs)}."
    if left:
        advice += f" {memory_size(left)} are left, enough for about {left / grown:,.0f} more."
    if any(op.kind == "cache" for op in session.ops):
        advice += " A cache that is still being filled grows so, too."
    numbers = {"memory_growth_bytes_per_epoch": grown, "memory_left_bytes": left}
    yield _finding(session, MEMORY_GROWTH, advice, numbers)


SLOWER_STEPS = Rule(
    id="slower-steps",
    title="Find what makes each epoch slower than the one before",
    why="Something that a step goes through grows with the training: a list that is read whole, a "
    "metric over all data so far, or a graph to which each step adds operations.",
    fix="Keep sums in place of lists, reset metrics at the end of an epoch, and create functions, "
    "models and iterators once. A machine that gets hotter or busier slows steps as well: see the "
    "CPU of other programs.",
    needs=("loop", "run"),
    thresholds=(STRETCHES, SLOWER),
    untried="Only a change of the script can tell what grows.",
)


@SLOWER_STEPS.found_by
def _check_slower_steps(session: Session) -> Iterator[Finding]:
    epochs = _epochs(session)
    stretches = _stretches([epoch.steps_ms for epoch in epochs])
    if not stretches or stretches[-1].min() <= stretches[0].max():
        return
    first, last = (float(np.median(stretches[end])) for end in (0, -1))
    if last < SLOWER.value * first:
        return
    yield _finding(
        session,
        SLOWER_STEPS,
        f"An epoch's steps took {exact_time(first)} at the beginning of {_span(epochs)}, and "
        f"{exact_time(last)} at their end, {last / first:.2g}x as long, rising throughout.",
        {"first_epochs_ms": first, "last_epochs_ms": last},
    )


def _span(epochs: Sequence[EpochSeen]) -> str:
    return f"epochs {epochs[0].number + 1} to {epochs[-1].number + 1}"


def _finding(session: Session, rule: Rule, advice: str, numbers: Mapping[str, Scalar]) -> Finding:
    loop = known(session.diagnosed_loop())
    place = loop.file, loop.line
    return rule.finding("informative", advice, place=place, evidence=dict(numbers))
