"""The forms of the gate's result that programs read: a stranger's text gives them nothing to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from pipediag.cli.common import FORMATS
from pipediag.gate.baseline import compare_with_baseline
from pipediag.gate.config import GateConfig
from pipediag.gate.output import render
from tests.encoding.poisoned import POISON, acting, commands
from tests.encoding.test_poisoned_sessions import Pair, both_configs, every_variant, gate


@every_variant
@both_configs
def test_no_form_acts_on_a_terminal_or_a_runner(
    tmp_path: Path, variant: dict[str, Any], config: GateConfig
) -> None:
    pair = Pair(tmp_path, variant)
    for name in FORMATS:
        clean, poisoned = gate(pair.clean, name, config), gate(pair.poisoned, name, config)

        assert not acting(poisoned), name
        assert "##[" not in poisoned, name
        assert len(commands(poisoned)) == len(commands(clean)), name
        assert poisoned.count("\n") == clean.count("\n"), name


@every_variant
@both_configs
def test_the_xml_holds_the_same_elements(
    tmp_path: Path, variant: dict[str, Any], config: GateConfig
) -> None:
    pair = Pair(tmp_path, variant)
    clean, poisoned = (
        [
            (element.tag, sorted(element.attrib))
            for element in ET.fromstring(gate(session, "junit", config).encode()).iter()
        ]
        for session in (pair.clean, pair.poisoned)
    )
    assert poisoned == clean


def shape(value: Any) -> Any:
    """What is left of a JSON value without its texts."""
    match value:
        case dict():
            return {key: shape(item) for key, item in value.items()}
        case list():
            return [shape(item) for item in value]
        case str():
            return "text"
    return value


@every_variant
@both_configs
def test_the_json_has_the_same_keys_and_numbers(
    tmp_path: Path, variant: dict[str, Any], config: GateConfig
) -> None:
    pair = Pair(tmp_path, variant)
    clean, poisoned = (
        shape(json.loads(gate(session, "json", config).encode()))
        for session in (pair.clean, pair.poisoned)
    )
    assert poisoned == clean


@every_variant
@pytest.mark.parametrize("ratios_only", [False, True])
def test_a_comparison_gives_no_commands(
    tmp_path: Path, variant: dict[str, Any], ratios_only: bool
) -> None:
    pair = Pair(tmp_path, variant)
    config, labels = GateConfig(), (POISON, POISON)
    clean, poisoned = (
        compare_with_baseline([session], [session], config, labels, ratios_only=ratios_only)
        for session in (pair.clean, pair.poisoned)
    )
    for name in ("json", "markdown", "text"):
        text = render(name, [poisoned])
        assert not acting(text), name
        assert commands(text) == [], name
        assert text.count("\n") == render(name, [clean]).count("\n"), name
