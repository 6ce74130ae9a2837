"""Protobuf's wire format: fields, columns of integers, and small messages by its own library.

The message classes are made at run time in a descriptor pool of their own, so that TensorFlow need
not be installed and may be. Field numbers follow `tsl/profiler/protobuf/xplane.proto` and
`xla/service/hlo.proto`. Text fields are declared as bytes: a kernel name that is not valid UTF-8
then costs a replacement character instead of the whole profile.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from pipediag.trace.files import MalformedError

LENGTH_DELIMITED = 2
_FIXED = {1: 8, 5: 4}
_LONGEST_VARINT = 10

Span = tuple[int, int]
"""Start and end in the file."""

PACKAGE = "pipediag.xplane"
_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "int64": _Field.TYPE_INT64,
    "uint64": _Field.TYPE_UINT64,
    "double": _Field.TYPE_DOUBLE,
    "bytes": _Field.TYPE_BYTES,
}
_EVENT_TIMES = {
    "metadata_id": (1, "int64"),
    "offset_ps": (2, "int64"),
    "duration_ps": (3, "int64"),
}
# Exactly one is set, also when its value is 0.
_STAT_VALUES = {
    "double_value": (2, "double"),
    "uint64_value": (3, "uint64"),
    "int64_value": (4, "int64"),
    "str_value": (5, "bytes"),
    "bytes_value": (6, "bytes"),
    "ref_value": (7, "uint64"),
}
_MESSAGES = {
    "XSpace": {
        "planes": (1, "repeated XPlane"),
        "errors": (2, "repeated bytes"),
        "warnings": (3, "repeated bytes"),
    },
    "XPlane": {
        "name": (2, "bytes"),
        "lines": (3, "repeated XLine"),
        "event_metadata": (4, "repeated EventMetadataEntry"),
        "stat_metadata": (5, "repeated StatMetadataEntry"),
        "stats": (6, "repeated XStat"),
    },
    "EventMetadataEntry": {"key": (1, "int64"), "value": (2, "XEventMetadata")},
    "StatMetadataEntry": {"key": (1, "int64"), "value": (2, "XStatMetadata")},
    "XLine": {
        "id": (1, "int64"),
        "name": (2, "bytes"),
        "timestamp_ns": (3, "int64"),
        "events": (4, "repeated XEvent"),
        "display_name": (11, "bytes"),
    },
    "XEvent": {**_EVENT_TIMES, "stats": (4, "repeated XStat")},
    # An event may have millions of statistics, which this leaves out.
    "XEventTimes": _EVENT_TIMES,
    "XStat": {"metadata_id": (1, "int64"), **_STAT_VALUES},
    "XEventMetadata": {"name": (2, "bytes"), "stats": (5, "repeated XStat")},
    "XStatMetadata": {"name": (2, "bytes")},
    "HloProto": {"hlo_module": (1, "HloModuleProto")},
    "HloModuleProto": {"computations": (3, "repeated HloComputationProto")},
    "HloComputationProto": {
        "instructions": (2, "repeated HloInstructionProto"),
        "id": (5, "int64"),
        "root_id": (6, "int64"),
    },
    "HloInstructionProto": {
        "name": (1, "bytes"),
        "opcode": (2, "bytes"),
        "metadata": (7, "OpMetadata"),
        "id": (35, "int64"),
        "operand_ids": (36, "repeated int64"),
        "called_computation_ids": (38, "repeated int64"),
    },
    "OpMetadata": {"op_type": (1, "bytes"), "op_name": (2, "bytes")},
}


@cache
def message_classes() -> dict[str, Any]:
    """Return the message classes by name: `XSpace` is a whole `.xplane.pb` file."""
    file = descriptor_pb2.FileDescriptorProto(
        name="pipediag/xplane.proto", package=PACKAGE, syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        if name == "XStat":
            message.oneof_decl.add(name="value")
        for field_name, (number, declared) in fields.items():
            kind = declared.removeprefix("repeated ")
            field = message.field.add(
                name=field_name,
                number=number,
                label=_Field.LABEL_OPTIONAL if kind == declared else _Field.LABEL_REPEATED,
                type=_SCALARS.get(kind, _Field.TYPE_MESSAGE),
            )
            if kind not in _SCALARS:
                field.type_name = f".{PACKAGE}.{kind}"
            if name == "XStat" and field_name in _STAT_VALUES:
                field.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))
        for name in _MESSAGES
    }


def parsed(name: str, data: memoryview, spans: Iterable[Span]) -> Any:
    """Parse the message that these parts of the file make together. Raises MalformedError."""
    try:
        return message_classes()[name].FromString(b"".join(data[start:end] for start, end in spans))
    except DecodeError as error:
        raise MalformedError(f"an {name} is damaged") from error


def text(raw: bytes) -> str:
    """Decode text; bytes that are not UTF-8 cost a replacement character."""
    return raw.decode("utf-8", errors="replace")


@dataclass(frozen=True, slots=True)
class Field:
    """One field on the wire."""

    number: int
    wire_type: int
    start: int
    """Place at which its tag begins."""
    payload: int
    """Place at which its value begins."""
    end: int


def divided(
    data: memoryview, start: int, end: int, *numbers: int
) -> tuple[list[list[Field]], list[Span]]:
    """Split `data[start:end]` into the messages in the fields of these numbers, and the rest.

    The rest comes as spans of neighbouring fields, in order. Raises MalformedError where the bytes
    are no message.
    """
    wanted: dict[int, list[Field]] = {number: [] for number in numbers}
    rest: list[Span] = []
    while start < end:
        part = field_at(data, start, end)
        start = part.end
        if part.wire_type == LENGTH_DELIMITED and part.number in wanted:
            wanted[part.number].append(part)
        elif rest and rest[-1][1] == part.start:
            rest[-1] = rest[-1][0], part.end
        else:
            rest.append((part.start, part.end))
    return list(wanted.values()), rest


def field_at(data: memoryview, start: int, end: int) -> Field:
    """Find the field whose tag is at `start`. Raises MalformedError.

    Groups, which no version of XPlane has, count as damage.
    """
    tag, payload = varint_at(data, start, end)
    number, wire_type = tag >> 3, tag & 7
    if wire_type == LENGTH_DELIMITED:
        size, payload = varint_at(data, payload, end)
        after = payload + size
    elif wire_type == 0:
        _, after = varint_at(data, payload, end)
    elif wire_type in _FIXED:
        after = payload + _FIXED[wire_type]
    else:
        raise MalformedError(f"wire type {wire_type} before byte {payload}")
    if number == 0 or after > end:
        raise MalformedError(f"field {number} at byte {start} ends at byte {after} of {end}")
    return Field(number, wire_type, start, payload, after)


def varint_at(data: memoryview, start: int, end: int) -> tuple[int, int]:
    """Return the integer at `start`, and where the next byte lies. Raises MalformedError."""
    value = 0
    for place, byte in enumerate(data[start : min(end, start + _LONGEST_VARINT)]):
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value, start + place + 1
    raise MalformedError(f"the integer at byte {start} does not end")


# Many integers at a time: each byte holds seven bits, lowest first; the high bit says that another
# byte follows. Eight bytes are one 64-bit word, so that a few numpy calls decode a whole column.

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]
Positions = NDArray[np.int64]

PADDING = 24
"""Bytes that must follow the last position that is read."""

_ONE = np.uint64(1)
_CONTINUES = np.uint64(0x8080808080808080)
_PAYLOAD = np.uint64(0x7F7F7F7F7F7F7F7F)
# Each step joins neighbours into groups twice as wide: 7 bits to 14, to 28, to 56. It changes only
# what is wider than the bits at its end.
_JOIN = (
    (np.uint64(0x007F007F007F007F), np.uint64(0x7F007F007F007F00), np.uint64(1), 8),
    (np.uint64(0x00003FFF00003FFF), np.uint64(0x3FFF00003FFF0000), np.uint64(2), 16),
    (np.uint64(0x000000000FFFFFFF), np.uint64(0x0FFFFFFF00000000), np.uint64(4), 32),
)
_LOW_BYTE = np.uint64(0xFF)
_BITS_IN_BYTE = np.uint64(8)
_BITS_IN_WORD = np.uint64(56)
_PAYLOAD_BITS = np.uint64(7)
_COUNTS = np.uint64(0x0102030405060708)
"""A count of bytes for each byte that the lowest stop bit may lie in, the first one's highest."""


def words_of(data: Bytes) -> Words:
    """View the eight bytes from every position on as little-endian words, without copying."""
    count = max(0, len(data) - 7)
    return np.ndarray((count,), np.dtype("<u8"), data.data, strides=(1,))


def tagged_varints(words: Words, positions: Positions) -> tuple[Words, Words, Positions]:
    """Return the bytes at these positions, the integers behind them, and how many bytes each takes.

    More than ten bytes, or more than 64 bits, are no integer: it takes 0 bytes.
    """
    found = words[positions]
    values, lengths = short_varints(found >> _BITS_IN_BYTE)
    # A word shifted by a byte has seven left: the eighth ends every integer.
    long = np.flatnonzero(lengths == 8)
    if len(long):
        values[long], lengths[long] = _long_varints(words, positions[long] + 1)
    return found & _LOW_BYTE, values, lengths


def short_varints(words: Words) -> tuple[Words, Positions]:
    """Decode the integers in these words; 0 bytes where eight do not end one."""
    stops = ~words & _CONTINUES
    first = stops & (~stops + _ONE)
    # Without a stop bit the product is 0; with one, its highest byte is the count of bytes.
    lengths = ((first >> _PAYLOAD_BITS) * _COUNTS) >> _BITS_IN_WORD
    return _squeezed(words & (first - _ONE)), lengths.view(np.int64)


def _long_varints(words: Words, positions: Positions) -> tuple[Words, Positions]:
    low, high = words[positions], words[positions + 8]
    values, lengths = short_varints(low)
    ninth, tenth = high & _LOW_BYTE, (high >> np.uint64(8)) & _LOW_BYTE
    two_more = ninth >= 0x80
    longer = _squeezed(low) | ((ninth & np.uint64(0x7F)) << _BITS_IN_WORD)
    longer |= np.where(two_more, tenth << np.uint64(63), np.uint64(0))
    taken = np.where(two_more, np.where(tenth <= 1, 10, 0), 9)
    short = lengths > 0
    return np.where(short, values, longer), np.where(short, lengths, taken)


def _squeezed(words: Words) -> Words:
    """Join seven bits of each byte."""
    values = words & _PAYLOAD
    longest = int(words.max(initial=0)).bit_length()
    for low, high, distance, bits in _JOIN:
        if longest > bits:
            values = (values & low) | ((values & high) >> distance)
    return values
