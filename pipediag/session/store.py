"""Reading and writing `session.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pipediag.encoding.text import one_line
from pipediag.errors import PipediagError
from pipediag.session.files import SESSION_FILE, write_text
from pipediag.session.model import SCHEMA_VERSION, Session
from pipediag.session.parsing import is_regular, parse_json, read_limited
from pipediag.session.record import to_json

MOST_PROBLEMS_SHOWN = 3
_ANEW = "It was cut off or changed since it was written: measure again with `pipediag analyze`."
_LONGEST_PLACE = 200
"""Characters; keys in the file are quoted, and can be endless."""
_LONGEST_VERSION = 40
"""Characters."""


def dump_session(session: Session) -> str:
    """The session as JSON text, ending in a newline."""
    return to_json(session, indent=1) + "\n"


def save_session(session: Session, path: Path) -> Path:
    """Write the session to `path`, or to `session.json` in the directory `path`; return the file.

    Readers see the file that was there, or the new one, never half of one.

    Raises:
        PipediagError: it cannot be written; what was there is untouched.
    """
    file = path / SESSION_FILE if path.is_dir() else path
    write_text(file, dump_session(session))
    return file


def load_session(path: Path) -> Session:
    """Read a session from its file, or from the directory that holds it.

    Keys that this version does not know are left out.

    Raises:
        PipediagError: unreadable, no JSON, no session, or of another schema version.
    """
    file, content = _read_object(path)
    _check_version(content.get("schema_version"), file)
    try:
        return Session.model_validate(content)
    except ValidationError as error:
        raise PipediagError(
            f"{file} is not a valid session: {_problems(error)}. {_ANEW}"
        ) from error


def _read_object(path: Path) -> tuple[Path, dict[str, Any]]:
    """The file that was meant, and the object in it."""
    file = path
    try:
        if path.is_dir():
            file = path / SESSION_FILE
            if not is_regular(file):
                raise PipediagError(
                    f"cannot read the session {file}: it is not a file. Name a session.json, or "
                    "the directory that `pipediag analyze` wrote."
                )
        content = parse_json(read_limited(file))
    except OSError as error:
        raise PipediagError(
            f"cannot read the session {file}: {error.strerror}. Name a session.json, or the "
            "directory that `pipediag analyze` wrote."
        ) from error
    except ValueError as error:
        raise PipediagError(
            f"{file} is not JSON that a session can be: {error}. {_ANEW}"
        ) from error
    if not isinstance(content, dict):
        raise PipediagError(f"{file} is not a session: it holds no JSON object. {_ANEW}")
    return file, content


def _check_version(version: object, file: Path) -> None:
    """Raise PipediagError for every version but this one; the first release freezes it."""
    if version == SCHEMA_VERSION:
        return
    written = one_line(json.dumps(version), _LONGEST_VERSION)
    raise PipediagError(
        f"{file} has schema version {written}, and this pipediag reads {SCHEMA_VERSION!r} alone. "
        "Measure again with `pipediag analyze`, or use the pipediag that wrote it."
    )


def _problems(error: ValidationError) -> str:
    problems = error.errors(include_url=False)
    shown = [
        one_line(f"{'.'.join(map(str, problem['loc']))}", _LONGEST_PLACE) + f": {problem['msg']}"
        for problem in problems[:MOST_PROBLEMS_SHOWN]
    ]
    if len(problems) > MOST_PROBLEMS_SHOWN:
        shown.append(f"and {len(problems) - MOST_PROBLEMS_SHOWN} more")
    return "; ".join(shown)
