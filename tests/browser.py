"""Headless Chromium, for the tests of pages and for pictures of them."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

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


def missing() -> str | None:
    """Why there is no browser to start; None where there is one."""
    if not _programs():
        return "Chromium or chromedriver is not installed (chromium, chromium-driver)"
    return None


def start(profile: Path, downloads: Path | None = None) -> Any:
    """A driver of Selenium's with its console kept; who started it quits it.

    Args:
        profile: an empty folder for what the browser keeps.
        downloads: where it saves files.
    """
    from selenium import webdriver

    browser, chromedriver = _programs()
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(
        options=options, service=webdriver.ChromeService(executable_path=chromedriver)
    )
    if downloads is not None:
        driver.execute_cdp_cmd(
            "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(downloads)}
        )
    return driver


def dress(driver: Any, *, width: int, height: int = 900, **media: str) -> None:
    """Sets the window's size, and media features such as `prefers_color_scheme="dark"`."""
    features = [{"name": name.replace("_", "-"), "value": value} for name, value in media.items()]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
    )


def show(driver: Any, page: Path, *, width: int, height: int = 900, **media: str) -> None:
    """Opens a page in such a window, and waits until its script has drawn what it draws."""
    dress(driver, width=width, height=height, **media)
    driver.get(page.as_uri())
    until(lambda: driver.execute_script(_SETTLED))


def unfold(driver: Any) -> None:
    """Opens everything that is folded."""
    driver.execute_script(
        "document.querySelectorAll('details').forEach(item => { item.open = true })"
    )


def until(look: Callable[[], Any], limit_s: float = 30.0) -> Any:
    """What it gives as soon as that is true of anything."""
    last = time.monotonic() + limit_s
    while time.monotonic() < last:
        if found := look():
            return found
        time.sleep(0.05)
    raise AssertionError("it never came")


_SETTLED = """
const timeline = document.querySelector("#timeline");
return document.readyState === "complete" &&
  !(timeline && timeline.hidden && document.querySelector("#timeline-data"));
"""


def _programs() -> tuple[str, str] | tuple[()]:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    chromedriver = shutil.which("chromedriver")
    return (browser, chromedriver) if browser and chromedriver else ()
