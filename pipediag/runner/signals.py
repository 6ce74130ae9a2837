"""Signals that reach the parent while the script runs: which ones the child must get from us."""

from __future__ import annotations

import signal
from collections.abc import Iterator

FORWARDED = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})

SI_KERNEL = 0x80
"""Linux: the terminal sent it, and so to the child as well, which is in the same group."""


class HeldSignals:
    """Holds back the signals in `FORWARDED` from this thread while a child runs.

    A signal that was ignored when we were started, as `nohup` does, is ignored by the child too.
    """

    def __enter__(self) -> HeldSignals:
        self.mask_before = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
        return self

    def __exit__(self, *exception: object) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self.mask_before)

    def restore_in_child(self) -> None:
        """For the child, between fork and exec: a blocked signal would stay blocked."""
        signal.pthread_sigmask(signal.SIG_SETMASK, self.mask_before)

    def to_forward(self) -> Iterator[int]:
        """Signals that have arrived and that the child has not had from the terminal already."""
        while (arrived := signal.sigtimedwait(FORWARDED, 0)) is not None:
            if arrived.si_code != SI_KERNEL:
                yield arrived.si_signo
