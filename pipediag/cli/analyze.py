"""`pipediag analyze`: run a script and find out why its training is slow."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipediag.cli.common import deliver, load_gate_config, say, show_results
from pipediag.errors import ExitStatus, PipediagError

if TYPE_CHECKING:
    from pipediag.gate.config import GateConfig
    from pipediag.runner.analysis import AnalysisResult

_SIZE = re.compile(r"\s*(\d{1,12}(?:\.\d{1,6})?)\s*([kmgt]?)(i?)b?\s*", re.IGNORECASE | re.ASCII)


def _bytes(_ctx: click.Context, _option: click.Parameter, given: str | None) -> int | None:
    """Return a size in bytes: `GB` is 1000 to the third, `GiB` 1024 to the third."""
    if given is None:
        return None
    found = _SIZE.fullmatch(given)
    size = 0
    if found is not None:
        power = " kmgt".index(found[2].lower() or " ")
        size = int(float(found[1]) * (1024 if found[3] else 1000) ** power)
    if size < 1:
        raise click.BadParameter(f"{given[:32]!r} is no size. Write 16GB, 16GiB or 512MB.")
    return size


@click.command(
    context_settings={"allow_interspersed_args": False, "help_option_names": ["-h", "--help"]},
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Directory of the report.  [default: reports/<script>]",
)
@click.option(
    "--epochs",
    type=click.IntRange(1),
    metavar="N",
    help="Epochs of a full run, if the script does not say: the run is projected to them.",
)
@click.option(
    "--budget",
    "budget_s",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Time for trials of changes; 0 tries nothing.  [default: 90, or up to 180 where waits for "
    "first batches are tried]",
)
@click.option("--rerun", is_flag=True, help="Run a short script a second time for trials.")
@click.option("-m", "module", is_flag=True, help="SCRIPT is a module, as with `python -m`.")
@click.option("-q", "--quiet", is_flag=True, help="Print only errors.")
@click.option("-v", "--verbose", is_flag=True, help="Print everything that was found.")
@click.option(
    "--steps", type=click.IntRange(1), metavar="N", help="Measured steps.  [default: adapts]"
)
@click.option(
    "--loop",
    type=click.IntRange(1),
    metavar="LINE",
    help="The line of the training loop to measure.  [default: the longest in the next 5 seconds]",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="End the run after this time, and report what was measured.",
)
@click.option("--run-to-end", is_flag=True, help="Let the script finish, and try nothing in it.")
@click.option(
    "--device-memory",
    "device_memory_bytes",
    callback=_bytes,
    metavar="SIZE",
    help="Memory of the device, such as 16GB, to plan embedding tables.  [default: the GPU's]",
)
@click.option(
    "--no-source",
    is_flag=True,
    help="Keep the script's code out of session and report; there is no patch then.",
)
@click.option("--force", is_flag=True, help="Write over an earlier report instead of keeping it.")
@click.option(
    "--json",
    "json_mode",
    is_flag=True,
    help="Print the session on standard output, and the script's output on standard error.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warn"]),
    help="Check the session against the limits of [tool.pipediag], too.",
)
@click.argument("script")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Run SCRIPT with its ARGS as `python` would, and find out why its training is slow.

    Pipediag stops your script once it has seen enough, and files that it was writing may be
    incomplete; with --run-to-end it finishes. Options of pipediag come before SCRIPT; what follows
    belongs to the script.

    Example: `pipediag analyze --epochs 20 train.py --data /data`
    """
    if options["rerun"] and options["budget_s"] == 0:
        raise PipediagError(
            "--rerun is for trials, and --budget 0 makes none. The script was not run. Leave "
            "one of the two out."
        )
    # Loaded before the script is run: a misspelt key must not cost a whole run.
    fail_on = options["fail_on"]
    gate = load_gate_config(None).override(fail_on=fail_on) if fail_on else None
    own = [name for one in ctx.command.params if isinstance(one, click.Option) for name in one.opts]
    args, note = script_arguments(options["args"], own)
    if note and not options["quiet"]:
        say(f"pipediag: {note}")
    from pipediag.session.files import SESSION_FILE

    result = _analyse(options, args)
    if options["json_mode"]:
        from pipediag.session.record import to_json

        deliver(to_json(result.session))
    if not options["quiet"]:
        _show_summary(result, verbose=options["verbose"])
        if (earlier := result.kept_aside) is not None:
            compare = shlex.join(["pipediag", "compare", str(earlier), str(result.directory)])
            # That of a job is of several workers.
            more = f": {compare}" if (earlier / SESSION_FILE).exists() else ""
            say(f"pipediag: the earlier report is kept in {earlier}{more}")
    status = _exit_status(result, gate, options)
    if status < 0:
        from pipediag.runner.signals import die_by

        sys.stdout.flush()
        die_by(-status)
    ctx.exit(status)


def script_arguments(
    given: Sequence[str], own_options: Iterable[str]
) -> tuple[tuple[str, ...], str | None]:
    """Return the script's arguments, and a note if one may have been meant for pipediag.

    A leading `--` is dropped; it says that all of them are meant for the script.
    """
    if given and given[0] == "--":
        return tuple(given[1:]), None
    names = set(own_options)
    for argument in given:
        name = argument.split("=", 1)[0]
        if name in names:
            return tuple(given), (
                f"{name} comes after the script and so goes to the script. Put it before the "
                "script if it is for pipediag; write `--` after the script to silence this note."
            )
    return tuple(given), None


def _analyse(options: dict[str, Any], args: tuple[str, ...]) -> AnalysisResult:
    from pipediag.runner.analysis import BUDGET_S, AnalysisRequest, analyse, silent
    from pipediag.runner.progress import ProgressLine

    names = {one.name for one in fields(AnalysisRequest)} & options.keys()
    given = {name: options[name] for name in names} | {"args": args}
    if options["no_source"]:
        given["source"] = False
    if options["budget_s"] is None:
        given |= {"budget_s": BUDGET_S, "spare_s": BUDGET_S}
    request = AnalysisRequest(**given, script_output_to_stderr=options["json_mode"])
    if options["quiet"]:
        return analyse(request, silent)
    progress = ProgressLine(sys.stderr)
    try:
        result = analyse(request, progress)
    except BaseException:
        progress.clear()
        raise
    progress.end()
    return result


def _show_summary(result: AnalysisResult, *, verbose: bool) -> None:
    """Print the summary; an error of ours in it costs neither the exit status nor the session."""
    from rich.console import Console

    from pipediag.facts.names import as_typed
    from pipediag.reporters import failure_of
    from pipediag.reporters.terminal.summary import render

    directory = result.directory
    try:
        render(
            result.session,
            Console(stderr=True),
            output_directory=directory,
            report_written=(directory / "report.html").is_file(),
            verbose=verbose,
        )
    except Exception as error:  # noqa: BLE001 - whatever it is, the run was measured
        failure = failure_of("The summary", error)
        say(f"pipediag: {failure} The session is safe in {as_typed(directory)}.")


def _exit_status(result: AnalysisResult, gate: GateConfig | None, options: dict[str, Any]) -> int:
    from pipediag.facts.script import script_failure

    failure = script_failure(result.session)
    if failure is None and options["run_to_end"] and result.child.outcome == "stopped":
        failure = f"The script did not run to its end: {result.child.detail}"
    judged = None
    if gate is not None:
        from pipediag.gate.evaluation import evaluate

        judged = evaluate(result.session, gate)
        if not options["quiet"]:
            show_results([judged], err=True)
    status = analyze_status(
        script_failure=failure,
        script_status=result.child.script_status,
        gate=None if judged is None else judged.status,
        run_to_end=options["run_to_end"],
        reports_written=result.report_failure is None,
    )
    if result.report_failure is not None:
        say(f"pipediag: {result.report_failure}")
    if failure is not None and not (options["run_to_end"] and options["quiet"]):
        say(f"pipediag: {failure}")
    return status


def analyze_status(
    *,
    script_failure: str | None,
    script_status: int | None,
    gate: ExitStatus | None,
    run_to_end: bool,
    reports_written: bool = True,
) -> int:
    """Return the exit status; negative means: die by that signal, as the script did.

    `script_failure` says how the script ended before enough steps were seen, if it did; `gate` is
    None if no gate was asked for. Reports that could not be written change only a status that would
    be 0 otherwise, and never the script's own.
    """
    if run_to_end and script_status:
        return script_status
    if script_failure is not None and not (run_to_end and script_status == 0):
        return ExitStatus.SCRIPT_FAILED
    if not reports_written and not run_to_end:
        return gate or ExitStatus.USAGE
    return ExitStatus.DONE if gate is None else gate
