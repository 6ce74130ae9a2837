"""Messages of a profile, which the protobuf library parses.

The message classes are made at run time in a descriptor pool of their own, so that TensorFlow need
not be installed and may be. Field numbers follow `tsl/profiler/protobuf/xplane.proto` and
`xla/service/hlo.proto`. Text fields are declared as bytes: a kernel name that is not valid UTF-8
then costs a replacement character instead of the whole profile.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from pipediag.trace.files import MalformedError

PACKAGE = "pipediag.xplane"
_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "int64": _Field.TYPE_INT64,
    "uint64": _Field.TYPE_UINT64,
    "double": _Field.TYPE_DOUBLE,
    "bytes": _Field.TYPE_BYTES,
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
    "XEvent": {
        "metadata_id": (1, "int64"),
        "offset_ps": (2, "int64"),
        "duration_ps": (3, "int64"),
        "stats": (4, "repeated XStat"),
    },
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


def message_class(name: str) -> Any:
    """Return the message class of that name: `XSpace` is a whole `.xplane.pb` file."""
    return _classes()[name]


@cache
def _classes() -> dict[str, Any]:
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


def parsed(name: str, data: bytes) -> Any:
    """Parse a message. Raises MalformedError."""
    try:
        return message_class(name).FromString(data)
    except DecodeError as error:
        raise MalformedError(f"its {name} message is damaged") from error


def text(raw: bytes) -> str:
    """Decode text; bytes that are not UTF-8 cost a replacement character."""
    return raw.decode("utf-8", errors="replace")
