"""Ctrl-C in the process of a pipediag command: one handler, from its first line to its last.

The handler raises nothing. An exception could come up anywhere, in an import, a `finally` or an
exit handler, and would end in a traceback. A command that runs no script ends in the handler. One
that does calls `finish_first`; from then on Ctrl-C is counted, and code that can end early asks
`came`. While the script runs, `runner.signals` takes the signals in place of this handler.
"""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import FrameType

INTERRUPTED = 130
"""The exit status, as shells have it for SIGINT."""
GIVE_UP_AT = 3
"""Number of times that Ctrl-C, after the script has ended, is pressed to give up the report."""

_STDERR = 2
_PR_SET_PDEATHSIG = 1
"""Constant of linux/prctl.h."""


class Interrupts:
    """Counts the Ctrl-C that this process gets, and ends it where nothing has to be finished."""

    def __init__(self) -> None:
        self._count = 0
        self._end_at = 1
        self._pid = os.getpid()

    @property
    def came(self) -> bool:
        """True once the user has asked this command, and not a script that it runs, to end."""
        return self._count > 0

    def take(self) -> None:
        """Install the handler, unless SIGINT is ignored, as `nohup` and background jobs do."""
        self._pid = os.getpid()
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, self._note)

    def finish_first(self, also_of: Iterable[signal.Signals] = ()) -> None:
        """From here on it takes `GIVE_UP_AT` Ctrl-C, or signals of `also_of`, to end the process in
        the handler."""
        self._end_at = self._count + GIVE_UP_AT
        for number in also_of:
            signal.signal(number, self._note)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self._count += 1
        left = self._end_at - self._count
        if left > 0:
            self._say(
                f"interrupted, finishing up. {left} more Ctrl-C "
                f"end{'s' if left == 1 else ''} it at once."
            )
            return
        # Before anything else, so that the next one does not come here again.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._say("interrupted.")
        os._exit(INTERRUPTED)

    def _say(self, message: str) -> None:
        # Not by `sys.stderr`, in whose code this may have come; nor from a fork of this process.
        if os.getpid() == self._pid:
            try:
                os.write(_STDERR, f"pipediag: {message}\n".encode())
            except OSError:
                return


INTERRUPTS = Interrupts()
"""Interrupts of this process."""


def ends_with_parent() -> Callable[[], object]:
    """Return what a process calls to have the kernel end it when the thread that forked it is gone.

    A process that ends in the handler, or by SIGKILL, ends no other one itself.
    """
    import ctypes
    from functools import partial

    # Looked up here, as a process between fork and exec must take no lock.
    return partial(ctypes.CDLL(None).prctl, _PR_SET_PDEATHSIG, signal.SIGKILL)
