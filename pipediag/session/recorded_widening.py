"""What the child process writes down of a mapped function that makes much of a few ids."""

from __future__ import annotations

from dataclasses import dataclass

from pipediag.vocabulary import WideningKind


@dataclass
class RecordedWidening:
    """A part of an element that is made of ids, as it is handed out."""

    kind: WideningKind
    rows: int
    """Of the table, or classes."""
    ids_bytes: int
    """Of the ids in one element."""
    bytes: int
    """Of what is handed out in their place."""
    label: bool = False
    """Whether it stands where `fit` takes labels."""
