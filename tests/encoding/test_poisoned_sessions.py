"""Every text of a session is a stranger's: none of them may act in any medium."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console

from pipediag.reporters import html, markdown, session_file, tables
from pipediag.reporters.terminal import summary as terminal
from pipediag.session.model import Session
from pipediag.session.store import load_session
from tests.encoding.poisoned import (
    CLEAN,
    POISON,
    acting,
    commands,
    session_content,
)
from tests.reporters.pages import Element, Page

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


def json_shape(value: Any) -> Any:
    """Return a JSON value without its texts."""
    match value:
        case dict():
            return {key: json_shape(item) for key, item in value.items()}
        case list():
            return [json_shape(item) for item in value]
        case str():
            return "text"
    return value


def assert_harmless(text: str) -> None:
    assert commands(text) == []
    assert not acting(text)


def printed(session: Session, *, width: int, verbose: bool = False, style: bool = False) -> str:
    stream = io.StringIO()
    console = Console(
        file=stream,
        width=width,
        force_terminal=style,
        color_system="truecolor" if style else None,
        legacy_windows=False,
    )
    terminal.render(session, console, output_directory=Path("reports"), verbose=verbose)
    return stream.getvalue()


@every_variant
@pytest.mark.parametrize("width", [30, 80, 120])
@pytest.mark.parametrize("verbose", [False, True])
def test_the_summary_gives_no_commands(pair: Pair, width: int, verbose: bool) -> None:
    text = printed(pair.poisoned, width=width, verbose=verbose)

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
    assert [s.text for s in after.running_scripts()] == [s.text for s in before.running_scripts()]
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
    clean = {name: make() for name, make in tables.files(pair.clean)}
    for name, make in tables.files(pair.poisoned):
        text = make()
        rows = list(csv.reader(io.StringIO(text)))
        assert len(rows) == len(list(csv.reader(io.StringIO(clean[name]))))
        assert len({len(row) for row in rows}) == 1
        assert not [cell for row in rows for cell in row if FORMULA.match(cell)]
        assert not acting(text)


@every_variant
def test_json_comes_back_as_it_was(pair: Pair, folder: Path) -> None:
    [(_, text)] = session_file(pair.poisoned)

    assert_harmless(text)
    (folder / "again.json").write_bytes(text.encode())
    assert load_session(folder / "again.json") == pair.poisoned
