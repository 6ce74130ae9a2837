"""`show`, `explain` and `doctor`, and the commands and configurations that docs/ci.md shows."""

from __future__ import annotations

import os
import re
import shlex
from importlib import import_module
from io import StringIO
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner
from rich.console import Console

from pipediag.cli import doctor
from pipediag.cli.common import newest_report
from pipediag.cli.doctor import Check
from pipediag.cli.main import COMMANDS
from pipediag.cli.show import command
from pipediag.errors import PipediagError
from pipediag.gate.config import GateConfig, load_config
from pipediag.reporters import perfetto, write_all
from pipediag.reporters.terminal.summary import render
from pipediag.rules.registry import BY_ID
from pipediag.session.store import save_session
from tests import factories
from tests.facts.test_job import of_worker
from tests.reporters import trial_sessions
from tests.trace.builder import TraceBuilder


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    here = Path("out")
    here.mkdir()
    save_session(trial_sessions.everything_tried(), here)
    return here


@pytest.mark.parametrize("verbose", [False, True])
def test_prints_what_analyze_prints(directory: Path, verbose: bool) -> None:
    write_all(trial_sessions.everything_tried(), directory)
    printed = StringIO()
    render(
        trial_sessions.everything_tried(),
        Console(file=printed, width=80),
        output_directory=directory,
        verbose=verbose,
    )

    result = CliRunner().invoke(command, [str(directory), *(["-v"] if verbose else [])])

    assert result.exit_code == 0
    assert result.stdout == printed.getvalue()
    assert "out/report.html" in result.stdout


@pytest.mark.usefixtures("directory")
def test_the_newest_report_may_be_of_a_job() -> None:
    """Beside it lie the report of a run alone, and one of a patched script."""
    older = ["reports/train", "reports/train/again", "reports/train/rank-1.1"]
    job = ["reports/train/rank-0", "reports/train/rank-1"]
    for age, place in enumerate([*job[::-1], *older]):
        Path(place).mkdir(parents=True, exist_ok=True)
        rank = int(place[-1]) if place[-1].isdigit() else 0
        file = save_session(of_worker(rank), Path(place))
        os.utime(file, (1e9 - age, 1e9 - age))
    shown, named = CliRunner().invoke(command), CliRunner().invoke(command, job)
    assert shown.exit_code == 0
    assert shown.stdout == named.stdout
    assert newest_report() == Path("reports/train/rank-1/session.json")


@pytest.mark.usefixtures("directory")
def test_a_run_alone_is_of_no_job_though_its_directory_is_named_after_a_worker() -> None:
    for place in ("reports/rank-4", "reports/rank-8"):
        Path(place).mkdir(parents=True)
        file = save_session(trial_sessions.everything_tried(), Path(place))
        os.utime(file, (1e9, 1e9 + int(place[-1])))
    named = CliRunner().invoke(command, ["reports/rank-8"])
    assert CliRunner().invoke(command).stdout == named.stdout


@pytest.mark.usefixtures("directory")
def test_runs_of_a_comparison_are_no_job() -> None:
    """One of them may be shown, and both sides are compared."""
    sides = ["compare/base", "compare/head"]
    for side in sides:
        for run in ("run-1", "run-2"):
            Path(side, run).mkdir(parents=True)
            save_session(trial_sessions.everything_tried(), Path(side, run))
    for given in (sides, sides[:1]):
        with pytest.raises(PipediagError, match="`pipediag compare"):
            CliRunner().invoke(command, given, catch_exceptions=False)
    assert CliRunner().invoke(command, ["compare/base/run-1"]).exit_code == 0


@pytest.fixture
def session_directory(tmp_path: Path) -> Path:
    save_session(factories.make_session(), tmp_path)
    return tmp_path


def test_writes_beside_the_session(session_directory: Path) -> None:
    result = CliRunner().invoke(
        command, [str(session_directory), "--format", "html", "--format", "csv"]
    )

    assert result.exit_code == 0
    assert (session_directory / "report.html").exists()
    assert (session_directory / "steps.csv").exists()
    assert result.stdout == ""
    assert "report.html" in result.stderr


def test_writes_only_the_formats_asked_for_where_asked(session_directory: Path) -> None:
    output = session_directory / "again"
    arguments = [str(session_directory / "session.json"), "--format", "json", "--format", "html"]

    result = CliRunner().invoke(command, [*arguments, "-o", str(output)])

    assert result.exit_code == 0
    assert {path.name for path in output.iterdir()} == {"session.json", "report.html"}
    original = session_directory / "session.json"
    assert (output / "session.json").read_text() == original.read_text()


def test_text_is_the_summary_and_perfetto_needs_a_profile(session_directory: Path) -> None:
    shown, as_text = (
        CliRunner().invoke(command, [str(session_directory), *more])
        for more in ([], ["--format", "text"])
    )
    assert (as_text.exit_code, as_text.stdout) == (0, shown.stdout)
    with pytest.raises(PipediagError, match="no profile"):
        command.main([str(session_directory), "--format", "perfetto"], standalone_mode=False)


@pytest.mark.parametrize("other", ["trace/loop_1", "again/trace/loop_0"])
def test_perfetto_gets_the_profile_of_the_loop_that_the_session_is_about(
    session_directory: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    read: list[Path] = []
    monkeypatch.setattr(
        perfetto, "write_perfetto", lambda _, hosts: read.extend(one.path for one in hosts)
    )
    for place in ("trace/loop_0", other):
        (session_directory / place).mkdir(parents=True)
        builder = TraceBuilder()
        builder.host().line("python").event("call", 0, 100)
        builder.save(session_directory / place)
    CliRunner().invoke(command, [str(session_directory), "--format", "perfetto"])
    assert [one.parent for one in read] == [session_directory / "trace/loop_0"]


PAGE = Path(__file__).parents[2] / "docs" / "ci.md"

BLOCKS = re.findall(r"```(\w*)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)

CALL = r"(?:(?<=run: )|(?<=entry: )|(?<=\t)|(?<=- )|(?<=\$ )|`)pipediag [a-z].*"

CALLS = sorted({found.strip("`") for found in re.findall(CALL, PAGE.read_text(encoding="utf-8"))})


def test_problems_are_counted_and_end_with_status_0(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [
        Check("Swap", "ok", "Nothing is swapped out."),
        Check("Load", "warn", "3 threads.", "Steps get longer.", "Wait."),
        Check("TensorFlow", "problem", "None.", "No run.", "Install it."),
    ]
    monkeypatch.setattr(doctor, "all_checks", lambda: made)
    result = CliRunner().invoke(doctor.command)
    assert result.exit_code == 0
    assert "Problems: 1. Warnings: 1." in result.stdout
    assert "Swap: " in result.stdout
    assert "To do: Install it." in result.stdout


def words(call: str) -> list[str]:
    """As a shell would have them, without what comes after the command."""
    return shlex.split(re.split(r"[`|>]", call)[0], comments=True)


def blocks(kind: str) -> list[str]:
    return [text for found, text in BLOCKS if found == kind]


@pytest.mark.parametrize("call", CALLS)
def test_a_call_names_a_command_and_options_that_it_has(call: str) -> None:
    _, name, *arguments = words(call)
    command = import_module(COMMANDS[name][0]).command
    if isinstance(command, click.Group):
        command = command.commands[arguments.pop(0)]
    if "--" in arguments:
        arguments = arguments[: arguments.index("--")]
    for at, argument in enumerate(arguments):
        if argument.startswith("-"):
            [option] = [one for one in command.params if argument in one.opts]
            if isinstance(option.type, click.Choice):
                assert arguments[at + 1] in option.type.choices


@pytest.mark.parametrize("text", blocks("toml"))
def test_a_configuration_is_one(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    assert load_config(tmp_path / "pyproject.toml", list(BY_ID)) != GateConfig()


@pytest.mark.parametrize("text", blocks("yaml"))
def test_a_workflow_is_yaml_with_steps(text: str) -> None:
    content = yaml.safe_load(text)
    assert "pipediag " in text
    assert isinstance(content, dict)
