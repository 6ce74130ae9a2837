"""Writing patched files over those that were measured."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from pipediag.errors import PipediagError
from pipediag.patching.refusal import NotPatchableError
from pipediag.session.files import replacing
from pipediag.session.findings import Patch


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
        if hashlib.sha256(contents[file.path]).hexdigest() != file.sha256:
            raise PipediagError(
                f"{file.path} is not what was measured: it has been edited since. Nothing was "
                "changed. Analyse it again, or put the change in by hand."
            )
    return contents


def current_file(path: str) -> bytes:
    """The bytes of a source file that a patch depends on and does not change."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise NotPatchableError(f"{Path(path).name} can't be read any more.") from error


def write_files(contents: Mapping[str, bytes]) -> None:
    """Write all of the files, each whole, with its mode; links stay links.

    Raises:
        PipediagError: one could not be written. Those that were, the message names.
    """
    try:
        with ExitStack() as files:
            # All are there in full before the first one moves to its place.
            for path, content in contents.items():
                target = Path(path).resolve()
                mode = stat.S_IMODE(target.stat().st_mode)
                files.enter_context(replacing(target, mode)).write(content)
    except (OSError, PipediagError) as error:
        reason = error if isinstance(error, OSError) else error.__cause__
        done = [path for path, content in contents.items() if current_file(path) == content]
        written = f"Written were: {', '.join(done)}." if done else "Nothing was changed."
        raise PipediagError(
            f"Could not write the patch: {getattr(reason, 'strerror', None) or reason}. {written} "
            "`pipediag fix` prints it, to be applied by other means."
        ) from error
