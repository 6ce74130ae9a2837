"""A session that no pipediag wrote is refused in a sentence, or shown: never an error of ours."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from pipediag.comparison import compare
from pipediag.comparison import formats as comparison_formats
from pipediag.errors import PipediagError
from pipediag.gate.config import GateConfig, OnMachine
from pipediag.gate.evaluation import evaluate, evaluate_runs
from pipediag.gate.formats import NAMES, render
from pipediag.reporters.html import page as html
from pipediag.reporters.tables import csv as tables
from pipediag.reporters.terminal import summary as terminal
from pipediag.session.store import dump_session, load_session
from tests.encoding import mutations
from tests.encoding.poisoned import CLEAN

LIMITED = GateConfig(
    max_input_wait_percent=1,
    max_overhead_percent=1,
    max_run_percent={"compile": 1.0},
    max_confirmed_speedup_left=1.2,
    max_device_idle_percent=1,
    max_padding_percent=1,
    max_embedding_gib=1.0,
    on_machine=OnMachine(fingerprint=CLEAN, max_step_ms=1.0),
)
Mutations = Iterator[tuple[str, dict[str, Any]]]


def shown_everywhere(folder: Path, content: dict[str, Any]) -> bool:
    """Whether the session was taken for one; then every medium shows it."""
    file = folder / "session.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    try:
        session = load_session(file)
    except PipediagError:
        return False
    for config in (GateConfig(), LIMITED):
        for name in NAMES:
            render(name, [evaluate(session, config), evaluate_runs([session] * 3, config)])
    for count in (1, 3):
        for ratios_only in (False, True):
            found = compare([session] * count, [session] * count, ratios_only=ratios_only)
            for name in ("html", "json", "markdown", "text"):
                comparison_formats.render(name, found)
    list(tables.files(session))
    html.render(session)
    console = Console(file=io.StringIO(), width=80)
    terminal.render(session, console, output_directory=None, verbose=True)
    dump_session(session)
    return True


@pytest.mark.parametrize("number", [0, -1, 1e19, -1e19, 5e-324])
def test_numbers_that_no_measurement_gives(tmp_path: Path, number: float) -> None:
    taken = [
        section
        for section, content in mutations.with_every_number(number)
        if shown_everywhere(tmp_path, content)
    ]
    assert "breakdown" in taken


@pytest.mark.parametrize(
    "make",
    [
        lambda: mutations.with_each_part([]),
        lambda: mutations.with_each_part({}),
        lambda: mutations.with_each_part(None),
        mutations.without_each_key,
    ],
    ids=["empty lists", "empty objects", "nothing", "without a key"],
)
def test_parts_that_are_missing_or_of_another_kind(
    tmp_path: Path, make: Callable[[], Mutations]
) -> None:
    taken = {path: shown_everywhere(tmp_path, content) for path, content in make()}

    assert not all(taken.values())
    assert any(taken.values())
