"""Standard descriptors that whoever started us had closed, as `>&-` does."""

from __future__ import annotations

import os

STANDARD = (0, 1, 2)


def occupy_closed() -> list[int]:
    """Open the null device as each standard descriptor that is closed; return these.

    Otherwise a file or pipe of ours would become one, and whatever is printed would go there. No
    program that is started inherits them: it finds them closed, as it would without us.
    """
    occupied = []
    for descriptor in STANDARD:
        try:
            os.fstat(descriptor)
        except OSError:
            # The system gives out the lowest number that is free.
            if os.open(os.devnull, os.O_RDWR) == descriptor:
                occupied.append(descriptor)
    return occupied
