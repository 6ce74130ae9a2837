"""What every record of the session has in common."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Interval = Annotated[tuple[float, float], Field(description="95 % interval: low, high")]
Scalar = int | float | str | bool | None


class Record(BaseModel):
    """Base of every record: immutable; keys that a newer minor version added are ignored."""

    # Most commands fill a few of the records: the others need no validator.
    model_config = ConfigDict(
        frozen=True, extra="ignore", use_attribute_docstrings=True, defer_build=True
    )
