"""Counts of the ids that an embedding table was looked up by.

NumPy is there, as TensorFlow has it. Ids are kept until they are counted, and none goes into the
recording but as an example.
"""

from __future__ import annotations

import math
import sys
from typing import Any

from pipediag.capture.runtime import LookedUp, Passage
from pipediag.session.recorded_loops import EmbeddingIds

_EXAMPLES = 5
_TOP_SHARE = 0.01


class IdTally:
    """Counts the ids of one table."""

    def __init__(self, rows: int, passage: Passage) -> None:
        self._np: Any = sys.modules["numpy"]
        self._rows = rows
        self._passage = passage
        self._batches: list[int] = []
        self._ids: list[Any] = []
        """Those of each batch, flat."""
        self._zeros_within = 0
        self._before: list[Any] = []
        self._after: list[Any] = []

    @property
    def lookups(self) -> int:
        return sum(len(ids) for ids in self._ids)

    def add(self, batch: int, looked_up: list[LookedUp]) -> None:
        self._ids.append(self._np.concatenate([one.ids.ravel() for one in looked_up]))
        self._batches.append(batch)
        for one in looked_up:
            self._look_at_rows(one.ids)
            if one.before is not None and one.before.size == one.ids.size:
                self._before.append(one.before.ravel())
                self._after.append(one.ids.ravel())

    def recorded(self) -> EmbeddingIds:
        """Return all that was counted, of one id at least."""
        np = self._np
        ids = np.concatenate(self._ids)
        values, counts = np.unique(ids, return_counts=True)
        top = math.ceil(_TOP_SHARE * self._rows)
        outside = (values < 0) | (values >= self._rows)
        record = EmbeddingIds(
            batches=len(self._batches),
            first_batch=min(self._batches),
            last_batch=max(self._batches),
            dtype=self._passage.dtype,
            lookups=len(ids),
            lookups_per_step=len(ids) / len(self._batches),
            unique=len(values),
            unique_per_step=float(np.mean([len(np.unique(one)) for one in self._ids])),
            smallest=int(values[0]),
            largest=int(values[-1]),
            zero_percent=100 * int(counts[values == 0].sum()) / len(ids),
            zeros_within=self._zeros_within,
            hot_percent=100 * int(np.sort(counts)[::-1][:top].sum()) / len(ids),
            hot_percent_ahead=self._hot_percent_ahead(),
            outside=int(counts[outside].sum()),
            outside_examples=self._outside_examples(),
            cast_through=self._passage.through,
        )
        self._count_casts(record)
        return record

    def _look_at_rows(self, ids: Any) -> None:
        if ids.ndim < 2 or ids.shape[-1] < 2:
            return
        np = self._np
        rows = ids.reshape(-1, ids.shape[-1])
        used = rows != 0
        before = np.logical_or.accumulate(used, axis=1)
        behind = np.logical_or.accumulate(used[:, ::-1], axis=1)[:, ::-1]
        self._zeros_within += int((~used & before & behind).sum())

    def _hot_percent_ahead(self) -> float | None:
        """Return percent of the later half's lookups by the earlier half's top ids."""
        np, half = self._np, len(self._ids) // 2
        if half == 0:
            return None
        values, counts = np.unique(np.concatenate(self._ids[:half]), return_counts=True)
        top = values[np.argsort(counts, kind="stable")[::-1][: math.ceil(_TOP_SHARE * self._rows)]]
        later = np.concatenate(self._ids[half:])
        return 100 * int(np.isin(later, top).sum()) / len(later) if len(later) else None

    def _outside_examples(self) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        for batch, ids in zip(self._batches, self._ids, strict=True):
            bad = self._np.unique(ids[(ids < 0) | (ids >= self._rows)])
            found += [(batch, int(one)) for one in bad[: _EXAMPLES - len(found)]]
        return found

    def _count_casts(self, record: EmbeddingIds) -> None:
        if not self._before:
            return
        np = self._np
        before, after = np.concatenate(self._before), np.concatenate(self._after)
        record.cast_from = str(before.dtype)
        different = before != after
        record.changed = int(different.sum())
        pairs = np.unique(np.stack([before[different], after[different]]), axis=1)
        record.changed_examples = [(int(b), int(a)) for b, a in pairs.T[:_EXAMPLES]]
        record.collided = len(np.unique(before)) - len(np.unique(after))
