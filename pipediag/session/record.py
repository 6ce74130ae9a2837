"""What every record of the session has in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, get_args

from pydantic import BaseModel, ConfigDict, Field

Interval = Annotated[tuple[float, float], Field(description="95 % interval: low, high")]
Scalar = int | float | str | bool | None


class Record(BaseModel):
    """Base of every record: immutable; keys that a newer minor version added are ignored."""

    # Most commands fill a few of the records: the others need no validator.
    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


def build_validators(record: type[Record]) -> None:
    """Builds what the first use of the record and of those in it would build: up to 100 ms."""
    for found in {record, *_records_in(record)}:
        found.model_rebuild()


def _records_in(record: type[Record]) -> Iterator[type[Record]]:
    for field in record.model_fields.values():
        for found in _parts(field.annotation):
            if isinstance(found, type) and issubclass(found, Record):
                yield found
                yield from _records_in(found)


def _parts(annotation: Any) -> Iterator[Any]:
    yield annotation
    for argument in get_args(annotation):
        yield from _parts(argument)
