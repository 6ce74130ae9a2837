"""A terminal in place of another one, for a program whose output is looked through on its way."""

from __future__ import annotations

import fcntl
import pty
import termios
from contextlib import suppress

_OUTPUT_FLAGS = 1
"""Where `tcgetattr` has them."""
_SIZE_BYTES = 8


def terminal_like(shown: int) -> tuple[int, int]:
    """The end to read from, and a terminal as the one behind the descriptor `shown` is.

    Line ends pass it as they are: the one that is shown makes of them what it makes of all others.

    Raises:
        OSError: there is none left.
    """
    reading, terminal = pty.openpty()
    # It was hung up just now, or is of a kind with no such settings.
    with suppress(termios.error):
        settings = termios.tcgetattr(shown)
        settings[_OUTPUT_FLAGS] &= ~termios.OPOST
        termios.tcsetattr(terminal, termios.TCSANOW, settings)
    copy_size(shown, terminal)
    return reading, terminal


def copy_size(shown: int, terminal: int) -> None:
    """Give the terminal as many lines and columns as the other one has."""
    with suppress(OSError):
        size = fcntl.ioctl(shown, termios.TIOCGWINSZ, bytes(_SIZE_BYTES))
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)
