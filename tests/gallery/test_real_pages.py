"""The pages of real runs, as today's templates make them, in a browser and on paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipediag.reporters.html.page import render
from tests import axe, browser, paper
from tests.gallery.recorded import session_of
from tests.gallery.samples import EXHIBITS

pytestmark = pytest.mark.browser

SECTIONS = [
    "verdict-title",
    "ledger-title",
    "timeline-title",
    "breakdown-title",
    "pipeline-title",
    "findings-title",
    "trials-title",
    "steps-title",
    "checks-title",
    "devices-title",
    "host-title",
    "run-title",
]
"""Of each run; embedding tables and a plan of memory are not in all."""
SEEN = ["color-contrast", "link-in-text-block"]
"""What depends on colours."""
PLACED = ["scrollable-region-focusable", "nested-interactive", "region", "label", "link-name"]
"""What depends on the width, by what is folded, hidden or scrolled there."""
DRESSES: list[tuple[int, dict[str, str], list[str]]] = [
    (1200, {"prefers_color_scheme": "light"}, []),
    (1200, {"prefers_color_scheme": "dark"}, SEEN),
    (1200, {"forced_colors": "active"}, SEEN),
    (390, {"prefers_color_scheme": "light"}, [*SEEN, *PLACED]),
    (320, {"prefers_color_scheme": "light"}, PLACED),
]


@pytest.fixture(scope="module", params=[one.sample for one in EXHIBITS])
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file: Path = tmp_path_factory.mktemp(request.param) / "report.html"
    file.write_text(render(session_of(request.param)), encoding="utf-8")
    return file


BOTTOMS = """
const bottom = name => {
  const item = document.querySelector(name);
  return item ? item.getBoundingClientRect().bottom : null;
};
const diff = document.querySelector(".answer .diff");
return [["h1", ".culprit", ".advice", ".proof"].map(bottom),
        diff && [diff.getBoundingClientRect().top, diff.getBoundingClientRect().bottom]];
"""


def test_the_first_screen_answers_on_a_desk_and_on_a_phone(driver: Any, page: Path) -> None:
    browser.show(driver, page, width=1280, height=800)
    answers, patch = driver.execute_script(BOTTOMS)
    assert None not in answers
    assert max(*answers, *(patch or ())) <= 800

    browser.show(driver, page, width=390, height=844)
    answers, patch = driver.execute_script(BOTTOMS)
    assert max(answers) <= 844
    assert patch is None or patch[0] <= 844 - 60  # its first lines


def test_each_section_is_there_and_filled_and_nothing_is_fetched(driver: Any, page: Path) -> None:
    browser.show(driver, page, width=1200)

    said: dict[str, int] = driver.execute_script(
        """
        const sections = [...document.querySelectorAll("section[aria-labelledby]")];
        return Object.fromEntries(sections.map(one => {
          const heading = document.getElementById(one.getAttribute("aria-labelledby"));
          const filled = one.querySelectorAll("tbody tr, li, dd, svg, canvas, article").length;
          return [heading.id, one.contains(heading) ? filled : 0];
        }));
        """
    )
    assert set(SECTIONS) <= said.keys()
    assert [name for name, filled in said.items() if not filled] == []
    assert driver.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert driver.get_log("browser") == []


def test_the_first_screen_holds_the_answer(driver: Any, page: Path) -> None:
    """All five questions on a desk; on a phone what is slow, which line, and what to change."""
    for width, height, last in ((1200, 800, ".proof"), (390, 844, ".advice strong")):
        browser.show(driver, page, width=width, height=height)
        bottom = driver.execute_script(
            "return document.querySelector(arguments[0]).getBoundingClientRect().bottom", last
        )
        assert bottom <= height, last


def test_axe_finds_nothing_serious_in_any_dress(driver: Any, page: Path) -> None:
    browser.show(driver, page, width=1200)
    browser.unfold(driver)
    found = []
    for width, media, rules in DRESSES:
        browser.dress(driver, width=width, **media)
        found += [f"{width} {media}: {one}" for one in axe.serious(driver, rules)]

    assert found == []


def test_no_heading_is_left_at_the_foot_of_a_sheet(driver: Any, page: Path) -> None:
    browser.show(driver, page, width=1200)
    for size in paper.PAPERS:
        sheets = paper.printed(driver, size)
        assert len(sheets) > 3
        assert paper.stranded(driver, sheets) == []
