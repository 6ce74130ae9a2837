"""Pictures of a report's first screen, as a reader on a desk, at night and on a phone has it."""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import browser


@dataclass(frozen=True)
class Dress:
    name: str
    width: int
    height: int
    scheme: str


DRESSES = (
    Dress("light", 1200, 860, "light"),
    Dress("dark", 1200, 860, "dark"),
    Dress("narrow", 390, 860, "light"),
)


def take_pictures(page: Path, folder: Path) -> list[Path]:
    """Writes `<name>.png` for each dress; none where there is no browser.

    What a page shows is small shapes of few colours, which PNG packs well; larger screens cost
    bytes and show no more.
    """
    if browser.missing():
        return []
    written = []
    with _started() as driver:
        for dress in DRESSES:
            browser.dress(
                driver,
                width=dress.width,
                height=dress.height,
                prefers_color_scheme=dress.scheme,
            )
            driver.get(page.resolve().as_uri())
            taken = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
            file = folder / f"{dress.name}.png"
            file.write_bytes(base64.b64decode(taken["data"]))
            written.append(file)
    return written


@contextmanager
def _started() -> Iterator[Any]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        driver = browser.start(Path(profile))
        try:
            yield driver
        finally:
            driver.quit()
