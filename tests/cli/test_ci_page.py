"""The commands, configurations and workflows of docs/ci.md, run against recorded sessions."""

from __future__ import annotations

import re
import shlex
from importlib import import_module
from pathlib import Path

import click
import pytest
import yaml

from pipediag.cli.main import COMMANDS
from pipediag.gate.config import GateConfig, load_config
from pipediag.rules.registry import BY_ID

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
