"""Writing patched files over those that were measured."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pipediag.errors import PipediagError
from pipediag.patching.refusal import NotPatchableError
from pipediag.session.findings import Patch


def measured_files(patch: Patch) -> dict[str, bytes]:
    """The files of a patch, as they are now and were when they were measured.

    Raises:
        PipediagError: one is another by now.
    """
    return {file.path: _unchanged(file.path, file.sha256) for file in patch.files}


def _unchanged(path: str, sha256: str) -> bytes:
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise PipediagError(
            f"cannot read {path}: {error.strerror}. Nothing was changed. Run this where the "
            "session was recorded."
        ) from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise PipediagError(
            f"{path} is not what was measured: it has been edited since. Nothing was changed. "
            "Analyse it again, or put the change in by hand."
        )
    return content


def current_file(path: str) -> bytes:
    """The bytes of a source file that a patch depends on and does not change.

    Raises:
        NotPatchableError: it can't be read.
    """
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise NotPatchableError(f"{Path(path).name} can't be read any more.") from error


def write_files(contents: Mapping[str, bytes]) -> None:
    """Write all of the files, each whole, with its mode; links stay links.

    Raises:
        PipediagError: one could not be written. Those that were, the message names.
    """
    waiting: list[tuple[Path, Path]] = []
    done: list[str] = []
    try:
        for path, content in contents.items():
            target = Path(path).resolve()
            waiting.append((_beside(target, content), target))
        for temporary, target in waiting:
            temporary.replace(target)
            done.append(str(target))
    except OSError as error:
        written = f"Written were: {', '.join(done)}." if done else "Nothing was changed."
        raise PipediagError(
            f"Could not write the patch: {error.strerror or error}. {written} `pipediag fix` "
            "prints it, to be applied by other means."
        ) from error
    finally:
        for temporary, _ in waiting:
            temporary.unlink(missing_ok=True)


def _beside(target: Path, content: bytes) -> Path:
    """A new file of that content and the target's mode in the same folder."""
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        temporary.chmod(stat.S_IMODE(target.stat().st_mode))
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary
