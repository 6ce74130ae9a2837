"""The report in a real browser: no overflow, no complaints, in every dress."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipediag.encoding.text import visible
from pipediag.reporters.html import render
from pipediag.session.model import Session
from tests import browser, factories
from tests.reporters import sessions, trial_sessions
from tests.reporters.sessions import passed

pytestmark = pytest.mark.browser

SESSIONS: dict[str, Callable[[], Session]] = {
    "input-bound": factories.make_session,
    "a ledger": lambda: factories.make_session(run=factories.make_run()),
    "nothing measured": sessions.nothing_measured,
    "hostile": sessions.hostile,
    "enormous": sessions.enormous,
    "everything tried": trial_sessions.everything_tried,
    "patches": trial_sessions.patched,
    "a timeline": passed,
    "branches": sessions.branches,
}
WIDTHS = (1280, 1200, 1030, 1000, 760, 720, 390, 360, 320)


def write(session: Session, folder: Path) -> Path:
    page = folder / "report.html"
    page.write_text(render(session), encoding="utf-8")
    return page


@pytest.mark.parametrize("make", SESSIONS.values(), ids=SESSIONS)
def test_it_fits_every_window_fetches_nothing_and_logs_nothing(
    driver: Any, tmp_path: Path, make: Callable[[], Session]
) -> None:
    browser.show(driver, write(make(), tmp_path), width=WIDTHS[0])
    wider = []
    for folded in (True, False):
        for scheme in ("light", "dark"):
            for width in WIDTHS:
                browser.dress(driver, width=width, prefers_color_scheme=scheme)
                taken = driver.execute_script("return document.documentElement.scrollWidth")
                if taken > width:
                    wider.append((width, scheme, folded, taken))
        browser.unfold(driver)
    assert wider == []
    assert driver.get_log("browser") == []
    assert driver.execute_script("return performance.getEntriesByType('resource').length") == 0


def test_dark_is_dark_and_light_is_light(driver: Any, tmp_path: Path) -> None:
    browser.show(driver, write(factories.make_session(), tmp_path), width=1280)
    backgrounds = []
    for scheme in ("light", "dark"):
        browser.dress(driver, width=1280, prefers_color_scheme=scheme)
        colour = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
        backgrounds.append(int(colour.removeprefix("rgb(").split(",")[0]))
    assert backgrounds[0] > 200
    assert backgrounds[1] < 60


def test_hostile_text_runs_nothing(driver: Any, tmp_path: Path) -> None:
    browser.show(driver, write(sessions.hostile(), tmp_path), width=1280)
    assert driver.execute_script("return document.images.length") == 0
    heading = driver.execute_script("return document.querySelector('h1').textContent")
    assert heading == visible(sessions.HOSTILE)


def test_the_rounds_of_a_trial_stay_in_their_drawing_on_a_phone(
    driver: Any, tmp_path: Path
) -> None:
    browser.show(driver, write(trial_sessions.everything_tried(), tmp_path), width=360)
    browser.unfold(driver)
    outside, labels_apart, drawings = driver.execute_script(
        """
        const drawings = [...document.querySelectorAll("svg.rounds")];
        const box = item => item.getBoundingClientRect();
        const outside = drawings.flatMap(drawing =>
            [...drawing.querySelectorAll("circle, text, line, rect, path")].filter(part =>
                box(part).left < box(drawing).left - 0.5 ||
                box(part).right > box(drawing).right + 0.5 ||
                box(part).bottom > box(drawing).bottom + 0.5)).length;
        const apart = drawings.every(drawing => {
            const labels = [...drawing.querySelectorAll("text")].map(box)
                .sort((one, other) => one.left - other.left);
            return labels.every((label, i) => i === 0 || labels[i - 1].right < label.left);
        });
        return [outside, apart, drawings.length];
        """
    )
    assert drawings == 6
    assert outside == 0
    assert labels_apart


def test_the_first_screen_holds_the_answer(driver: Any, tmp_path: Path) -> None:
    page = write(trial_sessions.patched(), tmp_path)
    for width, height, last in ((1280, 800, ".answer .diff"), (390, 844, ".proof")):
        browser.show(driver, page, width=width, height=height)
        bottom = driver.execute_script(
            "return document.querySelector(arguments[0]).getBoundingClientRect().bottom", last
        )
        assert bottom <= height


_TEXT_UNDER_FIGURES = """
const covers = [];
for (const figure of document.querySelectorAll("figure")) {
    if (!figure.checkVisibility()) continue;
    const drawn = [figure, ...figure.querySelectorAll("*")].map(one => one.getBoundingClientRect())
        .filter(box => box.width && box.height);
    const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const text = walker.currentNode;
        if (figure.contains(text) || !text.data.trim() || text.parentElement.closest(".unseen") ||
            !text.parentElement.checkVisibility()) continue;
        const range = document.createRange();
        range.selectNodeContents(text);
        const hidden = [...range.getClientRects()].some(line => drawn.some(box =>
            box.left < line.right - 1 && line.left < box.right - 1 &&
            box.top < line.bottom - 1 && line.top < box.bottom - 1));
        if (hidden) covers.push(text.data.trim().slice(0, 60));
    }
}
return covers;
"""


def test_the_charts_are_printed_and_the_navigation_is_not(driver: Any, tmp_path: Path) -> None:
    session = trial_sessions.everything_tried().model_copy(update={"run": factories.make_run()})
    browser.show(driver, write(session, tmp_path), width=1280)
    browser.unfold(driver)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    count, unseen, navigation = driver.execute_script(
        """
        const seen = item => item.checkVisibility() && item.getBoundingClientRect().height > 10;
        const figures = [...document.querySelectorAll("figure:not(#timeline figure) svg")];
        return [figures.length, figures.filter(item => !seen(item)).length,
                seen(document.querySelector("nav"))];
        """
    )
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert count >= 4
    assert unseen == 0
    assert not navigation
