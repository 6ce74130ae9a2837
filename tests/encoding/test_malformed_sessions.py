"""A session that no pipediag wrote is refused in a sentence, or shown: never an error of ours."""

from __future__ import annotations

import copy
import io
import json
from collections.abc import Iterable, Iterator
from itertools import groupby, zip_longest
from operator import itemgetter
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
from pipediag.reporters import html, tables
from pipediag.reporters.terminal import summary as terminal
from pipediag.session.model import Session
from pipediag.session.store import dump_session, load_session
from tests.encoding.poisoned import CLEAN, session_content

Place = tuple[str | int, ...]
"""Keys and numbers of items, from outside in."""
MISSING = object()
CONTENT = session_content(CLEAN)

LIMITED = GateConfig(
    max_input_wait_percent=1,
    max_overhead_percent=1,
    max_run_percent={"compile": 1.0},
    max_confirmed_speedup_left=1.2,
    max_device_idle_percent=1,
    on_machine=OnMachine(fingerprint=CLEAN, max_step_ms=1.0),
)


def read(folder: Path, content: dict[str, Any]) -> Session | None:
    """Return the session, or nothing where it is refused."""
    file = folder / "session.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    try:
        return load_session(file)
    except PipediagError:
        return None


def show_everywhere(session: Session) -> None:
    """Write the session in every medium."""
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


def parts(content: Any, place: Place = ()) -> Iterator[Place]:
    """Yield every key, and every item that is a list or an object."""
    if not isinstance(content, dict | list):
        return
    for key, item in content.items() if isinstance(content, dict) else enumerate(content):
        if isinstance(key, str) or isinstance(item, dict | list):
            yield (*place, key)
        yield from parts(item, (*place, key))


def with_number(value: Any, number: float) -> Any:
    """Return the value with this in the place of every number."""
    match value:
        case bool():
            return value
        case int() | float():
            return number
        case list():
            return [with_number(item, number) for item in value]
        case dict():
            return {key: with_number(item, number) for key, item in value.items()}
    return value


def changed(places: Iterable[Place], other: Any) -> dict[str, Any]:
    """Return a full session with something else at these places, none of them within another."""
    content = dict(CONTENT)
    for place in places:
        content[place[0]] = copy.deepcopy(CONTENT[place[0]])
        holder: Any = content
        for key in place[:-1]:
            holder = holder[key]
        if other is MISSING:
            del holder[place[-1]]
        else:
            holder[place[-1]] = copy.deepcopy(other)
    return content


@pytest.mark.parametrize("number", [0, -1, 1e19, -1e19, 5e-324])
def test_numbers_that_no_measurement_gives(tmp_path: Path, number: float) -> None:
    taken = {
        section: session
        for section, value in CONTENT.items()
        if (session := read(tmp_path, {**CONTENT, section: with_number(value, number)}))
    }
    assert "breakdown" in taken
    for session in taken.values():
        show_everywhere(session)


@pytest.mark.parametrize("other", [[], {}, None, MISSING], ids=["[]", "{}", "null", "missing"])
def test_parts_that_are_missing_or_of_another_kind(tmp_path: Path, other: Any) -> None:
    places = list(parts(CONTENT))
    if other is MISSING:
        places = [place for place in places if isinstance(place[-1], str)]
    taken = [place for place in places if read(tmp_path, changed([place], other)) is not None]
    assert 0 < len(taken) < len(places)
    # One part of each section at once: as many sessions to show as the largest section has parts.
    sections = groupby(taken, key=itemgetter(0))
    for group in zip_longest(*(list(places) for _, places in sections)):
        session = read(tmp_path, changed(filter(None, group), other))
        assert session is not None, group
        show_everywhere(session)
