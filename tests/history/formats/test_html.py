from __future__ import annotations

import pytest

from pipediag.history.formats.html import HEIGHT, MOST_DRAWN, WIDTH, render
from pipediag.history.metrics import METRICS
from pipediag.history.store import Point, Series
from tests.encoding.poisoned import POISON, acting
from tests.reporters.html.pages import Element, Page

STEP = METRICS[0]
MOVED = [10.0, 10.1] * 6 + [13.0, 13.1] * 6


def series(numbers: list[float], name: str = "train.py", commit: str | None = None) -> Series:
    points = tuple(
        Point(f"2026-01-{at:02}T00:00:00", commit or f"{at:04}badc0de", number)
        for at, number in enumerate(numbers, 1)
    )
    return Series(name, (), "fedc", STEP, points)


def places(found: list[Element], attribute: str) -> list[float]:
    return [float(one.attributes[attribute] or "") for one in found]


def of_class(page: Page, name: str) -> list[Element]:
    return [one for one in page.find("line") if name in (one.attributes["class"] or "").split()]


def test_a_page_says_what_the_text_says() -> None:
    text = render([series(MOVED)])
    for said in (
        "<title>History: train.py on fedc</title>",
        "Step: 13.1 ms, 24 measured",
        "Drawn from 10 to 13.1 ms.",
        "From 10.1 to 13.1 ms since 0013badc0de (2026-01-13).",
        '<p class="worse">',
    ):
        assert said in text, said


def test_a_page_runs_nothing_and_fetches_nothing() -> None:
    text = render([series(MOVED)])
    assert Page(text).find("script") == []
    assert [one.attributes["href"] for one in Page(text).find("link")] == ["data:,"]
    assert "default-src 'none'" in text


def test_each_measurement_is_drawn_in_its_place() -> None:
    page = Page(render([series(MOVED)]))
    dots = page.find("circle")
    across = places(dots, "cx")
    assert len(dots) == 24
    assert across == sorted(across)
    assert 0.0 < across[0] < across[-1] < WIDTH
    # Higher is more: SVG counts from the top.
    assert max(places(dots[12:], "cy")) < min(places(dots[:12], "cy")) < HEIGHT
    assert dots[12].find("title")[0].text == "13 ms, 0013badc0de (2026-01-13)"


def test_a_move_is_drawn_between_its_levels() -> None:
    page = Page(render([series(MOVED)]))
    [move] = of_class(page, "move")
    before, after = of_class(page, "level")
    [x] = places([move], "x1")
    assert places([before], "x2")[0] < x < places([after], "x1")[0]
    assert places([before], "y1")[0] > places([after], "y1")[0]
    assert "worse" in (move.attributes["class"] or "")


def test_less_is_better() -> None:
    page = Page(render([series(MOVED[::-1])]))
    [move] = of_class(page, "move")
    assert "better" in (move.attributes["class"] or "")


def test_of_a_long_series_the_newest_are_drawn() -> None:
    early = [5.0] * 40 + [10.0, 10.1] * MOST_DRAWN
    page = Page(render([series(early)]))
    assert len(page.find("circle")) == MOST_DRAWN
    assert of_class(page, "move") == []
    assert "older measurements are not drawn" in page.root.words()
    assert "From 5 to 10.1 ms" in page.root.words()
    assert all(0.0 <= x <= WIDTH for x in places(page.find("line"), "x1"))
    assert all(0.0 <= y <= HEIGHT for y in places(page.find("line"), "y1"))


@pytest.mark.parametrize("numbers", [[10.0], [10.0] * 9, [1e-6, 1e12] * 6])
def test_every_series_can_be_drawn(numbers: list[float]) -> None:
    dots = Page(render([series(numbers)])).find("circle")
    assert len(dots) == len(numbers)
    assert all(0.0 <= y <= HEIGHT for y in places(dots, "cy"))


def test_what_never_moved_is_a_line_in_the_middle() -> None:
    page = Page(render([series([10.0] * 9)]))
    assert set(places(page.find("circle"), "cy")) == {HEIGHT / 2.0}
    assert "Always 10 ms." in page.root.words()


def test_nothing_is_said_to_be_nothing() -> None:
    assert "The history is empty." in render([])


def test_a_stranger_puts_no_element_into_it() -> None:
    def elements(text: str) -> list[str]:
        waiting, names = [Page(text).root], []
        while waiting:
            element = waiting.pop()
            names.append(element.tag)
            waiting += element.children
        return names

    clean, poisoned = (render([series(MOVED, name, commit=name)]) for name in ("train.py", POISON))
    assert elements(poisoned) == elements(clean)
    assert acting(poisoned) <= {"\t"}
    assert "<img" not in poisoned
