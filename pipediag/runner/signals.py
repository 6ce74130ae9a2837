"""Signals that reach the parent while the script runs: which ones the child must get from us."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pipediag.interrupts import INTERRUPTS, ends_with_parent
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

_LOOK_S = 0.2
"""How often `wait_for` asks whether Ctrl-C came."""


@contextmanager
def held_back() -> Iterator[None]:
    """Block the signals in `FORWARDED` meanwhile, for good in threads that begin meanwhile.

    A thread such as NumPy starts when it is imported would take a signal that `HeldSignals` holds.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def are_interrupts_blocked() -> bool:
    """Return True where whoever started this process had SIGINT blocked."""
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def wait_for(process: subprocess.Popen[bytes], limit_s: float | None) -> bytes:
    """Wait until a process has ended; return what it has written to standard error.

    Raises:
        subprocess.TimeoutExpired: it has not ended within the limit; it runs on.
        KeyboardInterrupt: Ctrl-C came; it runs on.
    """
    give_up_at = None if limit_s is None else time.monotonic() + limit_s
    while True:
        if INTERRUPTS.came:
            raise KeyboardInterrupt
        left_s = _LOOK_S if give_up_at is None else give_up_at - time.monotonic()
        try:
            return process.communicate(timeout=max(0.0, min(_LOOK_S, left_s)))[1]
        except subprocess.TimeoutExpired:
            if left_s <= _LOOK_S and limit_s is not None:
                raise subprocess.TimeoutExpired(process.args, limit_s) from None


class HeldSignals:
    """Holds back the signals in `FORWARDED` from this thread while a child runs.

    A signal that was ignored when we were started, as `nohup` does, is ignored by the child too.
    """

    def __enter__(self) -> HeldSignals:
        self._end_with_us = ends_with_parent()
        self._mask_before = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
        if INTERRUPTS.came:
            # Just before: it is for the child, as any that comes from here on. Sent to this thread,
            # as another one that does not block it would take what is sent to the process.
            signal.raise_signal(signal.SIGINT)
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

    def prepare_script(self) -> None:
        """The same, where the child unblocks SIGINT itself, as the last thing before the script.

        Until then Ctrl-C would show a traceback of the interpreter's start, or of ours.
        """
        self._end_with_us()
        signal.pthread_sigmask(signal.SIG_SETMASK, {*self._mask_before, signal.SIGINT})

    def to_forward(self) -> Iterator[int]:
        """Signals that have arrived here, but not at every process beside us."""
        ours = list(arrived(FORWARDED))
        if not ours:
            return
        time.sleep(IN_TURN_S)
        ours += arrived(FORWARDED)
        had = self._witness.has_had()
        yield from dict.fromkeys(number for number, sender in ours if (number, sender) not in had)
