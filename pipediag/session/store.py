"""Reading and writing `session.json`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pipediag.encoding.terminal import one_line
from pipediag.errors import PipediagError
from pipediag.session.files import SESSION_FILE, write_text
from pipediag.session.model import SCHEMA_VERSION, Session
from pipediag.session.newer import read_newer
from pipediag.session.parsing import is_regular, parse_json, read_limited
from pipediag.session.record import to_json
from pipediag.session.upgrades import upgrade

MAJOR, MINOR = (int(number) for number in SCHEMA_VERSION.split("."))
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


def load_session(path: Path, tell: Callable[[str], None] | None = None) -> Session:
    """Read a session from its file, or from the directory that holds it.

    One of an older minor version comes in the form of this one. Of one of a newer minor version a
    note says what is not known here, and what became of it.

    Args:
        path: file or directory.
        tell: is given that note, with the file's name before it.

    Raises:
        PipediagError: unreadable, no JSON, no session, or of a newer major version than this
            pipediag knows.
    """
    file, content = _read_object(path)
    minor = _minor(content.get("schema_version"), file)
    note: str | None = None
    if minor < MINOR:
        upgrade(content, minor)
        content["schema_version"] = SCHEMA_VERSION
    elif minor > MINOR:
        content, note = _of_newer(content)
    try:
        session = Session.model_validate(content)
    except ValidationError as error:
        raise PipediagError(
            f"{file} is not a valid session: {_problems(error)}. {_ANEW}"
        ) from error
    if note is None:
        return session
    if tell is not None:
        tell(f"{file}: {note}")
    return session.model_copy(update={"notes": [note, *session.notes]})


def _of_newer(content: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """The content in this version's words, and the note on what these do not say."""
    read, unknown = read_newer(content)
    if unknown is None:
        return read, None
    version = one_line(content["schema_version"], _LONGEST_VERSION)
    return read, (
        f"The session has schema version {version}, and this pipediag knows {SCHEMA_VERSION}. Not "
        f"known here: {unknown}. Upgrade pipediag to see all of it."
    )


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


def _minor(version: object, file: Path) -> int:
    """The minor of a version whose major this pipediag reads; raises PipediagError for others.

    "1" is what was written before there was a minor. One that is no number is taken for this one.
    """
    major, _, rest = version.partition(".") if isinstance(version, str) else ("", "", "")
    written = one_line(json.dumps(version), _LONGEST_VERSION)
    if not major.isdecimal() or len(major) > _LONGEST_VERSION:
        raise PipediagError(
            f"{file} is not a session: its schema_version is {written}, where a text "
            f'such as "{SCHEMA_VERSION}" belongs.'
        )
    if int(major) > MAJOR:
        raise PipediagError(
            f"{file} has schema version {written}; this pipediag reads up to version "
            f"{SCHEMA_VERSION}. Upgrade pipediag to read it."
        )
    minor = rest.partition(".")[0] or "0"
    return int(minor) if minor.isdecimal() and len(minor) <= _LONGEST_VERSION else MINOR


def _problems(error: ValidationError) -> str:
    problems = error.errors(include_url=False)
    shown = [
        one_line(f"{'.'.join(map(str, problem['loc']))}", _LONGEST_PLACE) + f": {problem['msg']}"
        for problem in problems[:MOST_PROBLEMS_SHOWN]
    ]
    if len(problems) > MOST_PROBLEMS_SHOWN:
        shown.append(f"and {len(problems) - MOST_PROBLEMS_SHOWN} more")
    return "; ".join(shown)
