"""Whether a page with 50,000 steps, 20,000 gaps and 5,000 operations answers a hand at once.

    python -m benchmarks.report_page

Opens the page, scrolls all of it, zooms and drags its timeline, searches, sorts its longest table
and changes its theme, and asks the browser for tasks in which it could do nothing else: it reports
those of 50 ms and more. At the end the page is made to be busy for as long as is too long, which
has to be told. Prints a table in Markdown. Needs Chromium and chromedriver. Another load can make
the figures worse, not better.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipediag.reporters.html.page import render
from tests import browser
from tests.reporters.html.timelines import long_run

LIMIT_MS = 200
"""Above that a hand on the wheel feels it."""
OPERATIONS, GAPS, STEPS = 5_000, 20_000, 50_000
_WATCH = """
window.longTasks = [];
const noted = list => window.longTasks.push(...list.getEntries().map(one => one.duration));
new PerformanceObserver(noted).observe({type: "longtask", buffered: true});
"""
_EACH_FRAME = """
const done = arguments[0];
let frame = 0;
const next = () => {
  act(frame);
  if (++frame < frames) requestAnimationFrame(next); else setTimeout(done, 300);
};
requestAnimationFrame(next);
"""
_SCROLL = """
const frames = 120, whole = document.documentElement.scrollHeight;
const act = frame => window.scrollTo(0, whole * (frame < 60 ? frame : 120 - frame) / 60);
"""
_ZOOM = """
const frames = 120, canvas = document.querySelector("#timeline canvas");
canvas.scrollIntoView({block: "center"});
const wheel = {ctrlKey: true, cancelable: true, bubbles: true};
const act = frame => canvas.dispatchEvent(
  new WheelEvent("wheel", {...wheel, deltaY: frame < 60 ? -60 : 60}));
"""
_DRAG = """
const frames = 60, canvas = document.querySelector("#timeline canvas");
canvas.setPointerCapture = () => {};
const at = (name, x) => canvas.dispatchEvent(
  new PointerEvent(name, {clientX: x, clientY: 20, bubbles: true}));
document.querySelector("#timeline .views button:nth-child(2)").click();
at("pointerdown", 600);
const act = frame => at("pointermove", 600 + 8 * (frame < 30 ? frame : 60 - frame));
"""
_SEARCH = """
const words = "stage_4 launching input", field = document.querySelector("#find");
const frames = words.length;
const act = frame => {
  field.value = words.slice(0, frame + 1);
  field.dispatchEvent(new InputEvent("input", {bubbles: true}));
};
"""
_SORT = """
const tables = [...document.querySelectorAll("table")].filter(one => one.querySelector(".sort"));
const longest = tables.reduce((one, other) => other.rows.length > one.rows.length ? other : one);
const buttons = [...longest.querySelectorAll(".sort")];
const frames = 2 * buttons.length, act = frame => buttons[frame >> 1].click();
"""
_THEME = """
const frames = 4, act = () => document.querySelector("#theme").click();
"""
_BUSY = f"""
const frames = 1, act = () => {{
  const end = performance.now() + {LIMIT_MS + 50};
  while (performance.now() < end);
}};
"""
DONE_BY_HAND = {
    "scroll all of it and back": _SCROLL,
    "zoom the timeline in and out": _ZOOM,
    "drag the timeline": _DRAG,
    "search, letter by letter": _SEARCH,
    "sort the longest table by each column": _SORT,
    "change the theme": _THEME,
}
OPEN = "open it"


@dataclass(frozen=True)
class Measured:
    what: str
    tasks_ms: list[float]
    """The long ones, the longest first."""

    @property
    def longest_ms(self) -> float:
        return self.tasks_ms[0] if self.tasks_ms else 0.0

    def row(self) -> str:
        longest = f"{self.longest_ms:.0f} ms" if self.tasks_ms else "under 50 ms"
        return f"| {self.what} | {len(self.tasks_ms)} | {longest} |"


def main() -> None:
    """Prints what took how long; ends with 1 where a task is longer than `LIMIT_MS`."""
    if reason := browser.missing():
        sys.exit(reason)
    page = render(long_run(STEPS, GAPS, OPERATIONS))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        file = Path(folder, "report.html")
        file.write_text(page, encoding="utf-8")
        driver = browser.start(Path(folder, "profile"))
        try:
            *measured, control = _measure(driver, file)
        finally:
            driver.quit()
    if control.longest_ms < LIMIT_MS:
        sys.exit("The browser does not tell of long tasks: nothing was measured.")
    print(f"{STEPS:,} steps, {GAPS:,} gaps, {OPERATIONS:,} operations; a page of", end=" ")
    print(f"{len(page.encode()) / 1000:.0f} kB in {_version(driver)}.\n")
    print(
        "| what a reader does | tasks of 50 ms and more | the longest |", "|---|--:|--:|", sep="\n"
    )
    print(*(one.row() for one in measured), sep="\n")
    sys.exit(max(one.longest_ms for one in measured) > LIMIT_MS)


def _measure(driver: Any, file: Path) -> list[Measured]:
    browser.dress(driver, width=1280)
    driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": _WATCH})
    browser.show(driver, file, width=1280)
    time.sleep(1)
    return [
        Measured(OPEN, _long_tasks(driver)),
        *(
            _by_hand(driver, what, script)
            for what, script in {**DONE_BY_HAND, "be busy": _BUSY}.items()
        ),
    ]


def _by_hand(driver: Any, what: str, script: str) -> Measured:
    driver.execute_async_script(script + _EACH_FRAME)
    return Measured(what, _long_tasks(driver))


def _long_tasks(driver: Any) -> list[float]:
    """Since the last time that it was asked."""
    return sorted(driver.execute_script("return window.longTasks.splice(0)"), reverse=True)


def _version(driver: Any) -> str:
    known = driver.capabilities
    return f"{known['browserName']} {known['browserVersion']}"


if __name__ == "__main__":
    main()
