"""`pipediag check`: put limits to recorded sessions."""

from __future__ import annotations

import pkgutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipediag.cli.format_option import format_option
from pipediag.cli.gate_config import load_gate_config
from pipediag.cli.say import deliver, say
from pipediag.cli.width import fitted

if TYPE_CHECKING:
    from pipediag.gate import GateConfig, GateResult
    from pipediag.session.model import Session

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
    "--baseline",
    metavar="SESSION",
    type=Path,
    multiple=True,
    help="Fail where the sessions are slower than these too; `pipediag compare` says how.",
)
@click.option(
    "--ratios-only",
    is_flag=True,
    help="Of the baseline compare shares alone, which carry over to other machines.",
)
@format_option(FORMAT_NAMES, "Form of the result; docs/ci.md says which is for what.")
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
    baseline: tuple[Path, ...],
    ratios_only: bool,
    format_name: str,
    output: Path | None,
    allow_inconclusive: bool,
) -> None:
    """Check recorded sessions against the limits in [tool.pipediag].

    SESSION is a session.json, the directory that holds it, or a directory of runs as `analyze
    --repeats` makes it. Several runs of one script are judged as one, by their medians; of several
    scripts the worst decides.

    Exit status: 0 passed, 1 failed, 2 usage or unreadable input, 3 a script failed before enough
    steps were seen, 4 inconclusive. Of several, 1 comes before 3, and 3 before 4.
    """
    from pipediag.errors import PipediagError
    from pipediag.gate import worst_status

    if ratios_only and not baseline:
        raise PipediagError(
            "--ratios-only says how to compare with a baseline, and none is named. Nothing was "
            "checked. Name one with --baseline, or leave --ratios-only out."
        )
    config = load_gate_config(config_path).override(allow_inconclusive=allow_inconclusive)
    runs = _by_script(_load(sessions))
    results = _evaluate_all(runs, config)
    if baseline:
        labels = (str(baseline[0]), str(sessions[0]))
        results += _against(_load(baseline), runs, config, labels, ratios_only=ratios_only)
    _deliver(results, format_name, output)
    ctx.exit(worst_status(results).value)


def _load(paths: tuple[Path, ...]) -> list[tuple[Path, Session]]:
    from pipediag.session.repeats import load_runs

    return load_runs(paths, tell=say)


def _by_script(loaded: list[tuple[Path, Session]]) -> list[list[tuple[Path, Session]]]:
    """The runs of each script and its arguments, in the order given."""
    scripts: dict[tuple[str, ...], list[tuple[Path, Session]]] = {}
    for path, session in loaded:
        script = session.script
        scripts.setdefault((script.path, *script.args), []).append((path, session))
    return list(scripts.values())


def _evaluate_all(runs: list[list[tuple[Path, Session]]], config: GateConfig) -> list[GateResult]:
    from pipediag.gate import evaluate_runs

    return [
        evaluate_runs([session for _, session in of_one], config, _label(of_one, len(runs)))
        for of_one in runs
    ]


def _label(of_one: list[tuple[Path, Session]], scripts: int) -> str | None:
    """None where the script's name says enough."""
    if len(of_one) > 1:
        return f"{of_one[0][1].script.path} ({len(of_one)} runs)"
    return str(of_one[0][0]) if scripts > 1 else None


def _against(
    base: list[tuple[Path, Session]],
    runs: list[list[tuple[Path, Session]]],
    config: GateConfig,
    labels: tuple[str, str],
    *,
    ratios_only: bool,
) -> list[GateResult]:
    """Raises PipediagError where more than one script was given, as one baseline is of one."""
    from pipediag.comparison import compare
    from pipediag.errors import PipediagError
    from pipediag.gate.baseline import against_baseline

    if len(runs) > 1:
        raise PipediagError(
            "--baseline is of one script, and the sessions are of several. Nothing was checked. "
            "Check the sessions of each script with a baseline of its own."
        )
    comparison = compare(
        [session for _, session in base],
        [session for _, session in runs[0]],
        labels=labels,
        ratios_only=ratios_only,
        floor_percent=config.max_slowdown_percent,
    )
    return [against_baseline(comparison, config, runs[0][0][1].script.path)]


def _deliver(results: list[GateResult], format_name: str, output: Path | None) -> None:
    from pipediag.gate.formats import render

    rendered = render(format_name, results)
    if output is None:
        text = fitted(rendered, sys.stdout) if format_name == "text" else rendered
        deliver(text)
        return
    # First, so that it is said even where the file can't be written.
    deliver(fitted(render("text", results), sys.stdout))
    _write(output, rendered)


def _write(path: Path, text: str) -> None:
    from pipediag.errors import PipediagError
    from pipediag.session.files import why_not_written, write_text

    # A link (/dev/stdout is one), a pipe or a device is written to; replacing it would destroy it.
    if path.is_symlink() or (path.exists() and not path.is_file() and not path.is_dir()):
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise PipediagError(why_not_written(path, error)) from error
        return
    write_text(path, text)
