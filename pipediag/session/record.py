"""Base of every record of the session."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, get_args

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import PydanticSerializationError

from pipediag.encoding import harmless_json
from pipediag.session.files import storable

if TYPE_CHECKING:
    from typing_extensions import Self

Interval = Annotated[tuple[float, float], Field(description="95 % interval: low, high")]


class Record(BaseModel):
    """Base of every record: immutable; keys that a newer minor version added are ignored."""

    # Most commands fill a few of the records: the others need no validator.
    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    def but(self, **fields: Any) -> Self:
        """Return a copy with other values of these fields, which are not validated."""
        return self.model_copy(update=fields)


def to_json(record: Record) -> str:
    """Return JSON that is UTF-8 whatever a file may be called, and harmless where printed."""
    try:
        return harmless_json(record.model_dump_json(indent=1)) + "\n"
    except PydanticSerializationError:
        # A name of a file that is no UTF-8 came in from a command line or an environment.
        valid = type(record).model_validate(storable(record.model_dump()))
        return harmless_json(valid.model_dump_json(indent=1)) + "\n"


def annotation_parts(annotation: Any) -> Iterator[Any]:
    """Yield a type annotation, and each type that it is made of."""
    yield annotation
    for argument in get_args(annotation):
        yield from annotation_parts(argument)
