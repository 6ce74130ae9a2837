"""JSON that any program reads back as it was, and that acts on no terminal, log or page."""

from __future__ import annotations

import json

from pipediag.encoding.visible import escaped_unseen


def harmless(json_text: str) -> str:
    """The same value in characters that are seen; no line of it is a command to a CI runner."""
    return escaped_unseen(json_text).replace("##", "#\\u0023")


def dumped(value: object) -> str:
    """Return a value of lists, dictionaries, texts and numbers as one line of JSON."""
    return harmless(json.dumps(value, ensure_ascii=False, allow_nan=False)) + "\n"
