"""A session that no pipediag wrote is refused in a sentence, or shown: never an error of ours."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from pipediag.cli.common import FORMATS
from pipediag.errors import PipediagError
from pipediag.gate.baseline import compare_with_baseline
from pipediag.gate.config import GateConfig, OnMachine
from pipediag.gate.evaluation import evaluate, evaluate_runs
from pipediag.gate.output import render
from pipediag.reporters.html import page as html
from pipediag.reporters.tables import csv as tables
from pipediag.reporters.terminal import summary as terminal
from pipediag.session.model import Session
from pipediag.session.store import dump_session, load_session
from tests.encoding import mutations
from tests.encoding.mutations import Change, Place
from tests.encoding.poisoned import CLEAN

LIMITED = GateConfig(
    max_input_wait_percent=1,
    max_overhead_percent=1,
    max_run_percent={"compile": 1.0},
    max_confirmed_speedup_left=1.2,
    max_device_idle_percent=1,
    on_machine=OnMachine(fingerprint=CLEAN, max_step_ms=1.0),
)


def read(folder: Path, content: dict[str, Any]) -> Session | None:
    """The session, if it is taken for one."""
    file = folder / "session.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    try:
        return load_session(file)
    except PipediagError:
        return None


def show_everywhere(session: Session) -> None:
    """In every medium."""
    for config in (GateConfig(), LIMITED):
        results = [evaluate(session, config), evaluate_runs([session] * 3, config)]
        for name in FORMATS:
            render(name, results)
    for count in (1, 3):
        for ratios_only in (False, True):
            runs, labels = [session] * count, ("base", "head")
            found = compare_with_baseline(runs, runs, GateConfig(), labels, ratios_only=ratios_only)
            for name in FORMATS:
                render(name, [found])
    list(tables.files(session))
    html.render(session)
    console = Console(file=io.StringIO(), width=80)
    terminal.render(session, console, output_directory=None, verbose=True)
    dump_session(session)


def shown_everywhere(folder: Path, content: dict[str, Any]) -> bool:
    """Whether the session was taken for one; then every medium shows it."""
    session = read(folder, content)
    if session is not None:
        show_everywhere(session)
    return session is not None


@pytest.mark.parametrize("number", [0, -1, 1e19, -1e19, 5e-324])
def test_numbers_that_no_measurement_gives(tmp_path: Path, number: float) -> None:
    taken = {
        section: session
        for section, content in mutations.with_every_number(number)
        if (session := read(tmp_path, content)) is not None
    }
    assert "breakdown" in taken
    for session in taken.values():
        show_everywhere(session)


@pytest.mark.parametrize(
    ("places", "change"),
    [
        (mutations.parts(), mutations.replaced_by([])),
        (mutations.parts(), mutations.replaced_by({})),
        (mutations.parts(), mutations.replaced_by(None)),
        (mutations.keys(), mutations.removed),
    ],
    ids=["empty lists", "empty objects", "nothing", "without a key"],
)
def test_parts_that_are_missing_or_of_another_kind(
    tmp_path: Path, places: list[Place], change: Change
) -> None:
    taken = [one for one in places if read(tmp_path, mutations.changed([one], change)) is not None]
    assert 0 < len(taken) < len(places)
    shown: list[Place] = []
    for group in mutations.one_of_each_section(taken):
        session = read(tmp_path, mutations.changed(group, change))
        assert session is not None, group
        show_everywhere(session)
        shown += group
    assert sorted(shown, key=str) == sorted(taken, key=str)
