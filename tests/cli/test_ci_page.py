"""The commands, configurations and workflows of docs/ci.md, run against recorded sessions."""

from __future__ import annotations

import os
import re
import shlex
import stat
import subprocess
import sys
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from packaging.requirements import Requirement

from pipediag.cli.main import COMMANDS
from pipediag.gate.config import GateConfig, load_config
from pipediag.rules.registry import BY_ID
from pipediag.session.model import Session
from tests.comparison.sides import run_of
from tests.factories import make_session
from tests.probe import environment
from tests.records import make_breakdown

PAGE = Path(__file__).parents[2] / "docs" / "ci.md"


BLOCKS = re.findall(r"```(\w*)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


CALL = r"(?:(?<=run: )|(?<=entry: )|(?<=\t)|(?<=- )|(?<=\$ )|`)pipediag [a-z].*"


CALLS = sorted({found.strip("`") for found in re.findall(CALL, PAGE.read_text(encoding="utf-8"))})


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


PAGE = Path(__file__).parents[2] / "docs" / "ci.md"


BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


LIMIT = "[tool.pipediag]\nmax-input-wait-percent = 20\n"
"""The sessions below lie on either side of it."""


PIP = '#!/bin/sh\nfor one; do echo "$one"; done >> "$INSTALLED"\n'
"""Writes down what it was asked to install, an argument a line."""


PIPEDIAG = """#!{python}
import os, shutil, subprocess, sys

own = [sys.executable, "-m", "pipediag"]
name, *rest = sys.argv[1:]
recorded = os.environ["RECORDED"]
if name == "compare" and "--" in rest:
    # Three runs of each, and the comparison of them.
    into = rest[rest.index("-o") + 1]
    for side in ("base", "head"):
        for number in (1, 2, 3):
            shutil.copytree(f"{{recorded}}/{{side}}", f"{{into}}/{{side}}/run-{{number}}")
    sys.exit(subprocess.call([*own, "compare", f"{{into}}/base", f"{{into}}/head"]))
if name == "analyze":
    into = rest[rest.index("-o") + 1]
    shutil.copytree(f"{{recorded}}/head", into, dirs_exist_ok=True)
    print("train.py has run")
    sys.exit(subprocess.call([*own, "check", into]) if "--fail-on" in rest else 0)
sys.exit(subprocess.call([*own, *sys.argv[1:]]))
"""


def of_input_wait(percent: float) -> Session:
    breakdown = make_breakdown(input_wait=percent, device_compute=100.0 - percent)
    return make_session(breakdown=breakdown, findings=[])


@dataclass
class Workplace:
    """A checkout on a runner, where `head` was measured, and `base` before it."""

    directory: Path
    places: list[Path]
    recorded: Path

    def measured(self, head: Session, base: Session | None = None) -> None:
        for side, session in (("head", head), ("base", base or head)):
            folder = self.recorded / side
            folder.mkdir(parents=True)
            (folder / "session.json").write_text(session.model_dump_json(), encoding="utf-8")

    @property
    def installed(self) -> list[str]:
        """What pip was asked for."""
        asked = self.directory.parent / "installed"
        return asked.read_text(encoding="utf-8").splitlines() if asked.exists() else []

    def run(self, command: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join([*map(str, self.places), os.environ["PATH"]])
        return subprocess.run(
            command,
            cwd=self.directory,
            env={
                **environment(),
                "PATH": path,
                "RECORDED": str(self.recorded),
                "INSTALLED": str(self.directory.parent / "installed"),
                **variables,
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )


@pytest.fixture
def workplace(tmp_path: Path) -> Workplace:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, text in (
        ("pip", PIP),
        ("pipediag", PIPEDIAG.format(python=sys.executable)),
    ):
        (tools / name).write_text(text, encoding="utf-8")
        (tools / name).chmod(stat.S_IRWXU)
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    (checkout / "pyproject.toml").write_text(LIMIT, encoding="utf-8")
    (checkout / "train.py").write_text("", encoding="utf-8")
    return Workplace(checkout, [tools, Path(sys.executable).parent], tmp_path / "recorded")


def written(kind: str, holding: str) -> str:
    """The one block of that kind that holds the text."""
    [text] = [text for found, text in BLOCKS if found == kind and holding in text]
    return text


@dataclass
class Job:
    """What a job of GitHub Actions came to."""

    failed: list[str] = field(default_factory=list)
    output: str = ""
    summary: str = ""


def from_no_index(asked: list[str]) -> None:
    """Pip was asked for pipediag by the address of its sources: no release is needed."""
    [line] = [one for one in asked if "pipediag" in one]
    requirement = Requirement(line)
    assert (requirement.name, requirement.extras) == ("pipediag", {"tensorflow"})
    assert requirement.url is not None
    assert requirement.url.startswith("git+https://")


def github(workplace: Workplace, steps: list[dict[str, Any]], **variables: str) -> Job:
    """As its runner does: bash with -e; after a failure only what is to run always."""
    job = Job()
    summary = workplace.directory.parent / "summary.md"
    summary.touch()
    for step in steps:
        assert ("run" in step) != ("uses" in step)
        if "uses" in step or (job.failed and step.get("if") != "always()"):
            continue
        done = workplace.run(
            ["bash", "-e", "-c", step["run"]], GITHUB_STEP_SUMMARY=str(summary), **variables
        )
        job.output += done.stdout + done.stderr
        if done.returncode:
            job.failed.append(step.get("name", step["run"]))
    job.summary = summary.read_text(encoding="utf-8")
    return job


def test_actions_gate_a_pull_request(workplace: Workplace) -> None:
    workflow = yaml.safe_load(written("yaml", "runs-on"))
    # YAML 1.1 takes the key `on` for true.
    assert workflow[True] == ["pull_request"]
    workplace.measured(of_input_wait(70.0))
    job = github(workplace, workflow["jobs"]["pipediag"]["steps"], **workflow["env"])

    from_no_index(workplace.installed)
    assert job.failed == ["Gate"]
    assert "::error file=train.py,line=12," in job.output
    assert "max-input-wait-percent" in job.summary
    kept = workflow["jobs"]["pipediag"]["steps"][-1]
    assert kept["if"] == "always()"
    assert (workplace.directory / kept["with"]["path"] / "train" / "session.json").exists()


@pytest.mark.parametrize(("head_ms", "fails"), [(10.0, False), (13.0, True)])
def test_actions_compare_both_versions_in_one_job(
    workplace: Workplace, head_ms: float, fails: bool
) -> None:
    steps = yaml.safe_load(written("yaml", "github.base_ref"))["steps"]
    assert [step["with"]["path"] for step in steps if "with" in step] == ["head", "base"]
    workplace.measured(run_of(head_ms), base=run_of(10.0))
    job = github(workplace, steps, **yaml.safe_load(written("yaml", "runs-on"))["env"])
    from_no_index(workplace.installed)
    assert bool(job.failed) is fails
    assert ("against reports/base: failed" in job.summary) is fails
    assert "3 and 3 runs" in job.summary
