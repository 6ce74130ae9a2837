"""Signals that reach the parent while the script runs, and what a death by one means."""

from __future__ import annotations

import math
import os
import resource
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pipediag.interrupts import INTERRUPTS, ends_with_parent


def describe_death(number: int) -> str:
    """Return one sentence on a process that signal `number` ended."""
    name = f"signal {number}"
    with suppress(ValueError):
        name = signal.Signals(number).name
    if number == signal.SIGKILL:
        return (
            f"It was killed ({name}), often by the kernel because memory ran out: look for "
            "'Out of memory' in the kernel log."
        )
    if number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT):
        return f"It crashed in native code ({name})."
    return f"It was ended by {name}."


def die_by(number: int) -> None:
    """End this process by the same signal, without a second core file."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


FORWARDED = frozenset(
    signal.Signals[f"SIG{name}"]
    for name in "INT TERM HUP QUIT USR1 USR2 ALRM VTALRM PROF IO PWR WINCH CONT".split()
)
"""Signals that others send to a program to end it or to tell it something."""

_SI_KERNEL = 0x80
"""Code of asm-generic/siginfo.h for signals that the kernel sends, as for a terminal."""

_LOOK_S = 0.2
"""Seconds after which `wait_for` asks again whether Ctrl-C came."""


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


def wait_for(process: subprocess.Popen[bytes], limit_s: float | None) -> None:
    """Wait until a process has ended, whatever runs on that it has started. Raises
    subprocess.TimeoutExpired, or KeyboardInterrupt at Ctrl-C: it runs on."""
    give_up_at = time.monotonic() + (math.inf if limit_s is None else limit_s)
    while True:
        if INTERRUPTS.came:
            raise KeyboardInterrupt
        left_s = give_up_at - time.monotonic()
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=max(0.0, min(_LOOK_S, left_s)))
            return
        if left_s <= _LOOK_S:
            raise subprocess.TimeoutExpired(process.args, limit_s or 0.0)


class HeldSignals:
    """Holds back the signals in `FORWARDED` from this thread while a child runs.

    On a terminal the child stays in our process group: Ctrl-C, a hang-up and a new size reach both
    from the kernel, and job control is the shell's. Elsewhere it has a group of its own, so that a
    signal to our group reaches it once, from us.
    """

    def __enter__(self) -> HeldSignals:
        self._end_with_us = ends_with_parent()
        self._shares_terminal = _has_terminal()
        self._mask_before = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
        if INTERRUPTS.came:
            # Just before: it is for the child, as any that comes from here on. Sent to this thread,
            # as another one that does not block it would take what is sent to the process.
            signal.raise_signal(signal.SIGINT)
        return self

    def __exit__(self, *exception: object) -> None:
        # What came while the child ran was meant for it; the child may have ended by it.
        for _ in _arrived():
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask_before)

    def prepare(self, *blocked: int) -> None:
        """Set up the child between fork and exec, with these signals blocked too.

        A child that unblocks SIGINT itself, as the last thing before the script, shows no traceback
        of the interpreter's start, or of ours, at Ctrl-C. SIGKILL cannot be passed on, but whoever
        sends it to us means the script.
        """
        self._end_with_us()
        if not self._shares_terminal:
            os.setpgid(0, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, {*self._mask_before, *blocked})

    def to_forward(self) -> Iterator[int]:
        """Return the signals that have arrived here and did not reach the child by themselves."""
        for number, from_kernel in _arrived():
            if not (from_kernel and self._shares_terminal):
                yield number


def _arrived() -> Iterator[tuple[int, bool]]:
    """Return the blocked signals that this process was sent, and if the kernel sent them."""
    while (found := signal.sigtimedwait(FORWARDED, 0)) is not None:
        yield found.si_signo, found.si_code == _SI_KERNEL


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True
