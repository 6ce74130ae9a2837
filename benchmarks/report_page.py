"""Whether a page with 50,000 steps and 20,000 gaps scrolls and zooms without a long task.

    python -m benchmarks.report_page

A long task is one that a browser reports as such: 50 ms or more in which nothing else happens.
Needs Chromium and chromedriver, and a quiet machine.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from pipediag.reporters.html.page import render
from tests import browser
from tests.reporters.html.timelines import long_run

LIMIT_MS = 200
"""Above that a hand on the wheel feels it."""
_WATCH = """
window.longest = [];
new PerformanceObserver(list => window.longest.push(...list.getEntries().map(one => one.duration)))
  .observe({type: "longtask", buffered: true});
"""
_ZOOM = """
const done = arguments[0];
const canvas = document.querySelector("#timeline canvas");
let left = 60;
const act = () => {
  const wheel = {deltaY: left > 30 ? -60 : 60, ctrlKey: true, cancelable: true, bubbles: true};
  canvas.dispatchEvent(new WheelEvent("wheel", wheel));
  window.scrollBy(0, left % 2 ? 200 : -200);
  if (--left) requestAnimationFrame(act); else setTimeout(done, 300);
};
requestAnimationFrame(act);
"""


def main() -> None:
    """Prints the long tasks; ends with 1 where one is longer than `LIMIT_MS`."""
    if reason := browser.missing():
        sys.exit(reason)
    page = render(long_run())
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        file = Path(folder, "report.html")
        file.write_text(page, encoding="utf-8")
        driver = browser.start(Path(folder, "profile"))
        try:
            browser.dress(driver, width=1280)
            driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": _WATCH})
            driver.get(file.as_uri())
            time.sleep(2)
            driver.execute_async_script(_ZOOM)
            tasks = sorted(driver.execute_script("return window.longest"), reverse=True)
        finally:
            driver.quit()
    print(f"page {len(page) / 1000:.0f} kB; long tasks: {len(tasks)}")
    print(f"the longest: {', '.join(f'{ms:.0f} ms' for ms in tasks[:5]) or 'none'}")
    sys.exit(bool(tasks) and tasks[0] > LIMIT_MS)


if __name__ == "__main__":
    main()
