"""The output directory: made and tried before the script is run, not when all is measured."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from pipediag.errors import PipediagError
from pipediag.session.files import SESSION_FILE
from pipediag.session.messages import TRACE_DIRECTORY

CAPTURE_PREFIX = ".capture-"
_ANOTHER = "Choose another directory (`--output`, or `out` in Python)."


@dataclass
class OutputDirectory:
    """The directory of a run's report, and the hidden one inside that the child writes to."""

    path: Path
    capture: Path
    kept_aside: Path | None
    """Place to which an earlier report was moved."""
    made: bool
    """True if the directory was not there before."""
    lock: int | None = None
    """Descriptor of the directory, which is locked until `release`, or the end of this process."""

    def keep_trace(self) -> None:
        """Move the raw profile out of the capture directory, in place of an earlier one."""
        recorded, kept = self.capture / TRACE_DIRECTORY, self.path / TRACE_DIRECTORY
        if recorded.is_dir():
            shutil.rmtree(kept, ignore_errors=True)
            recorded.replace(kept)

    def discard_capture(self) -> None:
        shutil.rmtree(self.capture, ignore_errors=True)

    def abandon(self) -> None:
        """Put everything back as it was: the script was never run."""
        self.discard_capture()
        if self.made:
            with suppress(OSError):
                self.path.rmdir()
        if self.kept_aside is not None and not self.path.exists():
            self.kept_aside.replace(self.path)
        self.release()

    def release(self) -> None:
        """Let others write to it; a second call does nothing."""
        if self.lock is not None:
            _unlock(self.lock)
            self.lock = None


def prepare_output(path: Path, force: bool = False) -> OutputDirectory:
    """Make the directory, keep others out of it, and prove that it can be written to.

    A report that is there is renamed to the first free `<name>.1`, `<name>.2`, ... unless `force`.
    Raises PipediagError: it cannot be written to, another analysis does so, it holds something
    other than a report, or a report that would be renamed under the working directory.
    """
    path = path.absolute()
    made = not path.exists()
    kept_aside = None
    try:
        lock = _locked(path)
        try:
            if not force and (kept_aside := _keep_aside(path)) is not None:
                # The lock has gone aside with the report.
                aside, lock = lock, _locked(path)
                _unlock(aside)
                made = True
            capture = Path(tempfile.mkdtemp(prefix=CAPTURE_PREFIX, dir=path))
        except BaseException:
            _unlock(lock)
            raise
    except OSError as error:
        raise PipediagError(
            f"cannot write to the output directory {path}: {error.strerror}. "
            f"Nothing was measured. {_ANOTHER}"
        ) from error
    return OutputDirectory(path, capture, kept_aside, made, lock)


def _locked(path: Path) -> int:
    """Return the descriptor of the directory, which is made and locked. Where the file system has
    no locks, every process gets it."""
    path.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    with suppress(OSError):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise PipediagError(
                f"another analysis is writing to {path}. Nothing was measured. Wait until that one "
                f"has ended. {_ANOTHER}"
            ) from None
    return descriptor


def _unlock(descriptor: int) -> None:
    # Not by closing alone: a process that was forked meanwhile holds it open.
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def _keep_aside(path: Path) -> Path | None:
    names = {entry.name for entry in path.iterdir()}
    if not names:
        return None
    own = any(name == SESSION_FILE or name.startswith(CAPTURE_PREFIX) for name in names)
    if not own:
        raise PipediagError(
            f"{path} is not empty and holds no pipediag report. Nothing was measured. {_ANOTHER}"
        )
    if Path.cwd().is_relative_to(path.resolve()):
        raise PipediagError(
            f"{path} holds an earlier report, which is not renamed while the working directory is "
            f"in it. Nothing was measured. Write over it with `--force`. {_ANOTHER}"
        )
    numbered = (path.with_name(f"{path.name}.{number}") for number in count(1))
    aside = next(candidate for candidate in numbered if not candidate.exists())
    path.replace(aside)
    return aside
