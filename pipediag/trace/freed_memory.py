"""Memory that a process has freed stays its own."""

from __future__ import annotations

import ctypes

# As in glibc's malloc.h; elsewhere there is no `mallopt`.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3


def keep_freed_memory() -> None:
    """Lets the next allocation use what the last one has freed.

    Columns come and go by the megabyte while a profile is read. glibc gives each of that size back
    to the system, which hands out the next filled with zeros, page by page: with 3 million events,
    a fifth of the time. For processes that do nothing else and then end.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return
    mallopt(_TRIM_THRESHOLD, 512 << 20)
    mallopt(_TOP_PAD, 16 << 20)
    mallopt(_MMAP_THRESHOLD, 32 << 20)
