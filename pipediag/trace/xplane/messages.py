"""Small messages of a file, parsed by the protobuf library."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from google.protobuf.message import DecodeError

from pipediag.trace.files import MalformedError
from pipediag.trace.xplane.fields import Span
from pipediag.trace.xplane.schema import message_class


def parsed(name: str, data: memoryview, spans: Iterable[Span]) -> Any:
    """The message that these parts of the file make together. Raises MalformedError."""
    try:
        return message_class(name).FromString(b"".join(data[start:end] for start, end in spans))
    except DecodeError as error:
        raise MalformedError(f"an {name} is damaged") from error


def text(raw: bytes) -> str:
    """Text as a person reads it: what is not UTF-8 costs a replacement character."""
    return raw.decode("utf-8", errors="replace")
