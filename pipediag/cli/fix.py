"""`pipediag fix`: print, apply or verify the confirmed edits of a session as a patch."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipediag.cli.common import deliver, newest_report, say
from pipediag.errors import ExitStatus, PipediagError
from pipediag.interrupts import INTERRUPTS

if TYPE_CHECKING:
    from pipediag.runner.native_runs import Said
    from pipediag.runner.patched_analysis import PatchedAnalysis
    from pipediag.session.findings import LeftOut, Patch
    from pipediag.session.ledger import RunGain
    from pipediag.session.model import Session

_HARMLESS = ("same results", "same up to order or rounding")


@click.command(name="fix")
@click.argument("session", metavar="[SESSION]", required=False, type=Path)
@click.option("--apply", is_flag=True, help="Change the files that were measured.")
@click.option(
    "--verify",
    is_flag=True,
    help="Run the script and a patched copy alternately, and compare with the promised gain.",
)
@click.option(
    "--again",
    is_flag=True,
    help="Analyse the patched script, too, and print one patch with what both analyses found.",
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
    help="Include the edit of this rule, too; may be repeated.",
)
@click.option(
    "--brief",
    metavar="[markdown|json]",
    is_flag=False,
    flag_value="markdown",
    help="Print what a rewrite by hand needs to know, for findings that no patch holds.",
)
def command(
    session: Path | None,
    apply: bool,
    verify: bool,
    again: bool,
    rounds: int,
    rules: tuple[str, ...],
    brief: str | None,
) -> None:
    """Print the confirmed edits of a session as a patch.

    SESSION is a session.json or its directory, by default the newest report below reports/. Nothing
    is changed without --apply. Edits that are right only under a condition, that gain nothing for
    the whole run, that were not shown to add to the others, or that were not measured are left out
    unless --with names their rule.
    """
    from pipediag.runner.source_files import with_rules
    from pipediag.session.store import load_session

    if brief not in (None, "markdown", "json") and session is None:
        # `fix --brief reports/train`
        session, brief = Path(brief), "markdown"
    path = session or newest_report()
    loaded = load_session(path)
    if brief is not None:
        _print_briefs(loaded, brief)
        return
    _refuse_without_its_source(loaded, path)
    loaded = with_rules(loaded, rules)
    patch = loaded.patch
    again = again and patch is not None and patch.diff is not None
    if not again:
        _print(loaded, path)
    if patch is None or patch.diff is None or not (apply or verify or again):
        return
    from pipediag.facts.promise import promised
    from pipediag.patching.making import measured_files, patched_files, write_files

    contents, promise, analysed = patched_files(loaded, patch), promised(loaded), [loaded]
    if again:
        second, promise = _analysed_again(loaded, contents, path)
        contents, analysed = second.contents, [loaded, second.session]
    status = _verify(analysed, contents, rounds, promise) if verify else ExitStatus.DONE
    if apply and status is not ExitStatus.DONE:
        say("Nothing was changed. Without --verify, --apply applies the patch all the same.")
    elif apply:
        if INTERRUPTS.came:
            raise KeyboardInterrupt
        measured_files(patch)  # one may have been edited during the runs
        write_files(contents)
        for name in contents:
            say(f"changed {name}")
    raise click.exceptions.Exit(status)


def _print_briefs(session: Session, form: str) -> None:
    from pipediag.reporters.brief import as_json, as_markdown, briefs

    found = briefs(session)
    if form == "json":
        deliver(as_json(found))
    elif found:
        say(as_markdown(found).rstrip("\n"), err=False)
    else:
        say("Every finding that could make the run faster is in the patch, or there is none.")


def _analysed_again(
    session: Session, contents: Mapping[str, bytes], path: Path
) -> tuple[PatchedAnalysis, RunGain | None]:
    """Analyse the patched script and print one patch; return both, and what they promise."""
    from pipediag.encoding import applicable
    from pipediag.facts.promise import gain_of_both, promised
    from pipediag.reporters.words.run import gain
    from pipediag.runner.patched_analysis import analyse_patched
    from pipediag.runner.progress import ProgressLine

    report = _directory(path) / "again"
    say("pipediag: running the patched script, to find what its changes uncover")
    progress = ProgressLine(sys.stderr)
    try:
        found = analyse_patched(session, contents, report, progress)
    finally:
        progress.end()
    deliver(applicable(found.diff))
    _say_root(session, found.contents)
    for one in (session, found.session):
        if one.patch is not None:
            _say_effects(one, one.patch)
    first, second = promised(session), promised(found.session)
    together = None
    # The second analysis may be about less of the run than the first one.
    if first and second and (first.scope, first.basis) == (second.scope, second.basis):
        together = gain_of_both(first, second)
    say(f"Patch of the first analysis: {gain(first) or 'its gain is not known'}.")
    say(f"What the second one adds to it: {gain(second) or 'nothing more was confirmed'}.")
    if together is not None:
        say(f"Together: {gain(together)}.")
    say(f"The report of the patched script: {report / 'report.html'}")
    return found, together or first


def _directory(session: Path) -> Path:
    return session if session.is_dir() else session.parent


_WORTH_ANOTHER_LOOK = 1.3
"""Gain that may be left after a patch, from which another analysis is advised. Own choice: where
traces took 92 % of a project's steps, a second analysis found 1.5x more."""


def _say_what_is_left(session: Session, path: Path) -> None:
    from pipediag.facts.promise import promised
    from pipediag.facts.run_gain import limit_of_run

    limit, gain = limit_of_run(session), promised(session)
    measured = gain is not None and gain.basis == "measured"
    left = limit.speedup / gain.speedup if limit is not None and gain is not None else 1.0
    if measured and left >= _WORTH_ANOTHER_LOOK and session.script.call is None:
        again = shlex.join(["pipediag", "fix", str(path), "--again"])
        say(f"At most {left:.1f}x is left. `{again}` also finds what these changes uncover.")


def _refuse_without_its_source(session: Session, path: Path) -> None:
    """Refuse a session with confirmed edits and without source, or with that of copies."""
    from pipediag.runner.patched_analysis import FILES

    if (_directory(path) / FILES).is_dir():
        raise PipediagError(
            f"{path} is of a patched copy. Its changes are in the patch that `pipediag fix "
            "--again` prints for the report of the script itself."
        )
    confirmed = any(
        finding.edit is not None and finding.trial.state == "confirmed"
        for finding in session.findings
    )
    if confirmed and session.patch is None:
        raise PipediagError(
            f"{path} does not hold the source that was measured: PIPEDIAG_NO_SOURCE was set, "
            "or it is of an older pipediag. Analyse the script again."
        )


def _print(session: Session, path: Path) -> None:
    from pipediag.encoding import applicable
    from pipediag.facts.order import worth_doing

    patch = session.patch
    if patch is None:
        say("No edit was confirmed by a trial.")
    elif patch.diff is not None:
        deliver(applicable(patch.diff))
        _say_effects(session, patch)
        for sentence in patch.shared:
            say(sentence)
        _say_root(session, [file.path for file in patch.files])
        first = next(filter(worth_doing, session.findings), None)
        if first is not None and (first.edit is None or first.edit.id not in patch.edits):
            say(f"The report's first change is not in the patch. By hand: {first.advice}")
        _say_what_is_left(session, path)
    for each in patch.left_out if patch is not None else []:
        _say_left_out(session, each, path)
    if patch is None or patch.diff is None:
        _say_suggested(session, path)
        say("Nothing to write into the source.")


def _say_root(session: Session, files: Iterable[str]) -> None:
    from pipediag.patching.making import patch_root

    if (directory := session.script.directory) is None:
        return
    if (root := patch_root(files, directory)) != str(Path.cwd()):
        say(f"Paths in the patch are relative to {root}.")


def _say_effects(session: Session, patch: Patch) -> None:
    for finding in session.findings:
        edit, effect = finding.edit, finding.effect_on_results
        if edit is None or edit.id not in patch.edits:
            continue
        if finding.trial.state != "confirmed":
            say(f"Suggested, not measured: {edit.label}.")
        if finding.condition is not None:
            say(f"{edit.label}: right only {finding.condition}.")
        if effect not in (None, *_HARMLESS):
            say(f"{edit.label}: {effect}.")


def _say_left_out(session: Session, left: LeftOut, path: Path) -> None:
    """Say why an edit is not in the patch, and how to include it or do it by hand."""
    from pipediag.runner.source_files import left_to_name

    labels = {f.edit.id: f.edit.label for f in session.findings if f.edit is not None}
    to_name = {f.edit.id: f for f in left_to_name(session) if f.edit is not None}
    finding = to_name.get(left.edit)
    said, snippet = left.reason, left.snippet
    # An edit whose rule was named can be left out for a second reason.
    own = finding.patch if finding is not None else None
    if finding is not None and own is not None and said not in [x.reason for x in own.left_out[:1]]:
        if left.edit in own.edits:
            said += f" `{_with(path, finding.rule)}` puts it in."
        for one in own.left_out:
            said, snippet = f"{said} {one.reason}", one.snippet
    say(f"Not in the patch: {labels.get(left.edit, left.edit)}. {said}")
    _say_code(snippet)


def _with(path: Path, rule: str) -> str:
    return shlex.join(["pipediag", "fix", str(path), "--with", rule])


def _say_code(code: str | None) -> None:
    if code:
        say("\n".join(f"    {line}" for line in code.split("\n")))


def _say_suggested(session: Session, path: Path) -> None:
    """Say what may help and was not measured: a command, code to paste, or advice."""
    from pipediag.facts.order import to_act_on
    from pipediag.runner.source_files import suggested

    written = session.patch.edits if session.patch is not None else []
    for finding in suggested(session):
        edit, patch = finding.edit, finding.patch
        if finding.status != "fail" or edit is None or edit.id in written:
            continue
        said = f"Suggested, not measured: {edit.label}."
        if finding.condition is not None:
            said += f" It is right only {finding.condition}."
        if patch is not None and patch.diff is not None:
            say(f"{said} `{_with(path, finding.rule)}` prints it as a patch.")
        for left in patch.left_out if patch is not None else []:
            say(f"{said} {left.reason}")
            _say_code(left.snippet)
    for finding in session.findings:
        if finding.edit is None and finding.advice and to_act_on(finding):
            say(f"By hand: {finding.title}. {finding.advice}")


def _verify(
    sessions: Sequence[Session],
    contents: Mapping[str, bytes],
    rounds: int,
    said: RunGain | None,
) -> ExitStatus:
    """Compare the promised gain with the one obtained; a broken promise fails.

    The first session is of the script; another one, of the patched script, adds to the patch.
    """
    from pipediag.facts.promise import gain_of_whole
    from pipediag.reporters.words.run import gain
    from pipediag.runner.native_runs import compared, kept, obtained, versions

    # Then the patched copy is removed, too.
    INTERRUPTS.finish_first(also_of=(signal.SIGTERM,))

    done = 0

    def tell(name: str, wall_s: float) -> None:
        nonlocal done
        done += 1
        say(f"ran {name}: {wall_s:.1f} s ({done} of at most {4 + 2 * rounds} runs)")

    with versions(sessions[0], contents) as both:
        # First, so that the script's files are those of a full run in the end.
        say("pipediag: short seeded runs, to compare batches and losses")
        same = compared(*both, tell=tell)
        say(f"pipediag: {rounds} runs of each version to the end")
        found, script_s = obtained(both, rounds, tell=tell)
    if said is not None and said.basis != "measured":
        said = None
    promise = gain_of_whole(said, sessions[0], script_s)
    say(f"Promised: {gain(said) or 'nothing for the run was measured'}.")
    if said is not None and promise is None:
        say("What happens once per run took longer than all of it does now: no promise follows.")
    elif promise != said:
        say(f"With what happens once per run, that is {gain(promise)} for the script.")
    say(f"Obtained: {found} for the run, from start to exit, in {rounds} rounds.")
    for one in same:
        say(one.sentence)
    results = _results(sessions, same)
    if results is not ExitStatus.DONE:
        return results
    if promise is None:
        # What is obtained has to show alone that the patch is worth making.
        if found.low > 1.0:
            return ExitStatus.DONE
        return ExitStatus.GATE_FAILED if found.high < 1.0 else ExitStatus.INCONCLUSIVE
    if kept(promise, found):
        say("The two intervals overlap: the promise is kept.")
        return ExitStatus.DONE
    more = found.low > promise.speedup
    say("It obtains more than was promised." if more else "It obtains less than was promised.")
    return ExitStatus.DONE if more else ExitStatus.GATE_FAILED


def _results(sessions: Iterable[Session], same: Sequence[Said]) -> ExitStatus:
    """Compare what was seen of batches and losses with what the patch may change in them."""
    effects = {
        one.effect_on_results
        for session in sessions
        if session.patch is not None
        for one in session.findings
        if one.edit is not None and one.edit.id in session.patch.edits
    }
    batches, losses = same[0].found, same[-1].found
    if batches == "different" and effects == {"same results"}:
        say("The batches differ, and no change of the patch should make them do so.")
        return ExitStatus.GATE_FAILED
    if losses != "different" or effects & {"changes a hyper-parameter", "corrects results"}:
        return ExitStatus.DONE
    if batches != "equal" and "same up to order or rounding" in effects:
        say("The losses differ; whether that comes from another order alone is not known.")
        return ExitStatus.INCONCLUSIVE
    say("The losses differ, and no change of the patch should make them do so.")
    return ExitStatus.GATE_FAILED
