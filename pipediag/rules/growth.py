"""Memory of the process that grows from epoch to epoch."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from pipediag.facts.limits import Threshold
from pipediag.facts.names import memory_size
from pipediag.rules.rule import Rule, known
from pipediag.session.findings import Finding
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
_EVEN = 0.5
"""Part of the mean growth that every stretch has to have. Own choice: memory that is taken once,
as by a cache or an allocator, grows ever less."""
MEMORY_GROWTH = Rule(
    id="memory-growth",
    title="Find what keeps memory from epoch to epoch",
    why="The process's memory grew by about as much in each stretch of the epochs. A longer "
    "training ends when none is left, and the system then stops it without a message.",
    fix="Append `float(loss)` to lists and not tensors; in a loop call `model(x)` in place of "
    "`predict`, and create models, datasets and iterators once. "
    "`tf.keras.backend.clear_session()` frees earlier models, `tracemalloc` shows lines.",
    needs=("loop", "run"),
    thresholds=(STRETCHES, GROWN),
    untried="Only a change of the script can tell what keeps it.",
)


@MEMORY_GROWTH.found_by
def _check_memory_growth(session: Session) -> Iterator[Finding]:
    epochs, samples = known(session.run).whole_epochs, session.host_samples
    count = int(STRETCHES.value)
    one_training = all(one.number < other.number for one, other in pairwise(epochs))
    if not samples or not one_training or len(epochs) < count:
        return
    at, rss = [one.at_ms for one in samples], [float(one.rss_bytes) for one in samples]
    held = np.interp([epoch.end_ms for epoch in epochs], at, rss)
    medians = [float(np.median(one)) for one in np.array_split(held, count)]
    numbers = [
        float(np.median(one)) for one in np.array_split([epoch.number for epoch in epochs], count)
    ]
    each = np.diff(medians) / np.diff(numbers)
    little = held[-1] - held[0] < GROWN.value / 100.0 * held[0]
    if little or each.min() <= 0 or each.min() < _EVEN * each.mean():
        return
    grown = float(np.median(each))
    left = next((one.available_bytes for one in reversed(samples) if one.available_bytes), None)
    span = f"epochs {epochs[0].number + 1} to {epochs[-1].number + 1}"
    advice = f"The process's memory grew by {memory_size(grown)} an epoch in {span}."
    if left:
        advice += f" {memory_size(left)} are left, enough for about {left / grown:,.0f} more."
    if any(op.kind == "cache" for op in session.ops):
        advice += " A cache that is still being filled grows so, too."
    loop = known(session.diagnosed_loop())
    yield MEMORY_GROWTH.finding(
        "informative",
        advice,
        place=(loop.file, loop.line),
        evidence={"memory_growth_bytes_per_epoch": grown, "memory_left_bytes": left},
    )
