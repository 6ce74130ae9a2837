"""Builds the recorded pipeline again inside the user's process, with changes."""

from __future__ import annotations

from pipediag.capture.replay.changes import MOVED_LAYERS, model_settings, skipped_callbacks
from pipediag.capture.replay.rebuilding import FilledCaches, rebuild
from pipediag.capture.replay.refusal import NotReplayableError
from pipediag.capture.replay.verification import verify

__all__ = [
    "MOVED_LAYERS",
    "FilledCaches",
    "NotReplayableError",
    "model_settings",
    "rebuild",
    "skipped_callbacks",
    "verify",
]
