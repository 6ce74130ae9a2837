"""The XSpace message classes, made at run time, so that TensorFlow need not be installed.

Field numbers follow `tsl/profiler/protobuf/xplane.proto`, and `xla/service/hlo.proto` for as much
as is read of the programs that XLA compiled. Text fields are declared as bytes: on the
wire the two are the same, and a kernel name that is not valid UTF-8 then costs a replacement
character instead of the whole profile. The classes live in a descriptor pool of their own, so that
they never meet TensorFlow's registration of the same file.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE = "pipediag.xplane"

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "int64": _Field.TYPE_INT64,
    "uint64": _Field.TYPE_UINT64,
    "double": _Field.TYPE_DOUBLE,
    "bytes": _Field.TYPE_BYTES,
}

# message -> (field, number, type, repeated); a type that is not a scalar names a message.
_MESSAGES: dict[str, tuple[tuple[str, int, str, bool], ...]] = {
    "XSpace": (
        ("planes", 1, "XPlane", True),
        ("errors", 2, "bytes", True),
        ("warnings", 3, "bytes", True),
        ("hostnames", 4, "bytes", True),
    ),
    "XPlane": (
        ("id", 1, "int64", False),
        ("name", 2, "bytes", False),
        ("lines", 3, "XLine", True),
        ("event_metadata", 4, "EventMetadataEntry", True),
        ("stat_metadata", 5, "StatMetadataEntry", True),
        ("stats", 6, "XStat", True),
    ),
    "EventMetadataEntry": (("key", 1, "int64", False), ("value", 2, "XEventMetadata", False)),
    "StatMetadataEntry": (("key", 1, "int64", False), ("value", 2, "XStatMetadata", False)),
    "XLine": (
        ("id", 1, "int64", False),
        ("name", 2, "bytes", False),
        ("timestamp_ns", 3, "int64", False),
        ("events", 4, "XEvent", True),
        ("duration_ps", 9, "int64", False),
        ("display_id", 10, "int64", False),
        ("display_name", 11, "bytes", False),
    ),
    "XEvent": (
        ("metadata_id", 1, "int64", False),
        ("offset_ps", 2, "int64", False),
        ("duration_ps", 3, "int64", False),
        ("stats", 4, "XStat", True),
        ("num_occurrences", 5, "int64", False),
    ),
    # An XEvent's fields without its statistics: an event may hold millions of them.
    "XEventTimes": (
        ("metadata_id", 1, "int64", False),
        ("offset_ps", 2, "int64", False),
        ("duration_ps", 3, "int64", False),
    ),
    "XStat": (
        ("metadata_id", 1, "int64", False),
        ("double_value", 2, "double", False),
        ("uint64_value", 3, "uint64", False),
        ("int64_value", 4, "int64", False),
        ("str_value", 5, "bytes", False),
        ("bytes_value", 6, "bytes", False),
        ("ref_value", 7, "uint64", False),
    ),
    "XEventMetadata": (
        ("id", 1, "int64", False),
        ("name", 2, "bytes", False),
        ("metadata", 3, "bytes", False),
        ("display_name", 4, "bytes", False),
        ("stats", 5, "XStat", True),
        ("child_id", 6, "int64", True),
    ),
    "XStatMetadata": (
        ("id", 1, "int64", False),
        ("name", 2, "bytes", False),
        ("description", 3, "bytes", False),
    ),
    "HloProto": (("hlo_module", 1, "HloModuleProto", False),),
    "HloModuleProto": (("computations", 3, "HloComputationProto", True),),
    "HloComputationProto": (
        ("instructions", 2, "HloInstructionProto", True),
        ("id", 5, "int64", False),
        ("root_id", 6, "int64", False),
    ),
    "HloInstructionProto": (
        ("name", 1, "bytes", False),
        ("opcode", 2, "bytes", False),
        ("metadata", 7, "OpMetadata", False),
        ("id", 35, "int64", False),
        ("operand_ids", 36, "int64", True),
        ("called_computation_ids", 38, "int64", True),
    ),
    "OpMetadata": (("op_type", 1, "bytes", False), ("op_name", 2, "bytes", False)),
}

# The members of a oneof: exactly one is set, also when its value is 0.
_STAT_VALUES = (
    "double_value",
    "uint64_value",
    "int64_value",
    "str_value",
    "bytes_value",
    "ref_value",
)


def message_class(name: str) -> Any:
    """The message class of that name: `XSpace` is a whole `.xplane.pb` file."""
    return _classes()[name]


@cache
def _classes() -> dict[str, Any]:
    pool = descriptor_pool.DescriptorPool()
    pool.Add(_file())
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))
        for name in _MESSAGES
    }


def _file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(
        name="pipediag/xplane.proto", package=PACKAGE, syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        if name == "XStat":
            message.oneof_decl.add(name="value")
        for field_name, number, kind, repeated in fields:
            field = message.field.add(
                name=field_name,
                number=number,
                label=_Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL,
                type=_SCALARS.get(kind, _Field.TYPE_MESSAGE),
            )
            if kind not in _SCALARS:
                field.type_name = f".{PACKAGE}.{kind}"
            if name == "XStat" and field_name in _STAT_VALUES:
                field.oneof_index = 0
    return file
