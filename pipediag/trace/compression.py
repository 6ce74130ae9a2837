"""Profiles packed by gzip, unpacked without trusting what they claim."""

from __future__ import annotations

import zlib

from pipediag.trace.malformed import MalformedError, TooLargeError

GZIP = b"\x1f\x8b"
LARGEST_UNPACKED_BYTES = 1 << 30
"""Traces of some minutes unpack to a few hundred megabytes; a bomb unpacks to anything."""

MOST_MEMBERS = 1 << 20
"""A gzip file may be many, one after the other: block gzip has one for every 64 KiB."""

_PACKED_BYTES = 1 << 14
_UNPACKED_BYTES = 1 << 20
_GZIP_WINDOW = 31


def unpacked(packed: memoryview) -> memoryview:
    """The content of a gzip file; zeros after its end are padding, as for gzip itself.

    Raises:
        MalformedError: it is damaged or was cut short.
        TooLargeError: it unpacks to more than `LARGEST_UNPACKED_BYTES`, or has too many members.
    """
    content = bytearray()
    at = 0
    for _ in range(MOST_MEMBERS):
        at = _unpack_member(packed, at, content)
        if at == len(packed) or _only_zeros(packed, at):
            return memoryview(content).toreadonly()
    raise TooLargeError(f"it is packed in more than {MOST_MEMBERS} pieces")


def _unpack_member(packed: memoryview, at: int, content: bytearray) -> int:
    """Unpacks the member at that place; returns where the next one begins."""
    member = zlib.decompressobj(_GZIP_WINDOW)
    while not member.eof:
        piece: bytes | memoryview = member.unconsumed_tail
        if not piece:
            if at >= len(packed):
                raise MalformedError("its gzip stream was cut short")
            piece = packed[at : at + _PACKED_BYTES]
            at += len(piece)
        try:
            content += member.decompress(piece, _UNPACKED_BYTES)
        except zlib.error as error:
            raise MalformedError("its gzip stream is damaged") from error
        if len(content) > LARGEST_UNPACKED_BYTES:
            raise TooLargeError(f"it unpacks to more than {LARGEST_UNPACKED_BYTES >> 20} MiB")
    return at - len(member.unused_data)


def _only_zeros(packed: memoryview, at: int) -> bool:
    while at < len(packed):
        if any(packed[at : at + _PACKED_BYTES]):
            return False
        at += _PACKED_BYTES
    return True
