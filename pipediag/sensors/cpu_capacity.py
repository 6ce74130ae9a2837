"""How much work the CPUs do together: two threads of one core are two CPUs to the system."""

from __future__ import annotations

import statistics
import threading
import time
import zlib
from functools import cache

ROUNDS = 5
ROUND_S = 0.03
_CHUNK = bytes(range(256)) * 64
"""Compressing it takes a fraction of a millisecond without the interpreter lock."""


@cache
def cpu_capacity(threads: int) -> float:
    """What so many threads get done at once, in times of what one does alone; at most `threads`.

    The median of a few short rounds, alone and together in turn, so about 0.3 s once a process. It
    is less than `threads` where CPUs share a core, slow each other down, or are used by others. The
    caller sees to it that nothing of its own runs meanwhile.
    """
    if threads <= 1:
        return 1.0
    ratios = [_chunks(threads) / max(1, _chunks(1)) for _ in range(ROUNDS)]
    return min(float(threads), max(1.0, statistics.median(ratios)))


def _chunks(threads: int) -> int:
    """Chunks that these threads together compress in one round."""
    done = [0] * threads
    ready = threading.Barrier(threads)

    def work(place: int) -> None:
        ready.wait()
        end = time.perf_counter() + ROUND_S
        while time.perf_counter() < end:
            zlib.compress(_CHUNK, 6)
            done[place] += 1

    workers = [threading.Thread(target=work, args=(place,)) for place in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(done)
