"""The pages of a comparison and of a history in a real browser: no overflow, no complaints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipediag.comparison.formats import html as comparison
from pipediag.history.formats import html as history
from tests import browser
from tests.comparison.formats.test_html import compared
from tests.encoding.poisoned import POISON
from tests.history.formats.test_html import MOVED, series

pytestmark = pytest.mark.browser

LONG = "a/very/long/path/" * 9 + "train.py"
PAGES = {
    "comparison": lambda: comparison.render(compared(13.0, 13.1, 12.9)),
    "comparison, long names": lambda: comparison.render(compared(13.0, 13.1, 12.9, label=LONG)),
    "comparison, hostile": lambda: comparison.render(compared(13.0, 13.1, 12.9, label=POISON)),
    "history": lambda: history.render([series(MOVED), series([10.0], LONG)]),
    "history, hostile": lambda: history.render([series(MOVED, POISON, commit=POISON)]),
}


@pytest.mark.parametrize("make", PAGES.values(), ids=PAGES)
def test_it_fits_its_window_and_logs_nothing(driver: Any, tmp_path: Path, make: Any) -> None:
    page = tmp_path / "page.html"
    page.write_text(make(), encoding="utf-8")
    browser.show(driver, page, width=1280)
    browser.unfold(driver)
    for scheme in ("light", "dark"):
        for width in (1280, 390):
            browser.dress(driver, width=width, prefers_color_scheme=scheme)
            assert driver.execute_script("return document.documentElement.scrollWidth") <= width

    assert driver.execute_script("return document.images.length + document.scripts.length") == 0
    assert driver.get_log("browser") == []
