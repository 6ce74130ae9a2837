"""The parts of a Kineto trace that pipediag reads; msgspec skips all others without storing them.

Values are taken as they come: who reads them looks at their type.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec


class Arguments(msgspec.Struct):
    """What an event says of itself; each may be missing."""

    name: Any = None
    device: Any = None
    stream: Any = None
    correlation: Any = None
    bytes: Any = None
    external_id: Any = msgspec.field(name="External id", default=None)
    old_external_id: Any = msgspec.field(name="external id", default=None)


class Event(msgspec.Struct):
    ph: str = ""
    name: str = ""
    cat: str | None = None
    ts: Decimal | None = None
    """Microseconds."""
    dur: Decimal | None = None
    pid: Any = None
    tid: Any = None
    args: Arguments | None = None


class Document(msgspec.Struct):
    traceEvents: list[msgspec.Raw]  # noqa: N815  as the format spells it
    deviceProperties: Any = None  # noqa: N815
    baseTimeNanoseconds: Any = None  # noqa: N815
    """Since 1970; times count from it. Older traces have none and count from 1970."""
