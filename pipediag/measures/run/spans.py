"""The run as it passed: stretches of one part after the other, as a timeline draws them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from pipediag.measures.run.places import Spent
from pipediag.session.ledger import RunSpan

MOST_SPANS = 500
"""Own choice: a thousand epochs have some thousands, each of them 100 bytes of JSON, and a screen
shows no more than the longest."""


def run_spans(spent: Iterable[Spent], started_ns: int) -> tuple[list[RunSpan], int]:
    """The longest stretches in order of time, and how many shorter ones are left out.

    `started_ns` is the recording's, from which steps and windows count.
    """
    spans = [
        RunSpan(
            part=one.place.part,
            start_ms=(one.start_ns - started_ns) / 1e6,
            duration_ms=one.ns / 1e6,
            what=one.place.what,
        )
        for one in _joined(spent)
        if one.ns > 0
    ]
    kept = sorted(spans, key=lambda span: -span.duration_ms)[:MOST_SPANS]
    return sorted(kept, key=lambda span: span.start_ms), len(spans) - len(kept)


def _joined(spent: Iterable[Spent]) -> Iterator[Spent]:
    """Neighbours that are the same to a reader are one."""
    last: Spent | None = None
    for one in spent:
        if last is not None and last.end_ns == one.start_ns and last.place == one.place:
            last = replace(last, end_ns=one.end_ns)
            continue
        if last is not None:
            yield last
        last = one
    if last is not None:
        yield last
