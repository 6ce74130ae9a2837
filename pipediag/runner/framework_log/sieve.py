"""Standard error without the lines to fold: all the rest passes as it is, and at once."""

from __future__ import annotations

from collections.abc import Callable

from pipediag.runner.framework_log.lines import behind, folds, may_begin

MOST_HELD = 1 << 16
"""Bytes of an unfinished line; the framework writes a line at once."""


class Sieve:
    """Takes bytes as they come in, whole lines or not.

    Only a line that begins as one to fold is held back until it is whole, or `give_up` is called.
    """

    def __init__(self, fold: Callable[[bytes], None]) -> None:
        self._fold = fold
        """Called with each line that is folded, without its end."""
        self._held = b""
        self._within = False
        """Whether the start of the line that goes on has passed already."""
        self._bar = False
        """Whether that line was drawn over, as progress bars do. What others log meanwhile stands
        right behind them."""
        self._after_folded = False

    @property
    def holds(self) -> bool:
        """Whether something is held back."""
        return bool(self._held)

    def give_up(self) -> bytes:
        """What was held back: it passes, and so does the rest of its line."""
        held, self._held = self._held, b""
        return self._passed(held) if held else b""

    def feed(self, data: bytes) -> bytes:
        """What passes now."""
        data, self._held = self._held + data, b""
        passing = []
        start = 0
        while start < len(data):
            end = data.find(b"\n", start) + 1 or len(data)
            passing.append(self._sifted(data[start:end]))
            start = end
        return b"".join(passing)

    def _sifted(self, piece: bytes) -> bytes:
        """What passes of the rest of a line, or of as much of it as is there."""
        whole = piece.endswith(b"\n")
        if not self._within:
            if whole and folds(piece, self._after_folded):
                return self._folded(piece)
            if not whole and len(piece) < MOST_HELD and may_begin(piece, self._after_folded):
                self._held = piece
                return b""
        if whole:
            bar_until = 0 if self._bar else piece.find(b"\r") + 1
            if self._bar or bar_until:
                at = behind(piece, bar_until)
                if at >= 0:
                    self._within = self._bar = True
                    return piece[:at] + self._folded(piece[at:])
        return self._passed(piece)

    def _folded(self, line: bytes) -> bytes:
        self._fold(line.rstrip(b"\n"))
        self._after_folded = True
        return b""

    def _passed(self, piece: bytes) -> bytes:
        self._within = not piece.endswith(b"\n")
        self._bar = self._within and (self._bar or b"\r" in piece)
        self._after_folded = False
        return piece
