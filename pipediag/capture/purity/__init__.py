"""Whether Python of the script may be called more often than the script calls it."""

from __future__ import annotations

from pipediag.capture.purity.harmless import doubt

__all__ = ["doubt"]
