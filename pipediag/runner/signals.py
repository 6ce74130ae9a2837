"""Signals that reach the parent while the script runs: which ones the child must get from us."""

from __future__ import annotations

import ctypes
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial

from pipediag.runner.witness import Witness, arrived

FORWARDED = frozenset(
    {
        signal.SIGINT,
        signal.SIGTERM,
        signal.SIGHUP,
        signal.SIGQUIT,
        signal.SIGUSR1,
        signal.SIGUSR2,
        signal.SIGALRM,
        signal.SIGVTALRM,
        signal.SIGPROF,
        signal.SIGIO,
        signal.SIGPWR,
        signal.SIGWINCH,
        signal.SIGCONT,
    }
)
"""What others send to a program to end it or to tell it something."""

IN_TURN_S = 0.05
"""Time in which a sender that signals one process after the other is through with a few."""

_PR_SET_PDEATHSIG = 1
"""From linux/prctl.h."""


def ended_with_us() -> Callable[[], object]:
    """For a child between fork and exec: the kernel ends it when this process is gone."""
    # Looked up here, as the child must take no lock.
    return partial(ctypes.CDLL(None).prctl, _PR_SET_PDEATHSIG, signal.SIGKILL)


class HeldSignals:
    """Holds back the signals in `FORWARDED` from this thread while a child runs.

    A signal that was ignored when we were started, as `nohup` does, is ignored by the child too.
    """

    def __enter__(self) -> HeldSignals:
        self._end_with_us = ended_with_us()
        self._mask_before = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
        self._witness = Witness(FORWARDED)
        return self

    def __exit__(self, *exception: object) -> None:
        self._witness.dismiss()
        # What came while the child ran was meant for it; the child may have ended by it.
        for _ in arrived(FORWARDED):
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask_before)

    def prepare_child(self) -> None:
        """For the child, between fork and exec.

        A blocked signal would stay blocked. SIGKILL cannot be passed on, but whoever sends it to us
        means the script.
        """
        self._end_with_us()
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask_before)

    def to_forward(self) -> Iterator[int]:
        """Signals that have arrived here, but not at every process beside us."""
        ours = list(arrived(FORWARDED))
        if not ours:
            return
        time.sleep(IN_TURN_S)
        ours += arrived(FORWARDED)
        had = self._witness.has_had()
        yield from dict.fromkeys(number for number, sender in ours if (number, sender) not in had)
