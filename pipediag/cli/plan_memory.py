"""`pipediag plan-memory`: what training takes of memory, and what each way out would leave."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from pipediag.cli.analyze import script_arguments
from pipediag.cli.byte_size import ByteSize
from pipediag.cli.say import deliver, say
from pipediag.cli.transfer_rate import TransferRate

if TYPE_CHECKING:
    from pipediag.runner.progress import Shown
    from pipediag.session.memory_plan import MemoryPlan
    from pipediag.session.model import Session

_STEPS = 8
"""Own choice: batches that are looked at come between these."""
_WARMUP = 2


@click.command(
    name="plan-memory",
    context_settings={"allow_interspersed_args": False, "help_option_names": ["-h", "--help"]},
)
@click.option("-m", "module", is_flag=True, help="SCRIPT is a module's name, as with `python -m`.")
@click.option(
    "--device-memory",
    type=ByteSize(),
    metavar="SIZE",
    help="Of one device, such as 16GB.  [default: the GPU's, where one is seen]",
)
@click.option(
    "--host-memory",
    type=ByteSize(),
    metavar="SIZE",
    help="Of the host.  [default: the machine's]",
)
@click.option(
    "--devices",
    type=click.IntRange(min=2),
    default=4,
    show_default=True,
    metavar="N",
    help="Over how many sharding divides a table.",
)
@click.option(
    "--buckets",
    type=click.IntRange(min=2),
    default=10,
    show_default=True,
    metavar="N",
    help="Ids that share a row in hashing.",
)
@click.option(
    "--link",
    type=TransferRate(),
    metavar="RATE",
    help="Between devices, or device and host, such as 16GB/s: what crosses it gets its time.",
)
@click.option(
    "--time-ways",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Time the largest tables and their ways out on this machine, for this long after the run; "
    "TensorFlow's start in a process of its own comes on top.  [default: not timed]",
)
@click.option(
    "--session",
    type=click.Path(path_type=Path),
    metavar="SESSION",
    help="Plan from a recorded session, and run nothing.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="End the run after this long; what was seen by then is planned with.",
)
@click.option("--json", "json_mode", is_flag=True, help="Print the plan as JSON instead.")
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="The ways out of every table, and TensorFlow's own log where it is written.",
)
@click.argument("script", required=False)
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Say what training takes of memory, table by table, and what each way out would leave.

    SCRIPT runs with its ARGS as far as its first steps, and is stopped. Options for pipediag come
    before SCRIPT.

    Exit status: 0 planned, 2 usage, 3 the script failed before a step was seen.
    """
    from pipediag.errors import ExitStatus
    from pipediag.facts.memory_plan import Given, plan_memory
    from pipediag.facts.table_ways import Shares

    session = _session(ctx, options)
    failure = _failure(session)
    if failure is not None:
        say(f"pipediag: {failure} So there is nothing to plan with.")
        ctx.exit(ExitStatus.SCRIPT_FAILED)
    plan = plan_memory(
        session,
        Given(options["device_memory"], options["host_memory"], options["link"]),
        Shares(devices=options["devices"], buckets=options["buckets"]),
    )
    _show(plan, ctx.color, options)


def _session(ctx: click.Context, options: dict[str, Any]) -> Session:
    """The recorded one, or one of the first steps.

    Raises:
        click.UsageError: neither a script nor a session is named, or both.
    """
    recorded, script = options["session"], options["script"]
    if (recorded is None) == (script is None):
        raise click.UsageError(
            "Name either a SCRIPT to run as far as its first steps, or a recorded session with "
            "--session.",
            ctx,
        )
    if recorded is not None and options["time_ways"] is not None:
        raise click.UsageError(
            "--time-ways takes the ids of a run, which no session holds. Name the SCRIPT instead; "
            "what `pipediag analyze --time-ways` has timed, --session shows without it.",
            ctx,
        )
    if recorded is not None:
        from pipediag.session.store import load_session

        return load_session(recorded)
    return _first_steps(ctx, options)


def _first_steps(ctx: click.Context, options: dict[str, Any]) -> Session:
    from pipediag.cli.folded_log import say_folded, say_last
    from pipediag.runner.analysis import AnalysisRequest, analyse
    from pipediag.runner.timed_ways import TimedWays

    time_ways = None
    if options["time_ways"] is not None:
        time_ways = TimedWays(options["time_ways"], options["buckets"])
    own = [
        name for one in ctx.command.params if one.param_type_name == "option" for name in one.opts
    ]
    args, note = script_arguments(options["args"], own)
    if note:
        say(f"pipediag: {note}")
    with TemporaryDirectory(prefix="pipediag-") as directory:
        request = AnalysisRequest(
            script=options["script"],
            args=args,
            module=options["module"],
            output=Path(directory) / "report",
            steps=_STEPS,
            warmup=_WARMUP,
            profile_steps=0,
            look_ahead_s=0.0,
            timeout_s=options["timeout"],
            budget_s=0.0,
            time_ways=time_ways,
            script_output_to_stderr=True,
            fold_log=not options["verbose"],
        )
        result = analyse(request, _say_what_takes_long)
    # Behind the block: its directory is no place to look into.
    say_folded(result)
    say_last(result)
    return result.session


def _say_what_takes_long(event: Shown) -> None:
    from pipediag.runner.progress import TIMES_TABLES, TimesTables

    if isinstance(event, TimesTables):
        say(f"pipediag: {TIMES_TABLES.format(budget_s=event.budget_s)}")


def _failure(session: Session) -> str | None:
    """Why there is nothing to plan with."""
    from pipediag.facts.ending import script_failure

    return None if session.embeddings else script_failure(session)


def _show(plan: MemoryPlan, color: bool | None, options: dict[str, Any]) -> None:
    if options["json_mode"]:
        from pipediag.session.record import to_json

        deliver(to_json(plan, indent=1) + "\n")
        return
    from rich.console import Console

    from pipediag.reporters.terminal.memory_plan import render

    console = Console(
        file=sys.stdout, force_terminal=True if color else None, no_color=color is False
    )
    render(plan, console, verbose=options["verbose"])
