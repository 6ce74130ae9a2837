"""Times `predict_on_batch` against the script's own calls of `predict` on little data.

`predict` makes a dataset and an iterator in each call: on one small machine 99 ms for 2,000 rows,
of which `predict_on_batch` took 0.8 ms. Only in a run in which trials are made, which is ended.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from pipediag.capture.callsites import CallSite, call_site
from pipediag.capture.timeline import Timeline
from pipediag.session.recording import Prediction

_SEEN = 5
"""Calls of one line before it is timed: what is called less often is not worth it."""
_PAIRS = 8
_MOST_BYTES = 64 * 1024 * 1024
"""Of the data of one call: all of it goes through the model at once."""
_KNOWN = frozenset({"x", "batch_size", "verbose", "steps", "callbacks"})
_RELATIVE, _ABSOLUTE = 1e-4, 1e-5
"""How far results may be apart: other batch sizes add up in another order."""


class PredictTrials:
    """Pairs of calls, by the line that calls `predict`."""

    def __init__(self, predictions: list[Prediction], timeline: Timeline) -> None:
        self._predictions = predictions
        self._timeline = timeline
        self._calls: dict[tuple[str, int], int] = {}

    def called(
        self, took_ns: int, result: Any, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Time the other call after one of the script's, if its line calls often."""
        site = call_site()
        if site is None or site.by_framework:
            return
        place = (site.file, site.line)
        self._calls[place] = calls = self._calls.get(place, 0) + 1
        if calls <= _SEEN or calls > _SEEN + _PAIRS:
            return
        given = dict(zip(("x", "batch_size", "verbose", "steps", "callbacks"), args, strict=False))
        given.update(kwargs)
        found = self._prediction(site, calls == _SEEN + 1)
        if found is None:
            return
        began_ns = time.monotonic_ns()
        try:
            self._compare(found, took_ns, result, model, given)
        except Exception as error:
            found.lacking = f"`predict_on_batch` raised {type(error).__name__}."
        finally:
            self._timeline.passed("aside", began_ns, time.monotonic_ns())

    def _prediction(self, site: CallSite, first: bool) -> Prediction | None:
        if first:
            self._predictions.append(Prediction(site.file, site.line, 0))
        place = (site.file, site.line)
        found = next((one for one in self._predictions if (one.file, one.line) == place), None)
        return None if found is None or found.lacking else found

    def _compare(
        self, found: Prediction, took_ns: int, result: Any, model: Any, given: dict[str, Any]
    ) -> None:
        data, others = given.get("x"), given.keys() - _KNOWN
        if others or given.get("steps") is not None or given.get("callbacks"):
            found.lacking = "`predict` is called with arguments that `predict_on_batch` lacks."
            return
        arrays = list(_leaves(data))
        if any(not _is_array(each) for each in arrays) or not arrays:
            found.lacking = "The data are no arrays."
            return
        if sum(each.nbytes if hasattr(each, "nbytes") else 0 for each in arrays) > _MOST_BYTES:
            found.lacking = "The data are too many for one batch."
            return
        if not found.on_batch_ms:
            model.predict_on_batch(data)  # traces
        start_ns = time.perf_counter_ns()
        other = model.predict_on_batch(data)
        on_batch_ns = time.perf_counter_ns() - start_ns
        if not _alike(result, other):
            found.lacking = "`predict_on_batch` gives other values."
            return
        found.rows = int(arrays[0].shape[0])
        found.predict_ms.append(took_ns / 1e6)
        found.on_batch_ms.append(on_batch_ns / 1e6)


def _leaves(data: Any) -> Iterator[Any]:
    """Arrays in lists, tuples and dictionaries."""
    if isinstance(data, dict):
        data = list(data.values())
    if isinstance(data, list | tuple):
        for each in data:
            yield from _leaves(each)
    else:
        yield data


def _is_array(value: Any) -> bool:
    """Return whether it is a NumPy array or a tensor: a dataset and a generator have no shape."""
    shape = getattr(value, "shape", None)
    return shape is not None and len(shape) > 0 and hasattr(value, "dtype")


def _alike(one: Any, other: Any) -> bool:
    ones, others = list(_leaves(one)), list(_leaves(other))
    return len(ones) == len(others) and all(map(_close, ones, others))


def _close(one: Any, other: Any) -> bool:
    if getattr(one, "shape", None) != getattr(other, "shape", None):
        return False
    if not one.size:
        return True
    if one.dtype.kind not in "fc":
        return bool((one == other).all())
    return bool((abs(one - other) <= _ABSOLUTE + _RELATIVE * abs(other)).all())
