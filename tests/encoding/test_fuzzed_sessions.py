"""Whatever a session holds: it is refused in a sentence, or every form of it is harmless."""

from __future__ import annotations

import csv
import io
import json
import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import HealthCheck, given, settings
from markdown_it import MarkdownIt

import pipediag
from pipediag.reporters import REPORTERS, write_formats
from pipediag.reporters.html.inline_script import script
from tests.comparison.sides import run_of
from tests.encoding.forms import all_forms, read
from tests.encoding.fuzzed import contents
from tests.encoding.poisoned import acting, commands
from tests.encoding.work import Cost, cost_of
from tests.reporters.html.pages import Element, Page

ANNOTATION = re.compile(r"::(error|warning|notice)( \w+=[^:,\n]*(,\w+=[^:,\n]*)*)?::")
OURS = {
    tag
    for template in Path(pipediag.__file__).parent.rglob("*.j2")
    for tag in re.findall(r"<([a-z]\w*)", template.read_text(encoding="utf-8"))
} | {"code", "mark"}
"""The elements that our templates have, and what is made around parts of a text."""
EXAMPLES = 30
MOST_OUT = 4_000_000
"""Characters of one form of a session that is no larger than a few tens of thousands."""
TO_READ = Cost(calls=5, peak_bytes=50)
TO_SHOW = Cost(calls=60, peak_bytes=500)
"""The most for each byte of the session; all forms together."""


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
        assert token.type not in ("html_block", "link_open", "image", "code_block")
        # The block is ours, and what is in it is shown as it is.
        assert token.type != "fence" or token.info == "diff"
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


def is_harmless_report(written: Iterable[Path]) -> None:
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


@pytest.fixture(scope="module", autouse=True)
def everything_is_imported() -> None:
    """And every template compiled: what comes once is not counted."""
    with tempfile.TemporaryDirectory() as directory:
        assert list(all_forms(run_of(), Path(directory)))
        write_formats(run_of(), Path(directory) / "out", tuple(REPORTERS))


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(contents())
def test_nothing_of_it_acts_in_any_form_or_costs_much(content: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "session.json"
        file.write_text(json.dumps(content), encoding="utf-8")
        size = file.stat().st_size
        cost, (session, refusal) = cost_of(lambda: read(file))
        assert cost.is_within(TO_READ.calls * size, TO_READ.peak_bytes * size), (cost, size)
        assert len(refusal) < 4_000
        assert not acting(refusal)
        assert "\n" not in refusal
        if session is None:
            return
        cost, forms = cost_of(lambda: list(all_forms(session, Path(directory))))
        assert cost.is_within(TO_SHOW.calls * size, TO_SHOW.peak_bytes * size), (cost, size)
        for name, text in forms:
            assert len(text) < MOST_OUT, name
            CHECKS[name](text)
        before, out = set(Path(directory).rglob("*")), Path(directory) / "out"
        cost, written = cost_of(lambda: write_formats(session, out, tuple(REPORTERS)))
        assert cost.is_within(TO_SHOW.calls * size, TO_SHOW.peak_bytes * size), (cost, size)
        assert set(Path(directory).rglob("*")) - before == {out, *written}
        is_harmless_report(written)


def test_enough_of_them_are_sessions() -> None:
    """Otherwise the test above would look at nothing."""
    taken: list[bool] = []

    @settings(
        max_examples=EXAMPLES,
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
    assert sum(taken) >= EXAMPLES / 2
