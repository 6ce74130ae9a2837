"""Which versions of TensorFlow can be measured.

The user's process imports it too: it imports nothing that Python has not imported itself.
"""

from __future__ import annotations

OLDEST = (2, 14)
"""Own choice: the oldest that the samples were run with. See docs/versions.md."""


def is_too_old(version: str | None) -> bool:
    """Whether that version is known to be older than the oldest that can be measured."""
    parts = (version or "").split(".")[:2]
    if len(parts) < 2 or not all(part.isdecimal() for part in parts):
        return False
    return tuple(map(int, parts)) < OLDEST


def too_old_sentence(version: str) -> str:
    """What is wrong, in one sentence."""
    oldest = ".".join(map(str, OLDEST))
    return f"TensorFlow {version} is too old for pipediag, which measures {oldest} and newer."
