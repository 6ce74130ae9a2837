"""The report in a real browser: no overflow, no complaints, in every dress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pipediag.encoding.visible import visible
from pipediag.reporters import write_all
from pipediag.session.model import Session
from tests import browser, factories
from tests.reporters import devices, sessions, trial_sessions

pytestmark = pytest.mark.browser

SESSIONS: dict[str, Callable[[], Session]] = {
    "input-bound": factories.make_session,
    "a ledger": lambda: factories.make_session(run=factories.make_run()),
    "nothing measured": sessions.nothing_measured,
    "hostile": sessions.hostile,
    "enormous": sessions.enormous,
    "everything tried": trial_sessions.everything_tried,
    "patches": trial_sessions.patched,
}


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    if reason := browser.missing():
        pytest.skip(reason)
    started = browser.start(tmp_path_factory.mktemp("profile"))
    yield started
    started.quit()


def show(driver: Any, page: Path, *, width: int, scheme: str) -> None:
    browser.dress(driver, width=width, prefers_color_scheme=scheme)
    driver.get(page.as_uri())
    driver.execute_script(
        "document.querySelectorAll('details').forEach(item => { item.open = true })"
    )


@pytest.mark.parametrize("make", SESSIONS.values(), ids=SESSIONS)
@pytest.mark.parametrize("width", [1280, 720, 360])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_fits_its_window_and_logs_nothing(
    driver: Any, tmp_path: Path, make: Callable[[], Session], width: int, scheme: str
) -> None:
    write_all(make(), tmp_path)

    show(driver, tmp_path / "report.html", width=width, scheme=scheme)

    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    assert driver.get_log("browser") == []


def test_dark_is_dark_and_light_is_light(driver: Any, tmp_path: Path) -> None:
    write_all(factories.make_session(), tmp_path)
    backgrounds = []
    for scheme in ("light", "dark"):
        show(driver, tmp_path / "report.html", width=1280, scheme=scheme)
        colour = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
        backgrounds.append(int(colour.removeprefix("rgb(").split(",")[0]))

    assert backgrounds[0] > 200
    assert backgrounds[1] < 60


def test_hostile_text_runs_nothing(driver: Any, tmp_path: Path) -> None:
    write_all(sessions.hostile(), tmp_path)

    show(driver, tmp_path / "report.html", width=1280, scheme="light")

    assert driver.execute_script("return document.images.length") == 0
    heading = driver.execute_script("return document.querySelector('h1').textContent")
    assert heading == visible(sessions.HOSTILE)


def test_the_narrow_tables_fit_a_phone(driver: Any, tmp_path: Path) -> None:
    session = factories.make_session(devices=[devices.make_gpu(), devices.make_cpu()])
    write_all(session, tmp_path)

    show(driver, tmp_path / "report.html", width=360, scheme="light")

    hidden = driver.execute_script(
        "return [...document.querySelectorAll('.scroller:has(.narrow)')]"
        ".map(box => box.scrollWidth - box.clientWidth)"
    )
    assert hidden == [0, 0, 0, 0]


def test_the_rounds_of_a_trial_stay_in_their_drawing_on_a_phone(
    driver: Any, tmp_path: Path
) -> None:
    write_all(trial_sessions.everything_tried(), tmp_path)

    show(driver, tmp_path / "report.html", width=360, scheme="light")

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


@pytest.mark.parametrize(("width", "height", "last"), [(1280, 800, ".proof"), (390, 844, ".gains")])
def test_the_first_screen_holds_the_answer(
    driver: Any, tmp_path: Path, width: int, height: int, last: str
) -> None:
    write_all(trial_sessions.patched(), tmp_path)

    show(driver, tmp_path / "report.html", width=width, scheme="light")

    bottom = driver.execute_script(
        "return document.querySelector(arguments[0]).getBoundingClientRect().bottom", last
    )
    assert bottom <= height
