from __future__ import annotations

from dataclasses import replace

import pytest

from pipediag.comparison import Comparison, compare
from pipediag.comparison.formats.html import render
from pipediag.session.run import Script
from tests.comparison.sides import run_of, runs_of
from tests.encoding.poisoned import POISON
from tests.factories import make_finding
from tests.reporters.html.pages import Page


def compared(*head_ms: float, label: str = "head") -> Comparison:
    finding = make_finding(title=label, file=label)
    head = runs_of(*head_ms, input_wait=40.0, findings=[finding])
    return compare(runs_of(10.0, 10.1, 9.9), head, labels=("base", label))


def numbers(shown: Page, element: str, attribute: str) -> list[float]:
    return [float(one.attributes[attribute] or "") for one in shown.find(element)]


def test_a_page_says_what_the_text_says() -> None:
    text = render(compared(13.0, 13.1, 12.9))
    for said in (
        "10 to 13 ms, +30.0 %",
        "99 % interval +25.5 to +34.6 %, from 3 and 3 runs",
        "base 10, 10.1, 9.9; head 13, 13.1, 12.9",
        "More than chance, and at least the 5 % that count.",
        "Input wait, of the step",
        "New finding: parallel-map at head:12: head.",
        "Comparison: regressed (exit status 1).",
    ):
        assert said in text, said


def test_a_page_runs_nothing_and_fetches_nothing() -> None:
    shown = Page(render(compared(13.0, 13.1, 12.9)))
    assert shown.find("script") == []
    assert [one.attributes["href"] for one in shown.find("link")] == ["data:,"]
    assert "default-src 'none'" in render(compared(13.0, 13.1, 12.9))


def test_the_interval_is_drawn_beyond_the_floor_where_it_is() -> None:
    shown = Page(render(compared(13.0, 13.1, 12.9)))
    nothing, floor, interval, *_ = numbers(shown, "line", "x1")
    value, *_ = numbers(shown, "circle", "cx")
    _, _, end, *_ = numbers(shown, "line", "x2")
    assert 0.0 < nothing < floor < interval < value < end < 600.0


def test_an_interval_without_end_is_drawn_to_the_edge() -> None:
    shown = Page(render(compared(1e-6, 1e12, 10.0)))
    assert all(0.0 <= place <= 600.0 for place in numbers(shown, "line", "x2"))


@pytest.mark.parametrize("same", [10.0])
def test_no_change_at_all_can_be_drawn(same: float) -> None:
    found = compare(runs_of(same, same, same), runs_of(same, same, same))
    assert "Same" in render(found)


def test_a_comparison_that_was_not_made_says_why() -> None:
    crashed = Script(path="train.py", args=[], outcome="raised", status=1, detail="ValueError")
    failed = run_of(script=crashed, steps=None, breakdown=None)
    text = render(compare([run_of()], [failed]))
    assert "ValueError" in text
    assert "not made (exit status 3)" in text


def test_a_stranger_puts_no_element_into_it() -> None:
    def elements(comparison: Comparison) -> list[str]:
        found = Page(render(comparison)).root
        names: list[str] = []
        waiting = [found]
        while waiting:
            element = waiting.pop()
            names.append(element.tag)
            waiting += element.children
        return names

    clean, poisoned = (compared(13.0, 13.1, 12.9, label=label) for label in ("head", POISON))
    poisoned = replace(poisoned, notes=(POISON,))
    clean = replace(clean, notes=("note",))
    assert elements(poisoned) == elements(clean)
    assert "<img" not in render(poisoned)
    assert "\u202e" not in render(poisoned)
