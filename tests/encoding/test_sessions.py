"""Sessions of a stranger: no text acts in any medium, and no value is an error of ours."""

from __future__ import annotations

import copy
import csv
import io
import json
import re
from collections.abc import Iterable, Iterator
from itertools import groupby, zip_longest
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console

from pipediag.cli.common import FORMATS
from pipediag.errors import PipediagError
from pipediag.gate.baseline import compare_with_baseline
from pipediag.gate.config import GateConfig
from pipediag.gate.evaluation import evaluate
from pipediag.gate.result import render
from pipediag.reporters import html, markdown, tables
from pipediag.reporters.terminal import summary as terminal
from pipediag.session.model import Session
from pipediag.session.record import to_json
from pipediag.session.store import load_session
from tests.encoding.poisoned import CLEAN, POISON, acting, commands, session_content
from tests.reporters.pages import Element, Page, on_terminal

VARIANTS = [*({"choice": choice} for choice in range(9)), {"sections": False, "choice": 3}]
every_variant = pytest.mark.parametrize("variant", VARIANTS, ids=str)
FORMULA = re.compile(r"[\s\"]*[=+\-@]")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sessions")


class Pair(NamedTuple):
    clean: Session
    poisoned: Session


@pytest.fixture
def pair(folder: Path, variant: dict[str, Any]) -> Pair:
    """Return the session with harmless words, and the same one with poisoned texts."""

    def stored(text: str) -> Session:
        file = folder / "session.json"
        file.write_text(json.dumps(session_content(text, **variant)), encoding="utf-8")
        return load_session(file)

    return Pair(stored(CLEAN), stored(POISON))


MARKDOWN = MarkdownIt("commonmark").enable("table")


def markdown_shape(text: str) -> list[str]:
    """Return the types of the elements, and refuse markup of a stranger's."""

    def nodes(tokens: Iterable[Token]) -> Iterator[Token]:
        for token in tokens:
            yield token
            yield from nodes(token.children or [])

    assert commands(text) == []
    found = list(nodes(MARKDOWN.parse(text)))
    spoken = [node for node in found if node.type in ("text", "text_special")]
    assert not any(re.search(r"[@#]\w|GH-\d|://|www\.", node.content) for node in spoken)
    assert {node.content for node in found if node.type == "html_inline"} <= {"<!-- -->"}
    return [node.type for node in found if "text" not in node.type and node.type != "html_inline"]


def assert_harmless(text: str) -> None:
    assert commands(text) == []
    assert not acting(text)


@every_variant
@pytest.mark.parametrize(("width", "verbose"), [(30, True), (120, False)])
def test_the_summary_gives_no_commands(pair: Pair, width: int, verbose: bool) -> None:
    def write(console: Console) -> None:
        terminal.render(pair.poisoned, console, output_directory=Path("reports"), verbose=verbose)

    text = on_terminal(write, width=width)

    assert_harmless(text)
    assert max(map(len, text.splitlines())) <= width


def kinds(element: Element) -> set[tuple[str, tuple[str, ...]]]:
    own = {(element.tag, tuple(sorted(element.attributes)))}
    return own.union(*(kinds(child) for child in element.children))


@every_variant
def test_a_page_has_the_same_kinds_of_elements(pair: Pair) -> None:
    clean, poisoned = html.render(pair.clean), html.render(pair.poisoned)

    before, after = Page(clean), Page(poisoned)
    # What stands between two backticks of a text is set as code.
    assert kinds(after.root) <= kinds(before.root) | {("code", ())}
    assert not list(after.root.find("script"))
    assert acting(poisoned) <= {"\t"}
    assert "Content-Security-Policy" in poisoned
    assert [item.attributes["href"] for item in after.root.find("link")] == ["data:,"]


@every_variant
def test_the_report_as_markdown_holds_the_same_elements(pair: Pair) -> None:
    clean, poisoned = markdown.render(pair.clean), markdown.render(pair.poisoned)

    assert_harmless(poisoned)
    assert markdown_shape(poisoned) == markdown_shape(clean)


@every_variant
def test_no_cell_is_a_formula(pair: Pair) -> None:
    for name in tables.TABLES:
        clean, text = (tables.text(one, name) for one in pair)
        rows = list(csv.reader(io.StringIO(text)))
        assert len(rows) == len(list(csv.reader(io.StringIO(clean))))
        assert len({len(row) for row in rows}) == 1
        assert not [cell for row in rows for cell in row if FORMULA.match(cell)]
        assert not acting(text)


@every_variant
def test_json_comes_back_as_it_was(pair: Pair, folder: Path) -> None:
    text = to_json(pair.poisoned)

    assert_harmless(text)
    (folder / "again.json").write_bytes(text.encode())
    assert load_session(folder / "again.json") == pair.poisoned


Place = tuple[str | int, ...]
"""Keys and numbers of items, from outside in."""
MISSING = object()
CONTENT = session_content(CLEAN)

LIMITED = GateConfig(
    max_input_wait_percent=1,
    max_overhead_percent=1,
    max_run_percent={"compile": 1.0},
    max_confirmed_speedup_left=1.2,
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
    runs, labels = [session] * 3, ("base", "head")
    results = [
        evaluate(session, GateConfig()),
        evaluate(session, LIMITED),
        compare_with_baseline(runs, runs, GateConfig(), labels),
        compare_with_baseline(runs[:1], runs[:1], GateConfig(), labels),
    ]
    for name in FORMATS:
        render(name, results)
    html.render(session)
    console = Console(file=io.StringIO(), width=80)
    terminal.render(session, console, output_directory=None, verbose=True)
    to_json(session)


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


@pytest.mark.parametrize("number", [0, -1, 1e19, 5e-324])
def test_numbers_that_no_measurement_gives(tmp_path: Path, number: float) -> None:
    taken = {
        section: session
        for section, value in CONTENT.items()
        if (session := read(tmp_path, {**CONTENT, section: with_number(value, number)}))
    }
    assert "breakdown" in taken
    for session in taken.values():
        show_everywhere(session)


@pytest.mark.parametrize("other", [[], None, MISSING], ids=["[]", "null", "missing"])
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
