"""Contents of the measured files after the patch of a session."""

from __future__ import annotations

from pipediag.errors import PipediagError
from pipediag.patching.applying import current_file, measured_files
from pipediag.patching.making import make_patch
from pipediag.session.findings import Patch
from pipediag.session.model import Session


def patched_files(session: Session, patch: Patch) -> dict[str, bytes]:
    """The files as the patch makes them, made anew from the edits, by their paths.

    Raises:
        PipediagError: the files are not those that were measured, or another change than the one
            that is printed would come out.
    """
    files = measured_files(patch)
    edits = {finding.edit.id: finding.edit for finding in session.findings if finding.edit}
    chosen = [edits[id] for id in patch.edits if id in edits]

    def read(path: str) -> bytes:
        """Files that are only looked at may have changed: whether it matters shows in the patch."""
        return files[path] if path in files else current_file(path)

    made, contents = make_patch(session, chosen, read)
    if _changes(made.diff) != _changes(patch.diff) or set(contents) != set(files):
        raise PipediagError(
            "This pipediag makes another change of these edits than the session holds. Nothing was "
            "changed. Analyse the script again, or apply what is printed by hand."
        )
    return contents


def _changes(diff: str | None) -> list[str]:
    """A diff without its file names, which depend on where it is made."""
    return [line for line in (diff or "").split("\n") if not line.startswith(("--- ", "+++ "))]
