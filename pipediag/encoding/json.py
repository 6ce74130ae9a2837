"""JSON that any program reads back as it was, and that acts on no terminal, log or page."""

from __future__ import annotations

import json

from pipediag.encoding.visible import escaped_unseen

_MARKUP = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def harmless(json_text: str) -> str:
    """The same value in characters that are seen; no line of it is a command to a CI runner."""
    return escaped_unseen(json_text).replace("##", "#\\u0023")


def in_script_element(json_text: str) -> str:
    """The same value without a character that could end a script element of HTML."""
    return harmless(json_text).translate(_MARKUP)


def dumped(value: object) -> str:
    """A value of lists, dictionaries, texts and numbers as a document of its own."""
    return harmless(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)) + "\n"


def compact(value: object) -> str:
    """The same without blanks, for a file that only a program reads."""
    return harmless(json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False))
