"""The user's files: the source around the line at fault, and what a stopped script has written."""

from __future__ import annotations

import ast
import io
import os
import time
import tokenize
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from pipediag.facts.order import LINES_AROUND, SourcePlace, culprit_place
from pipediag.facts.python_callables import python_behind
from pipediag.patching.refusal import NotPatchableError
from pipediag.runner.source_patches import as_measured
from pipediag.session.findings import CallSpan, SourceExcerpt
from pipediag.session.model import Session

LONGEST_LINE = 200
"""Characters; what is longer is data or was written by a program."""


def with_excerpt(session: Session, began_s: float) -> Session:
    """The session with the lines around what its verdict names.

    Args:
        session: as concluded.
        began_s: time of day at which the script was started; a file changed since is left alone.
    """

    def text_of(file: str) -> str | None:
        try:
            return _decoded(as_measured(file, began_s))
        except (NotPatchableError, SyntaxError, ValueError):
            return None

    verdict = session.verdict.model_copy(update=excerpts(session, text_of))
    return session.model_copy(update={"verdict": verdict})


def excerpts(
    session: Session, text_of: Callable[[str], str | None]
) -> dict[str, SourceExcerpt | None]:
    """Return the lines around what each field of the verdict names, and the Python behind it.

    Args:
        session: as concluded.
        text_of: what a file held when it was measured; None where that is not known.
    """
    place, hot = culprit_place(session), python_behind(session)
    behind = SourcePlace(hot.file, hot.line) if hot is not None else None
    return {
        "source": _excerpt(session, place, text_of),
        "python_source": _excerpt(session, behind, text_of),
    }


def _excerpt(
    session: Session, place: SourcePlace | None, text_of: Callable[[str], str | None]
) -> SourceExcerpt | None:
    text = text_of(place.file) if place is not None else None
    if place is None or place.line is None or text is None:
        return None
    lines = text.split("\n")
    if not 1 <= place.line <= len(lines):
        return None
    first = max(1, place.line - LINES_AROUND)
    op = session.operation(place.op_id)
    known = op is not None and (op.file, op.line) == (place.file, place.line)
    return SourceExcerpt(
        file=place.file,
        line=place.line,
        first_line=first,
        lines=[line[:LONGEST_LINE] for line in lines[first - 1 : place.line + LINES_AROUND]],
        call=call_span(text, op.kind, place.line) if op is not None and known else None,
    )


def _decoded(content: bytes) -> str:
    """Return the text as Python reads it, with Python's line ends."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
    return io.TextIOWrapper(io.BytesIO(content), encoding=encoding).read()


def call_span(text: str, name: str, line: int) -> CallSpan | None:
    """The call of that name on the line; None where there are several, or none.

    Python gives the line of a method's name, and of the whole call where it has arguments by stars.
    """
    try:
        with warnings.catch_warnings():
            # Of what the user wrote, which is none of ours to tell.
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    calls = [
        (named, node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and (named := _named(node.func, name)) is not None
    ]
    by_name = [found for found in calls if found[0][0] == line]
    found = by_name or [found for found in calls if found[1].lineno == line]
    if len(found) != 1:
        return None
    [((start_line, start_byte), node)] = found
    end_line, end_byte = node.end_lineno or start_line, node.end_col_offset or 0
    lines = text.split("\n")
    return CallSpan(
        line=start_line,
        column=_characters(lines[start_line - 1], start_byte),
        end_line=end_line,
        end_column=_characters(lines[end_line - 1], end_byte),
    )


def _named(called: ast.expr, name: str) -> tuple[int, int] | None:
    """Line and byte at which the name begins, if that is what is called."""
    if isinstance(called, ast.Attribute) and called.attr == name:
        end = called.end_col_offset or 0
        return called.end_lineno or called.lineno, end - len(name.encode())
    if isinstance(called, ast.Name) and called.id == name:
        return called.lineno, called.col_offset
    return None


def _characters(line: str, column: int) -> int:
    """A column in UTF-8, as Python's tree has it, in characters."""
    return len(line.encode()[:column].decode(errors="ignore"))


MOST_ENTRIES = 10_000
LONGEST_S = 1.0
MOST_NAMED = 20
_SAID = 3
_LEFT_OUT = frozenset({"__pycache__", "node_modules", "site-packages", "venv"})


def written_since(
    began_s: float,
    folders: Iterable[Path],
    left_out: Iterable[Path],
    clock: Callable[[], float] = time.monotonic,
) -> list[str]:
    """Files in these folders and below that were made or changed since a time of day, sorted.

    Relative to the working directory where they lie in it. The search is a short one, as a folder
    may hold a data set: `MOST_ENTRIES` and `LONGEST_S` at most. Hidden folders, environments and
    what `left_out` names are passed over, and so are files that our own output goes to.
    """
    ours = {known for number in (1, 2) if (known := _identity(number)) is not None}
    skipped = {os.path.realpath(path) for path in left_out}
    give_up_at = clock() + LONGEST_S
    found: set[str] = set()
    seen = 0
    for entry in _entries(folders, skipped):
        seen += 1
        if seen > MOST_ENTRIES or clock() > give_up_at:
            break
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        is_new = max(status.st_mtime, status.st_ctime) >= began_s
        if is_new and (status.st_dev, status.st_ino) not in ours:
            found.add(entry.path)
    return sorted(map(_shown, found))


def _identity(number: int) -> tuple[int, int] | None:
    """Return the identity of the file behind a descriptor; None where that is closed."""
    try:
        status = os.fstat(number)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def sentence(files: list[str], stopped: str = "The script was stopped.") -> str:
    """Return the report's sentence on these files; None for no file."""
    named = ", ".join(files[:_SAID])
    more = len(files) - _SAID
    one = len(files) == 1
    return (
        f"{stopped} While it ran, {named}"
        f"{f' and {more} more' if more > 0 else ''} {'was' if one else 'were'} made or changed: "
        f"its next run may find and use {'it' if one else 'them'}."
    )


def _entries(folders: Iterable[Path], skipped: set[str]) -> Iterator[os.DirEntry[str]]:
    pending = [os.path.realpath(folder) for folder in folders]
    known = set(skipped)
    while pending:
        folder = pending.pop(0)
        if folder in known:
            continue
        known.add(folder)
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                yield entry
            elif not entry.name.startswith(".") and entry.name not in _LEFT_OUT:
                pending.append(entry.path)


def _shown(path: str) -> str:
    working = os.path.realpath(".")
    inside = os.path.commonpath([working, path]) == working
    return os.path.relpath(path, working) if inside else path
