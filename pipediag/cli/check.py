"""`pipediag check`: put limits to recorded sessions."""

from __future__ import annotations

import pkgutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipediag.cli.gate_config import load_gate_config
from pipediag.cli.say import deliver, say
from pipediag.cli.width import fitted

if TYPE_CHECKING:
    from pipediag.gate import GateConfig, GateResult

_FORMATS = Path(__file__).parents[1] / "gate" / "formats"
# By their files: importing them would make `--help` wait for all that the gate needs.
FORMAT_NAMES = tuple(sorted(module.name for module in pkgutil.iter_modules([str(_FORMATS)])))


@click.command(name="check")
@click.argument("sessions", metavar="SESSION...", nargs=-1, required=True, type=Path)
@click.option(
    "--config",
    "config_path",
    metavar="PYPROJECT",
    type=Path,
    help="Read [tool.pipediag] from this file. Default: the nearest pyproject.toml upwards.",
)
@click.option(
    "--format",
    "format_name",
    type=click.Choice(FORMAT_NAMES),
    default="text",
    show_default=True,
    help="Form of the result; github prints annotations before the text.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=Path,
    help="Write the result to FILE in that form; the text form is still printed.",
)
@click.option(
    "--allow-inconclusive",
    is_flag=True,
    help="End with 0 instead of 4 where the gate could not decide.",
)
@click.pass_context
def command(
    ctx: click.Context,
    *,
    sessions: tuple[Path, ...],
    config_path: Path | None,
    format_name: str,
    output: Path | None,
    allow_inconclusive: bool,
) -> None:
    """Check recorded sessions against the limits in [tool.pipediag].

    SESSION is a session.json or the directory that holds it. Several are checked one by one, and
    the worst decides.

    Exit status: 0 passed, 1 failed, 2 usage or unreadable input, 3 a script failed before enough
    steps were seen, 4 inconclusive. Of several, 1 comes before 3, and 3 before 4.
    """
    from pipediag.gate import worst_status

    config = load_gate_config(config_path).override(allow_inconclusive=allow_inconclusive)
    results = _evaluate_all(sessions, config)
    _deliver(results, format_name, output)
    ctx.exit(worst_status(results).value)


def _evaluate_all(paths: tuple[Path, ...], config: GateConfig) -> list[GateResult]:
    from pipediag.gate import evaluate
    from pipediag.session.store import load_session

    # One script is often run several times: only the path then tells its sessions apart.
    named = len(paths) > 1
    return [
        evaluate(load_session(path, tell=say), config, label=str(path) if named else None)
        for path in paths
    ]


def _deliver(results: list[GateResult], format_name: str, output: Path | None) -> None:
    from pipediag.gate.formats import render

    rendered = render(format_name, results)
    if output is None:
        text = fitted(rendered, sys.stdout) if format_name == "text" else rendered
        deliver(text)
        return
    _write(output, rendered)
    deliver(fitted(render("text", results), sys.stdout))


def _write(path: Path, text: str) -> None:
    from pipediag.session.files import write_text

    # A link (/dev/stdout is one), a pipe or a device is written to; replacing it would destroy it.
    if path.is_symlink() or (path.exists() and not path.is_file() and not path.is_dir()):
        path.write_text(text, encoding="utf-8")
        return
    write_text(path, text)
