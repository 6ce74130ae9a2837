from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from pipediag.reporters.html import fragment
from pipediag.session.model import Session
from tests import factories
from tests.encoding.poisoned import CLEAN, POISON, acting, session_content
from tests.reporters.html.pages import Element, Page
from tests.reporters.html.test_page import SESSIONS


def elements(element: Element) -> Iterator[Element]:
    for child in element.children:
        yield child
        yield from elements(child)


@pytest.mark.parametrize("name", SESSIONS)
def test_it_is_one_small_element_without_script_ids_or_headings(name: str) -> None:
    text = fragment.render(SESSIONS[name]())
    [root] = Page(text).root.children
    tags = {element.tag for element in elements(root)}
    assert tags <= {"style", "p", "div", "span", "strong", "code", "ul", "ol", "li"}
    assert not any("id" in element.attributes for element in elements(root))
    assert len(text.encode()) < fragment.MAX_BYTES


def test_its_styles_reach_nothing_else() -> None:
    [style] = Page(fragment.render(factories.make_session())).find("style")
    selectors = [
        one.strip()
        for rule in re.findall(r"([^{}]+)\{[^}]*\}", style.text)
        for one in rule.split(",")
    ]
    assert selectors
    assert all(selector.startswith(".pipediag-result") for selector in selectors)
    assert "url(" not in style.text


def test_it_says_what_the_page_begins_with() -> None:
    verdict = factories.make_verdict(next_steps=["Do the one thing."])
    session = factories.make_session(verdict=verdict, run=factories.make_run())
    words = " ".join(Page(fragment.render(session)).root.words().split())
    assert "What to do first" in words
    assert "Do the one thing." in words
    assert "Waiting for input" in words
    assert "Steps" in words


def test_what_is_missing_has_its_reason() -> None:
    session = SESSIONS["nothing measured"]()
    assert "no-breakdown-reason" in fragment.render(session)


def test_every_piece_has_a_colour() -> None:
    text = fragment.render(factories.make_session())
    [style] = Page(text).find("style")
    used = set(re.findall(r'<span class="(pipediag-[\w-]+)" style=', text))
    assert used
    assert all(f".{name}" in style.text for name in used)


@pytest.mark.parametrize("choice", range(9))
def test_the_text_of_a_stranger_is_text(choice: int) -> None:
    def kinds(text: str) -> set[tuple[str, tuple[str, ...]]]:
        session = Session.model_validate(session_content(text, choice=choice))
        root = Page(fragment.render(session)).root
        return {(one.tag, tuple(sorted(one.attributes))) for one in elements(root)}

    assert kinds(POISON) <= kinds(CLEAN) | {("code", ())}
    poisoned = Session.model_validate(session_content(POISON, choice=choice))
    assert acting(fragment.render(poisoned)) <= {"\t"}
