"""Taking pipediag's frames out of a traceback, so that users see their own code only."""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType

PACKAGE = str(Path(__file__).parents[1]) + os.sep


def remove_own_frames(error: BaseException) -> None:
    """Clean the tracebacks of `error` and of every exception that is shown with it."""
    for shown in chain_of(error):
        shown.__traceback__ = without_own_frames(shown.__traceback__)


def contains(error: BaseException, kind: type[BaseException]) -> bool:
    """Whether `error` is, comes from or groups an exception of that kind."""
    return any(isinstance(shown, kind) for shown in chain_of(error))


def chain_of(error: BaseException) -> Iterator[BaseException]:
    """`error`, its causes and contexts, and the members of exception groups, each once."""
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        current = waiting.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        waiting += [current.__cause__, current.__context__]
        waiting += _members(current)


def _members(error: BaseException) -> Sequence[BaseException]:
    """What a group holds; for Python 3.10 a package that the script may have has them."""
    home = sys.modules.get("exceptiongroup") if sys.version_info < (3, 11) else builtins
    group = getattr(home, "BaseExceptionGroup", ())
    return error.exceptions if isinstance(error, group) else ()


def without_own_frames(traceback: TracebackType | None) -> TracebackType | None:
    """The same traceback without the frames whose code lies in this package."""
    kept = []
    while traceback is not None:
        if not traceback.tb_frame.f_code.co_filename.startswith(PACKAGE):
            kept.append(traceback)
        traceback = traceback.tb_next
    following = None
    for entry in reversed(kept):
        entry.tb_next = following
        following = entry
    return following
