"""The one command that is worth typing after a report was read."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from pipediag.facts.names import default_directory
from pipediag.facts.order import worth_doing
from pipediag.facts.script import edits_for_second_run, failed_by_itself
from pipediag.facts.step import only_input_is_told
from pipediag.reporters.words.ways_on import longer_budget, longer_run, too_long_to_try
from pipediag.session.model import Session


@dataclass(frozen=True)
class NextCommand:
    purpose: str
    command: str


def next_command(session: Session, output_directory: Path | None) -> NextCommand | None:
    """What to run next: again with more steps, again with trials, the patch of the confirmed edits,
    again after an edit, or the gate.

    None where no step was measured, where the script failed by itself, or where more steps would
    tell no more: the same command would end the same way. Of an analysis that a program called
    there is the patch alone, once it is saved: no command would make it again.
    """
    if session.steps is None or failed_by_itself(session) is not None:
        return None
    if session.script.call is not None:
        return _of_a_call(session, output_directory)
    return _of_a_script(session, output_directory)


def _of_a_call(session: Session, directory: Path | None) -> NextCommand | None:
    return None if directory is None else _patch(session, directory)


def _of_a_script(session: Session, output_directory: Path | None) -> NextCommand | None:
    if session.verdict.bottleneck == "inconclusive" and not only_input_is_told(session):
        more = str(longer_run(session))
        return NextCommand(
            "To measure longer", _analyze(session, output_directory, "--steps", more)
        )
    if edits_for_second_run(session):
        return NextCommand("To try it in the loop", _analyze(session, output_directory, "--rerun"))
    patch = _patch(session, output_directory)
    if patch is not None:
        return patch
    budget = longer_budget(session)
    if budget is not None and any(worth_doing(one) for one in too_long_to_try(session)):
        return NextCommand(
            "To try it in whole epochs",
            _analyze(session, output_directory, "--budget", str(budget)),
        )
    if any(worth_doing(finding) for finding in session.findings):
        return NextCommand("After the edit", _analyze(session, output_directory))
    return _without_advice(session, output_directory)


def _without_advice(session: Session, output_directory: Path | None) -> NextCommand | None:
    budget = longer_budget(session)
    if budget is None:
        if session.verdict.bottleneck == "inconclusive":
            return None  # no gate has a verdict to keep
        return NextCommand("To keep it so in CI", _of_session(session, output_directory, "check"))
    return NextCommand(
        "To decide what is open", _analyze(session, output_directory, "--budget", str(budget))
    )


def _of_session(session: Session, output_directory: Path | None, command: str) -> str:
    target = str(output_directory or _default_directory(session))
    return shlex.join(["pipediag", command, target])


def _patch(session: Session, output_directory: Path | None) -> NextCommand | None:
    if session.patch is None or session.patch.diff is None:
        return None
    return NextCommand("The change as a patch", _of_session(session, output_directory, "fix"))


def _analyze(session: Session, output_directory: Path | None, *options: str) -> str:
    script = session.script
    output: list[str] = []
    if output_directory is not None and output_directory != _default_directory(session):
        output = ["-o", str(output_directory)]
    module = ["-m"] if script.module else []
    words = ["pipediag", "analyze", *options, *output, *module, script.path, *script.args]
    return shlex.join(words)


def _default_directory(session: Session) -> Path:
    return default_directory(session.script.path, module=session.script.module)
