"""The report in a real browser: no overflow and no complaints."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pipediag.reporters.html import render
from pipediag.session.model import Session
from tests import factories
from tests.reporters import sessions, trial_sessions
from tests.reporters.sessions import passed

pytestmark = pytest.mark.browser

SESSIONS: dict[str, Callable[[], Session]] = {
    "input-bound": factories.make_session,
    "nothing measured": sessions.nothing_measured,
    "enormous": sessions.enormous,
    "everything tried": trial_sessions.everything_tried,
    "patches": trial_sessions.patched,
    "a timeline": passed,
}
WIDTHS = (1280, 1000, 720, 320)

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


@pytest.fixture(scope="module")
def running_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One headless Chromium for all tests: its start takes longer than most of them."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    chromedriver = shutil.which("chromedriver")
    if not (found and chromedriver):
        pytest.skip("Chromium or chromedriver is not installed (chromium, chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = found
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(executable_path=chromedriver)
    started = webdriver.Chrome(options=options, service=service)
    yield started
    started.quit()


@pytest.fixture
def driver(running_browser: Any) -> Any:
    """The browser, with nothing on its console from the test before."""
    running_browser.get("about:blank")
    running_browser.get_log("browser")
    return running_browser


def resize(driver: Any, *, width: int, height: int = 900) -> None:
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
    )


def show(driver: Any, page: Path, *, width: int, height: int = 900) -> None:
    resize(driver, width=width, height=height)
    driver.get(page.as_uri())


def unfold(driver: Any) -> None:
    """Open everything that is folded."""
    driver.execute_script(
        "document.querySelectorAll('details').forEach(item => { item.open = true })"
    )


def write(session: Session, folder: Path) -> Path:
    page = folder / "report.html"
    page.write_text(render(session), encoding="utf-8")
    return page


@pytest.mark.parametrize("make", SESSIONS.values(), ids=SESSIONS)
def test_it_fits_every_window_fetches_nothing_and_logs_nothing(
    driver: Any, tmp_path: Path, make: Callable[[], Session]
) -> None:
    show(driver, write(make(), tmp_path), width=WIDTHS[0])
    wider = []
    for folded in (True, False):
        for width in WIDTHS:
            resize(driver, width=width)
            taken = driver.execute_script("return document.documentElement.scrollWidth")
            if taken > width:
                wider.append((width, folded, taken))
        unfold(driver)
    assert wider == []
    assert driver.get_log("browser") == []
    assert driver.execute_script("return performance.getEntriesByType('resource').length") == 0


@pytest.mark.parametrize(
    "make",
    [
        trial_sessions.patched,
        trial_sessions.pipeline_only,
        trial_sessions.everything_tried,
        factories.make_session,
        factories.make_compute_bound_session,
    ],
)
def test_the_first_screen_holds_the_answer_and_the_page_is_three(
    driver: Any, tmp_path: Path, make: Callable[[], Session]
) -> None:
    session = make().but(run=factories.make_run())
    show(driver, write(session, tmp_path), width=1280, height=800)
    bottom, height = driver.execute_script(
        "return [document.querySelector('.verdict').getBoundingClientRect().bottom, "
        "document.documentElement.scrollHeight]"
    )
    assert bottom <= 800
    assert height <= 3 * 800
