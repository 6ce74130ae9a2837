"""What a command that runs a script says of the framework's log that was folded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipediag.cli.say import say
from pipediag.facts.ending import cut_short
from pipediag.facts.report_directory import as_typed
from pipediag.runner.framework_log.kept import FRAMEWORK_LOG

if TYPE_CHECKING:
    from pipediag.runner.analysis import AnalysisResult


def say_folded(result: AnalysisResult) -> None:
    """That there is more to read, and where; the last of it where the script has failed."""
    if result.folded is None or not result.folded.lines:
        return
    count = result.folded.lines
    file = result.directory / FRAMEWORK_LOG
    there = f" into {as_typed(file)}" if file.exists() else ""
    lines, them = ("1 line", "it") if count == 1 else (f"{count} lines", "them")
    say(f"pipediag: {lines} of TensorFlow's log folded{there}; -v shows {them}.")
    script = result.session.script
    if cut_short(script) and script.outcome != "interrupted":
        say("pipediag: the last of them:")
        for line in result.folded.last:
            say(f"  {line}")
