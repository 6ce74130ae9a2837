"""Reading JSON that a stranger may have written: limits on its size, depth and numbers."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path
from typing import Any

from pipediag.encoding.text import without_surrogates
from pipediag.errors import PipediagError

MOST_BYTES = 128 * 2**20
"""A session of half a million steps is smaller; one of this size takes gigabytes to read."""
_PIECE_BYTES = 2**16
LARGEST = 2.0**64
"""No count or time is greater. Sums of numbers up to it cannot overflow."""
_LONGEST_INTEGER = 20
"""Digits of the largest one, a sign left out."""
_PERHAPS_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")


def read_limited(file: Path) -> bytes:
    """The file's bytes.

    Raises:
        PipediagError: it is larger than `MOST_BYTES`.
        OSError: it cannot be read.
    """
    pieces: list[bytes] = []
    left = MOST_BYTES + 1
    with file.open("rb") as stream:
        # A read of so many bytes claims memory for all of them, however short the file is.
        while left > 0 and (piece := stream.read(min(left, _PIECE_BYTES))):
            pieces.append(piece)
            left -= len(piece)
    if left <= 0:
        raise PipediagError(
            f"{file} is larger than {MOST_BYTES >> 20} MiB, which no session is, so it was not "
            "read. Name a session.json that `pipediag analyze` wrote."
        )
    return b"".join(pieces)


def is_regular(file: Path) -> bool:
    """Whether reading it ends; a pipe would be waited for. Raises OSError where it is not there."""
    return stat.S_ISREG(file.stat().st_mode)


def parse_json(content: bytes) -> Any:
    """The value, in which every text is one that UTF-8 can hold.

    Raises:
        ValueError: no JSON, nested too deeply, or with a number that no measurement gives; the
            message is the end of a sentence.
    """
    try:
        text = content.decode(json.detect_encoding(content), "surrogatepass")
        value = json.loads(
            text, parse_float=_real, parse_int=_whole, parse_constant=_refuse_constant
        )
        return storable(value) if _PERHAPS_SURROGATE.search(text) else value
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except MemoryError as error:
        raise ValueError("it takes more memory than there is") from error


def storable(value: Any) -> Any:
    """The same lists, objects and texts, without what UTF-8 cannot hold."""
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable(item) for item in value]
    return value


def _real(digits: str) -> float:
    value = float(digits)
    if not -LARGEST <= value <= LARGEST:
        raise ValueError(f"it holds the number {digits[:_LONGEST_INTEGER]}, which is too large")
    return value


def _whole(digits: str) -> int:
    if len(digits.lstrip("-")) > _LONGEST_INTEGER or abs(int(digits)) > LARGEST:
        raise ValueError(f"it holds a number of {len(digits)} digits, which is too large")
    return int(digits)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"it holds {name}, which is no number of JSON")
