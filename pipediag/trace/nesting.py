"""Which event of a line lies directly inside which."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pipediag.trace.reader import Line


def nested_events(line: Line, name_ids: Iterable[int]) -> dict[int, list[int]]:
    """The chosen events of a line, by start, each with the chosen events directly inside it.

    One thread's events nest or are disjoint: each is written where a C++ scope ends.
    """
    children: dict[int, list[int]] = {}
    open_events: list[int] = []
    for index in np.flatnonzero(line.named(name_ids)).tolist():
        while open_events and line.end_ns[open_events[-1]] <= line.start_ns[index]:
            open_events.pop()
        children[index] = []
        if open_events:
            children[open_events[-1]].append(index)
        open_events.append(index)
    return children
