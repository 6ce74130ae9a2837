"""A script's standard error with the framework's log folded: the parent's side."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pipediag.runner.framework_log.kept import FRAMEWORK_LOG, LAST_LINES, Report
from pipediag.runner.framework_log.passage import Passage, open_passage

ASKED_FOR = ("TF_CPP_MAX_VLOG_LEVEL", "TF_CPP_VMODULE")
"""Who sets one of these variables wants to read the log."""


@dataclass
class FoldedLog:
    """What was folded in all runs of an analysis."""

    lines: int = 0
    last: list[str] = field(default_factory=list)
    """At most `LAST_LINES`."""

    def add(self, report: Report) -> None:
        """What one more run had."""
        self.lines += report.lines
        self.last = [*self.last, *report.last][-LAST_LINES:]


class StandardError:
    """The descriptor that a script is given for its standard error, by those who start it."""

    def __init__(self, passage: Passage | None) -> None:
        self._passage = passage

    @property
    def given(self) -> int | None:
        """None where nothing is folded: the script inherits ours, or finds it closed as we did."""
        return None if self._passage is None else self._passage.script_end

    @property
    def given_for_output(self) -> int:
        """The same for a standard output that is to go there too."""
        return sys.stderr.fileno() if self.given is None else self.given

    def is_given(self) -> None:
        """From here on only the script, and what it starts, can write to it."""
        if self._passage is not None:
            self._passage.close_script_end()


@contextmanager
def folding(folded: FoldedLog | None, directory: Path) -> Iterator[StandardError]:
    """Folds while the block runs, and shows all else before it ends; None folds nothing.

    Nor is anything folded that nobody reads or that somebody wants to read whole, or where there
    is no process for it. Enter it where the signals are blocked that the script is to get.

    Args:
        folded: is given what was folded.
        directory: gets a file with it, where there is any.
    """
    passage = None
    if folded is not None and not any(os.environ.get(name) for name in ASKED_FOR):
        passage = open_passage(directory / FRAMEWORK_LOG)
    try:
        yield StandardError(passage)
    finally:
        if passage is not None and folded is not None:
            folded.add(passage.settle())
