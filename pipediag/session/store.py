"""Reading and writing `session.json`, and reading what the child wrote down."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterable
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from pipediag.encoding import one_line
from pipediag.errors import PipediagError
from pipediag.session.files import SESSION_FILE, parse_json, read_limited, write_text
from pipediag.session.model import Session
from pipediag.session.record import to_json
from pipediag.session.recording import Recording
from pipediag.session.timeline import Timeline, parse_timeline

_ANEW = (
    "It was cut off, changed since it was written, or is of another version of pipediag: measure "
    "again with `pipediag analyze`."
)
_NAME = "Name a session.json, or the directory that `pipediag analyze` wrote."
_NUMBERED = re.compile(r"(.+)\.\d+")
"""Directory of an earlier report, if that without the number is there as well, and newer."""
_LONGEST_PLACE = 200
"""Characters; keys in the file are quoted, and can be endless."""


def save_session(session: Session, path: Path) -> Path:
    """Write the session to `path`, or a file in it, and return that. Raises PipediagError."""
    file = path / SESSION_FILE if path.is_dir() else path
    write_text(file, to_json(session))
    return file


def load_session(path: Path) -> Session:
    """Read a session from its file, or from the directory that holds it; unknown keys are left out.
    Raises PipediagError: unreadable, no session, or of another schema version."""
    file = path
    try:
        if path.is_dir():
            file = path / SESSION_FILE
            if not stat.S_ISREG(file.stat().st_mode):  # a pipe might have no end
                raise PipediagError(f"cannot read the session {file}: it is not a file. {_NAME}")
        return Session.model_validate(parse_json(read_limited(file)))
    except OSError as error:
        raise PipediagError(f"cannot read the session {file}: {error.strerror}. {_NAME}") from error
    except ValidationError as error:
        problems = _problems(error)
        raise PipediagError(f"{file} is not a valid session: {problems}. {_ANEW}") from error
    except ValueError as error:
        raise PipediagError(f"{file} is not JSON of a session: {error}. {_ANEW}") from error


def _problems(error: ValidationError) -> str:
    first, *others = error.errors(include_url=False)
    place = one_line(".".join(map(str, first["loc"])), _LONGEST_PLACE)
    more = f"; and {len(others)} more" if others else ""
    return f"{place}: {first['msg']}{more}"


_RECORDING = TypeAdapter(Recording)


def read_recording(path: Path) -> Recording | None:
    """Return the recording, None if the child wrote none. Raises PipediagError: it is damaged."""
    text = _written(path)
    if text is None:
        return None
    try:
        recording: Recording = _RECORDING.validate_python(json.loads(text))
    except ValueError as error:
        what = _problems(error) if isinstance(error, ValidationError) else error
        raise PipediagError(
            f"{path} is not a whole recording: {what}. Was the disk full? Analyse the script again."
        ) from error
    return recording


def read_timeline(path: Path) -> Timeline:
    """Read the timeline, empty where the child wrote none. Raises PipediagError: unreadable."""
    return parse_timeline((_written(path) or b"").splitlines())


def _written(path: Path) -> bytes | None:
    """Return what the child wrote, or None where it wrote no such file. Raises PipediagError."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise PipediagError(f"cannot read {path}: {error.strerror}.") from error


def session_paths(path: Path) -> list[Path]:
    """Return the path itself, or, of a directory of directories of runs, each run's, without
    earlier reports, which an analysis keeps aside."""
    if not path.is_dir() or (path / SESSION_FILE).exists():
        return [path]
    runs = [one for one in path.iterdir() if (one / SESSION_FILE).is_file()]
    made = {one.name: (one / SESSION_FILE).stat().st_mtime_ns for one in runs}

    def is_kept_aside(name: str) -> bool:
        numbered = _NUMBERED.fullmatch(name)
        return numbered is not None and made[name] < made.get(numbered[1], 0)

    runs = [one for one in runs if not is_kept_aside(one.name)]
    return sorted(runs, key=lambda one: (len(one.name), one.name)) or [path]


def load_runs(paths: Iterable[Path], tell: Callable[[str], None]) -> list[tuple[Path, Session]]:
    """Return the sessions of all these runs, each once, without rows that nothing judges. Raises
    PipediagError as `load_session`."""
    named = [run for path in paths for run in session_paths(path)]
    runs: dict[str, Path] = {}
    for run in named:
        # Whatever path was given.
        runs.setdefault(os.path.realpath(run / SESSION_FILE if run.is_dir() else run), run)
    again = len(named) - len(runs)
    if again:
        tell(f"pipediag: {again} of the {len(named)} sessions are named twice and are used once.")
    return [(path, load_session(path).but(step_rows=[], host_samples=[])) for path in runs.values()]
