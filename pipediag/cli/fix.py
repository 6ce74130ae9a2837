"""`pipediag fix`: the confirmed edits of a session as a patch, applied or verified on request."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipediag.cli.say import deliver, say
from pipediag.errors import ExitStatus, PipediagError
from pipediag.interrupts import INTERRUPTS

if TYPE_CHECKING:
    from pipediag.session.model import Session
    from pipediag.session.patches import LeftOut, Patch

_HARMLESS = ("same results", "same up to order or rounding")
_COLORS = {"+": "green", "-": "red", "@": "cyan"}


@click.command(name="fix")
@click.argument("session", metavar="[SESSION]", required=False, type=Path)
@click.option("--apply", is_flag=True, help="Write the change into the files that were measured.")
@click.option(
    "--verify",
    is_flag=True,
    help="Run the script and a patched copy natively, in turn, and compare with the promise.",
)
@click.option(
    "--rounds",
    type=click.IntRange(min=2),
    default=3,
    show_default=True,
    metavar="N",
    help="With --verify: runs of each.",
)
@click.option(
    "--with",
    "rules",
    multiple=True,
    metavar="RULE",
    help="Put in a confirmed edit that the run does not gain by, too; may be repeated.",
)
@click.pass_context
def command(
    ctx: click.Context,
    session: Path | None,
    apply: bool,
    verify: bool,
    rounds: int,
    rules: tuple[str, ...],
) -> None:
    """Print the confirmed edits of a session as a patch of the script.

    SESSION is a session.json or the directory that holds it; without it, the newest report below
    reports/. Nothing is changed without --apply. An edit that the run as a whole does not gain by
    is left out, unless its rule is named.
    """
    from pipediag.runner.wider_patch import with_rules
    from pipediag.session.store import load_session

    path = session or _newest()
    loaded = load_session(path)
    patch = _patch(loaded, path)
    if patch is None:
        say("No edit was confirmed, so there is nothing to change.")
        return
    loaded = with_rules(loaded, patch, rules)
    patch = loaded.patch or patch
    if patch.diff is not None:
        deliver(_shown(patch.diff, ctx.color))
        _say_effects(loaded, patch)
        for sentence in patch.shared:
            say(sentence)
    for each in patch.left_out:
        _say_left_out(loaded, each, rules)
    if patch.diff is None:
        say("None of the confirmed edits is written by the patch.")
        return
    if not (apply or verify):
        return
    from pipediag.patching.as_measured import patched_files

    contents = patched_files(loaded, patch)
    status = _verify(loaded, contents, rounds) if verify else ExitStatus.DONE
    if apply:
        from pipediag.patching.applying import write_files

        write_files(contents)
        for name in contents:
            say(f"changed {name}")
    ctx.exit(status)


def _newest() -> Path:
    from pipediag.facts.report_directory import REPORTS
    from pipediag.session.files import SESSION_FILE

    # Runs of `analyze --repeats` lie one level deeper.
    found = [
        file
        for pattern in (f"*/{SESSION_FILE}", f"*/run-*/{SESSION_FILE}")
        for file in Path(REPORTS).glob(pattern)
    ]
    if not found:
        raise PipediagError(
            f"There is no report below {REPORTS}/. Name a session.json, or the directory that "
            "`pipediag analyze` wrote."
        )
    newest = max(found, key=lambda file: file.stat().st_mtime)
    say(f"pipediag: the newest report is in {newest.parent}")
    return newest


def _patch(session: Session, path: Path) -> Patch | None:
    confirmed = any(
        finding.edit is not None and finding.trial.state == "confirmed"
        for finding in session.findings
    )
    if confirmed and session.patch is None:
        raise PipediagError(
            f"{path} does not hold the source that was measured: it was written with --no-source, "
            "or by an older pipediag. Analyse the script again."
        )
    return session.patch


def _shown(diff: str, color: bool | None) -> str:
    """For a pipe as it is; for a terminal in colours."""
    from pipediag.encoding.diff import applicable

    text = applicable(diff)
    if not (sys.stdout.isatty() if color is None else color):
        return text
    return "".join(_colored(line) + "\n" for line in text.removesuffix("\n").split("\n"))


def _colored(line: str) -> str:
    if line.startswith(("--- ", "+++ ")):
        return click.style(line, bold=True)
    color = _COLORS.get(line[:1])
    text = line.removesuffix("\r")
    return click.style(text, fg=color) if color else text


def _say_effects(session: Session, patch: Patch) -> None:
    """What in the patch changes more than the time that a run takes."""
    for finding in session.findings:
        edit, effect = finding.edit, finding.effect_on_results
        if edit is not None and edit.id in patch.edits and effect not in (None, *_HARMLESS):
            say(f"{edit.label}: {effect}.")


def _say_left_out(session: Session, left: LeftOut, named: Collection[str]) -> None:
    from pipediag.runner.wider_patch import too_costly

    labels = {f.edit.id: f.edit.label for f in session.findings if f.edit is not None}
    costly = {f.edit.id: f for f in too_costly(session) if f.edit is not None}
    finding = costly.get(left.edit)
    said, snippet = left.reason, left.snippet
    if finding is not None and finding.patch is not None and finding.rule not in named:
        if left.edit in finding.patch.edits:
            said += f" `--with {finding.rule}` puts it in all the same."
        for own in finding.patch.left_out:
            said, snippet = f"{said} {own.reason}", own.snippet
    say(f"Not in the patch: {labels.get(left.edit, left.edit)}. {said}")
    if snippet:
        say("\n".join(f"    {line}" for line in snippet.split("\n")))


def _verify(session: Session, contents: Mapping[str, bytes], rounds: int) -> ExitStatus:
    """Say what was promised and what was obtained; a broken promise fails."""
    from pipediag.reporters.words.run_parts import gain
    from pipediag.runner.native_runs import kept
    from pipediag.runner.patched_run import measured, promised, promised_of_whole

    # The patched copy, which lies beside the script, has to go.
    INTERRUPTS.finish_first()

    def tell(script: Path, wall_s: float) -> None:
        say(f"ran {script.name}: {wall_s:.1f} s")

    obtained = measured(session, contents, rounds, tell)
    found = obtained.gain
    said, promise = promised(session), promised_of_whole(session, obtained.script_s)
    say(f"Promised: {gain(said) or 'nothing for the run was measured'}.")
    if said is not None and promise is None:
        say("What comes once took longer than the script does now, so nothing follows for the run.")
    elif promise != said:
        say(f"With what comes once, and as long as the script took, that is {gain(promise)}.")
    say(f"Obtained: {found} for the run, from start to exit, in {rounds} rounds.")
    if promise is None:
        return ExitStatus.INCONCLUSIVE
    if kept(promise, found):
        say("The two intervals overlap: the promise is kept.")
        return ExitStatus.DONE
    more = found.low > promise.speedup
    say("It obtains more than was promised." if more else "It obtains less than was promised.")
    return ExitStatus.DONE if more else ExitStatus.GATE_FAILED
