"""From edits of a session to one patch of the user's source files, and to the files."""

from __future__ import annotations

import difflib
import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from io import StringIO
from pathlib import Path

from pipediag.errors import PipediagError
from pipediag.patching.snippets import snippet
from pipediag.patching.source import NotPatchableError
from pipediag.patching.workspace import Workspace, current_file
from pipediag.patching.writing import write
from pipediag.session.edits import Change, Edit, as_written, changes_together
from pipediag.session.files import replacing
from pipediag.session.findings import LeftOut, Patch, PatchedFile
from pipediag.session.model import Session

_NO_END = "\\ No newline at end of file\n"


def patch_root(paths: Iterable[str], directory: str | None = None) -> str:
    """Return the directory that a patch names its files from: the script's, or the nearest one that
    holds all of the files, too."""
    root = directory or "."
    try:
        folders = [os.path.dirname(os.path.realpath(path)) for path in paths]  # noqa: PTH120
        return os.path.commonpath([os.path.realpath(root), *folders])
    except (ValueError, OSError):
        return root


def unified(path: str, before: bytes, after: bytes, root: str = ".") -> str:
    """Return the change of one file, named from a directory that it is below."""
    try:
        # `patch` and `git apply` follow no links, and refuse `..` in a name.
        name = Path(os.path.realpath(path)).relative_to(os.path.realpath(root)).as_posix()
    except (ValueError, OSError):
        name = Path(path).as_posix().lstrip("/")
    if " " in name:
        name += "\t"  # `patch` takes a name without one to end at the blank
    lines = difflib.unified_diff(_lines(before), _lines(after), f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n{_NO_END}" for line in lines)


def _lines(content: bytes) -> list[str]:
    """Only what ends lines for `patch` does so: Python's own splitting knows more ends."""
    return list(StringIO(content.decode(), newline="\n"))


Read = Callable[[str], bytes]
"""The bytes of a source file as it was measured; raises NotPatchableError where they are gone."""


def make_patch(
    session: Session, edits: Sequence[Edit], read: Read
) -> tuple[Patch, dict[str, bytes]]:
    """Return the edits as a patch, and the files as it makes them.

    An edit that can't be written, alone or together with those before it, is left out, with the
    reason and code to paste.
    """
    before = cache(read)
    kept: list[Edit] = []
    left_out: list[LeftOut] = []
    after: Mapping[str, bytes] = {}
    shared: list[str] = []
    for edit in edits:
        try:
            after, shared = _changed(session, [*kept, edit], before)
            kept.append(edit)
        except NotPatchableError as error:
            code = snippet(session, edit.changes)
            left_out.append(LeftOut(edit=edit.id, reason=str(error), snippet=code))
    changed = {path: data for path, data in sorted(after.items()) if data != before(path)}
    root = patch_root(changed, session.script.directory)
    patch = Patch(
        edits=[edit.id for edit in kept],
        diff="".join(unified(path, before(path), changed[path], root) for path in changed) or None,
        files=[PatchedFile(path=path, sha256=_sha256(before(path))) for path in changed],
        left_out=left_out,
        shared=shared,
    )
    return patch, changed


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _changed(
    session: Session, edits: Sequence[Edit], read: Read
) -> tuple[dict[str, bytes], list[str]]:
    changes: list[Change] = []
    for change in map(as_written, changes_together(edits)):
        if change not in changes:
            changes.append(change)
    workspace = Workspace(session, read)
    write(workspace, changes)
    after = workspace.contents()
    if all(data == read(path) for path, data in after.items()):
        raise NotPatchableError("The source already does this.")
    return after, [*(_shared(*each) for each in workspace.makers.items()), *workspace.notes]


def _shared(maker: str, callers: Sequence[tuple[str, int]]) -> str:
    places = [f"{Path(path).name}:{line}" for path, line in callers]
    listed = f"{', '.join(places[:-1])} and {places[-1]}" if len(places) > 1 else places[0]
    return (
        f"`{maker}` is called in {listed}: all pipelines that it makes get the change, and only "
        "one of them was measured."
    )


def measured_files(patch: Patch) -> dict[str, bytes]:
    """The files of a patch, as they are now and were when they were measured.

    Raises:
        PipediagError: one is another by now.
    """
    contents = {}
    for file in patch.files:
        try:
            contents[file.path] = Path(file.path).read_bytes()
        except OSError as error:
            raise PipediagError(
                f"cannot read {file.path}: {error.strerror}. Nothing was changed. Run this where "
                "the session was recorded."
            ) from error
        if _sha256(contents[file.path]) != file.sha256:
            raise PipediagError(
                f"{file.path} has been edited since it was measured. Nothing was changed. "
                "Analyse it again, or make the change by hand."
            )
    return contents


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
    if _lines_of(made.diff) != _lines_of(patch.diff) or set(contents) != set(files):
        raise PipediagError(
            "This version of pipediag would change the files differently from what the session "
            "says. Nothing was changed. Analyse the script again, or apply what is printed by hand."
        )
    return contents


def _lines_of(diff: str | None) -> list[str]:
    """A diff without its file names, which depend on where it is made."""
    return [line for line in (diff or "").split("\n") if not line.startswith(("--- ", "+++ "))]


def write_files(contents: Mapping[str, bytes]) -> None:
    """Write all of the files, each whole, with its mode and owner; links stay links.

    Raises:
        PipediagError: one could not be written. Those that were, the message names.
    """
    try:
        with ExitStack() as files:
            # All are there in full before the first one moves to its place.
            for path, content in contents.items():
                target = Path(path).resolve()
                files.enter_context(replacing(target, target.stat())).write(content)
    except (OSError, PipediagError) as error:
        reason = error if isinstance(error, OSError) else error.__cause__
        done = [path for path, content in contents.items() if current_file(path) == content]
        written = f"Already written: {', '.join(done)}." if done else "Nothing was changed."
        raise PipediagError(
            f"Could not write the patch: {getattr(reason, 'strerror', None) or reason}. {written} "
            "`pipediag fix` prints it, so that you can apply it yourself."
        ) from error
