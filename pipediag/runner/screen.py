"""The terminal that pipediag shares with the script: nobody knows where its cursor is."""

from __future__ import annotations

import os
from typing import TextIO

COLUMNS = 80
"""Where the terminal does not tell."""
ERASE_LINE = "\r\033[2K"
ERASE_TO_END = "\033[K"


def columns(stream: TextIO) -> int:
    """Characters in a line."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or COLUMNS
    except (OSError, ValueError):
        return COLUMNS


def fresh_line(stream: TextIO) -> str:
    """What brings the cursor to the start of a line on which nothing stands.

    A line's worth of blanks ends in the next line, but for a cursor that stands at the start: there
    it only fills the line. What was written before stays; a progress bar goes on one line below.
    """
    return " " * columns(stream) + "\r" + ERASE_TO_END
