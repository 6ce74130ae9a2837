"""Whatever a session holds: it is refused in a sentence, or every form of it is harmless."""

from __future__ import annotations

import csv
import io
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from hypothesis import HealthCheck, given, settings
from markdown_it import MarkdownIt

import pipediag
from pipediag.comparison import compare
from pipediag.comparison import formats as comparison_formats
from pipediag.errors import PipediagError
from pipediag.gate.config import GateConfig
from pipediag.gate.evaluation import evaluate, evaluate_runs
from pipediag.gate.formats import NAMES, render
from pipediag.history import formats as history_formats
from pipediag.history.store import opened
from pipediag.reporters import REPORTERS, write_formats
from pipediag.reporters.html.inline_script import script
from pipediag.session.model import Session
from pipediag.session.store import load_session
from tests.comparison.sides import run_of
from tests.encoding.fuzzed import contents
from tests.encoding.poisoned import acting, commands
from tests.encoding.test_malformed_sessions import LIMITED
from tests.reporters.html.pages import Element, Page

ENVIRONMENT = run_of().environment
ANNOTATION = re.compile(r"::(error|warning|notice)( \w+=[^:,\n]*(,\w+=[^:,\n]*)*)?::")
OURS = {
    tag
    for template in Path(pipediag.__file__).parent.rglob("*.j2")
    for tag in re.findall(r"<([a-z]\w*)", template.read_text(encoding="utf-8"))
} | {"code", "mark"}
"""The elements that our templates have, and what is made around parts of a text."""
MOST_OUT = 4_000_000
"""Characters of one form of a session that is no larger than a few tens of thousands."""


def elements(page: Page) -> Iterator[Element]:
    waiting = [page.root]
    while waiting:
        element = waiting.pop()
        yield element
        waiting += element.children


def is_harmless_page(text: str, *, scripts: bool) -> None:
    for element in elements(Page(text)):
        assert element.tag in {"document", *OURS}, element.tag
        if element.tag == "script":
            # Data, which no browser runs, and the one script that the policy knows.
            assert scripts
            kind = element.attributes.get("type")
            assert kind in ("application/json", "text/plain") or element.text == script()
        for name, value in element.attributes.items():
            assert not name.startswith("on"), name
            if name in ("href", "src", "action", "xlink:href"):
                assert (value or "").startswith(("#", "data:,", "data:text/x-diff")), value
            assert element.tag != "meta" or (element.attributes.get("http-equiv") or "") in (
                "",
                "Content-Security-Policy",
            )


def is_harmless_text(text: str) -> None:
    assert not acting(text)
    assert "##[" not in text
    assert [line for line in commands(text) if not ANNOTATION.match(line)] == []


def is_harmless_markdown(text: str) -> None:
    is_harmless_text(text)
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    while tokens:
        token = tokens.pop()
        tokens += token.children or []
        assert token.type not in ("html_block", "link_open", "image", "fence", "code_block")
        assert token.type != "html_inline" or token.content == "<!-- -->"


def refuse(name: str) -> Any:
    raise AssertionError(f"{name} is no JSON")


def is_harmless_json(text: str) -> None:
    json.loads(text.encode("utf-8"), parse_constant=refuse)
    assert not acting(text)


def is_harmless_xml(text: str) -> None:
    assert "<!" not in text
    ET.fromstring(text.encode("utf-8"))
    assert not acting(text)


CHECKS = {
    "github": is_harmless_text,
    "gitlab": is_harmless_json,
    "html": lambda text: is_harmless_page(text, scripts=False),
    "json": is_harmless_json,
    "junit": is_harmless_xml,
    "markdown": is_harmless_markdown,
    "sarif": is_harmless_json,
    "text": is_harmless_text,
}


def all_forms(session: Session, folder: Path) -> Iterator[tuple[str, str]]:
    """Every form of what check, compare and history say of it."""
    for config in (GateConfig(fail_on="warn"), LIMITED):
        results = [evaluate(session, config), evaluate_runs([session] * 3, config)]
        yield from ((name, render(name, results)) for name in NAMES)
    here = session.model_copy(update={"environment": ENVIRONMENT})
    for base, head in (([run_of()], [here]), ([here] * 3, [run_of()] * 3), ([here], [here])):
        for ratios_only in (False, True):
            found = compare(base, head, ratios_only=ratios_only, labels=(here.script.path,) * 2)
            yield from (
                (name, comparison_formats.render(name, found))
                for name in ("html", "json", "markdown", "text")
            )
    with opened(folder / "h.sqlite", create=True) as history:
        history.add(session, session.script.path)
        series = history.series()
    yield from ((name, history_formats.render(name, series)) for name in ("html", "text"))


def is_reported_within(session: Session, folder: Path) -> None:
    """The files of a report, which nothing else is written beside."""
    before = set(folder.rglob("*"))
    written = write_formats(session, folder / "out", tuple(REPORTERS))
    assert set(folder.rglob("*")) - before == {folder / "out", *written}
    for path in written:
        text = path.read_text(encoding="utf-8")
        assert len(text) < MOST_OUT
        if path.suffix == ".html":
            is_harmless_page(text, scripts=True)
        elif path.suffix == ".json":
            is_harmless_json(text)
        elif path.suffix == ".md":
            is_harmless_markdown(text)
        else:
            assert not acting(text.replace("\r\n", "\n"))
            for row in csv.reader(io.StringIO(text)):
                assert not any(re.match(r"\s*[=+@]|\s*-\D", cell) for cell in row)


def read(file: Path) -> tuple[Session | None, str]:
    """The session, or the sentence that refuses it."""
    try:
        return load_session(file), ""
    except PipediagError as error:
        return None, str(error)


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(contents())
def test_nothing_of_it_acts_in_any_form(content: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "session.json"
        file.write_text(json.dumps(content), encoding="utf-8")
        session, refusal = read(file)
        assert len(refusal) < 4_000
        assert not acting(refusal)
        assert "\n" not in refusal
        if session is None:
            return
        for name, text in all_forms(session, Path(directory)):
            assert len(text) < MOST_OUT, name
            CHECKS[name](text)
        is_reported_within(session, Path(directory))


def test_enough_of_them_are_sessions() -> None:
    """Otherwise the test above would look at nothing."""
    taken: list[bool] = []

    @settings(
        max_examples=60,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(contents())
    def look(content: dict[str, Any]) -> None:
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "session.json"
            file.write_text(json.dumps(content), encoding="utf-8")
            taken.append(read(file)[0] is not None)

    look()
    assert sum(taken) >= 5
