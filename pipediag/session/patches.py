"""What a recommendation would change in the user's source."""

from __future__ import annotations

from pipediag.session.record import Record


class PatchedFile(Record):
    """A source file that a patch changes."""

    path: str
    sha256: str
    """Of its bytes when it was measured: a patch is for that file and no other."""


class LeftOut(Record):
    """A confirmed edit that is not in the patch."""

    edit: str
    reason: str
    snippet: str | None = None
    """Code that does it, to be put where it belongs by hand."""


class Patch(Record):
    """One or more edits as a change of the files in which their calls are written."""

    edits: list[str] = []
    """Ids of those that are in it."""
    diff: str | None = None
    """Unified; None where no edit could be written down."""
    files: list[PatchedFile] = []
    left_out: list[LeftOut] = []
    shared: list[str] = []
    """Sentences on functions of which it changes more than the pipeline that was measured."""
