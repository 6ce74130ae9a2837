"""What a command that runs a script says of the framework's log that was folded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pipediag.cli.say import say
from pipediag.facts.ending import cut_short
from pipediag.facts.report_directory import as_typed
from pipediag.runner.framework_log.kept import FRAMEWORK_LOG

if TYPE_CHECKING:
    from pipediag.runner.analysis import AnalysisResult


def say_folded(result: AnalysisResult) -> None:
    """That there is more to read, and where."""
    if result.folded is None or not result.folded.lines:
        return
    count = result.folded.lines
    file = result.directory / FRAMEWORK_LOG
    there = f" into {as_typed(file)}" if file.exists() else ""
    lines, them = ("1 line", "it") if count == 1 else (f"{count} lines", "them")
    say(f"pipediag: {lines} of TensorFlow's log folded{there}; -v shows {them}.")


def say_last(result: AnalysisResult) -> None:
    """The end of it, where the script has failed."""
    script = result.session.script
    if result.folded is None or not cut_short(script) or script.outcome == "interrupted":
        return
    if result.folded.last:
        say("pipediag: the end of TensorFlow's log, which was folded:")
    for line in result.folded.last:
        say(f"  {line}")


def say_where_folded(runs: Path) -> None:
    """Where that of several runs is, for a directory that holds theirs."""
    if any(runs.glob(f"*/*/{FRAMEWORK_LOG}")):
        say(f"pipediag: TensorFlow's log of each run is folded into its {FRAMEWORK_LOG}.")
