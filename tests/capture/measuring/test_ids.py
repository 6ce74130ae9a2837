"""Ids of a table, counted as by a plain pass, and tokens in front of it, read within a second."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from pipediag.capture.measuring.ids import IdTally
from pipediag.capture.runtime import LookedUp, Passage

ROWS = 300


def tally_of(*batches: Any, rows: int = ROWS, unknown: tuple[int, ...] | None = None) -> Any:
    tally = IdTally(rows, Passage("int64"), unknown)
    for number, ids in enumerate(batches, 1):
        tally.add(number, [LookedUp(np.asarray(ids))])
    return tally.recorded()


def test_the_figures_are_those_of_a_plain_pass() -> None:
    rng = np.random.default_rng(0)
    batches = [np.minimum(rng.zipf(1.3, size=(16, 12)), ROWS - 1) for _ in range(7)]
    record = tally_of(*batches, unknown=(1,))

    ids = [int(one) for batch in batches for one in batch.ravel()]
    counts = Counter(ids)
    top = math.ceil(ROWS / 100)
    assert record.batches == [1, 2, 3, 4, 5, 6, 7]
    assert (record.lookups, record.unique) == (len(ids), len(counts))
    assert record.unique_per_batch == np.mean([len(set(batch.ravel())) for batch in batches])
    assert (record.smallest, record.largest) == (min(ids), max(ids))
    assert record.top_lookups == sum(count for _, count in counts.most_common(top))
    assert record.out_of_vocabulary == counts[1]
    early = Counter(int(one) for batch in batches[:3] for one in batch.ravel())
    hot = {one for one, _ in early.most_common(top)}
    late = [int(one) for batch in batches[3:] for one in batch.ravel()]
    assert (record.top_lookups_ahead, record.lookups_ahead) == (
        sum(one in hot for one in late),
        len(late),
    )


def test_zeros_between_other_ids_are_told_from_padding() -> None:
    record = tally_of([[0, 5, 0, 6, 0], [0, 0, 0, 0, 0], [1, 2, 0, 0, 0]])

    assert (record.zero_lookups, record.zeros_within) == (11, 1)


def test_ids_outside_are_shown_with_their_batch() -> None:
    record = tally_of([1, ROWS, ROWS], [2, 3], [-1, ROWS + 5])

    assert record.outside == 4
    assert record.outside_examples == [(1, ROWS), (3, -1), (3, ROWS + 5)]


def test_ids_that_a_float_type_changes() -> None:
    tally = IdTally(1000, Passage("int64", "bfloat16"), None)
    before = np.array([[255, 256, 257, 258, 640, 642]])
    tally.add(1, [LookedUp(np.array([[255, 256, 256, 258, 640, 640]]), before)])
    record = tally.recorded()

    assert (record.cast_through, record.cast_from) == ("bfloat16", "int64")
    assert (record.changed, record.collided) == (2, 2)
    assert record.changed_examples == [(257, 256), (642, 640)]
