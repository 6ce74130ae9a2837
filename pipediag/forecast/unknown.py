"""What the model can't say, and why."""

from __future__ import annotations


class UnknownError(Exception):
    """What was measured does not tell; the message is a sentence for the reader."""
