"""The output directory: made and tried before the script is run, not when all is measured."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from pipediag.errors import PipediagError
from pipediag.session.files import SESSION_FILE
from pipediag.session.messages import TRACE_DIRECTORY
from pipediag.session.worker import WORKER_NAME

CAPTURE_PREFIX = ".capture-"
_IN_JOB = re.compile(rf"{WORKER_NAME.pattern}(\.\d+)?")
_ANOTHER = "Choose another directory (`--output`, or `out` in Python)."


class DirectoryLock:
    """Held until it is released or this process ends, however that comes about. Where the file
    system has no locks, every process gets it."""

    def __init__(self, path: Path) -> None:
        self._descriptor: int | None = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        with suppress(OSError):
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.release()

    def is_of(self, path: Path) -> bool:
        """Return True if it was got, and the directory still has that name."""
        with suppress(OSError):
            found = self._descriptor
            return found is not None and os.path.samestat(os.fstat(found), path.stat())
        return False

    def release(self) -> None:
        """Let others have it; a second call does nothing."""
        if self._descriptor is not None:
            # Not by closing alone: a process that was forked meanwhile holds it open.
            with suppress(OSError):
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            os.close(self._descriptor)
            self._descriptor = None


@dataclass(frozen=True)
class OutputDirectory:
    """The directory of a run's report, and the hidden one inside that the child writes to."""

    path: Path
    capture: Path
    kept_aside: Path | None
    """Place to which an earlier report was moved."""
    made: bool
    """True if the directory was not there before."""
    lock: DirectoryLock

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
        self.lock.release()


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
        with ExitStack() as on_failure:
            lock = _locked(path)
            on_failure.callback(lock.release)
            if not force and (kept_aside := _keep_aside(path)) is not None:
                # The lock has gone aside with the report.
                lock.release()
                lock = _locked(path)
                on_failure.callback(lock.release)
                made = True
            capture = Path(tempfile.mkdtemp(prefix=CAPTURE_PREFIX, dir=path))
            on_failure.pop_all()
    except OSError as error:
        raise PipediagError(
            f"cannot write to the output directory {path}: {error.strerror}. "
            f"Nothing was measured. {_ANOTHER}"
        ) from error
    return OutputDirectory(path, capture, kept_aside, made, lock)


def _locked(path: Path) -> DirectoryLock:
    path.mkdir(parents=True, exist_ok=True)
    lock = DirectoryLock(path)
    if not lock.is_of(path):
        lock.release()
        raise PipediagError(
            f"another analysis is writing to {path}. Nothing was measured. Wait until that one has "
            f"ended. {_ANOTHER}"
        )
    return lock


def _keep_aside(path: Path) -> Path | None:
    names = {entry.name for entry in path.iterdir()}
    if not names:
        return None
    own = any(name == SESSION_FILE or name.startswith(CAPTURE_PREFIX) for name in names)
    # Of a job: one for each worker, and those that were kept aside.
    workers = [path / name for name in names if _IN_JOB.fullmatch(name)]
    if not own and any(any(one.glob(f"{CAPTURE_PREFIX}*")) for one in workers):
        raise PipediagError(
            f"{path} holds what a worker's analysis writes, which goes on, or was killed. Nothing "
            f"was measured. {_ANOTHER}"
        )
    of_job = len(workers) == len(names) and all((one / SESSION_FILE).is_file() for one in workers)
    if not own and not of_job:
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
