"""What the page's script adds, used as a reader would use it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipediag.reporters.html.page import render
from pipediag.reporters.tables import csv as tables
from pipediag.session.model import Session
from pipediag.session.store import dump_session
from tests import browser, factories, records
from tests.browser import until
from tests.reporters import trial_sessions
from tests.reporters.html.timelines import passed

pytestmark = pytest.mark.browser


def show(driver: Any, folder: Path, session: Session, width: int = 1200, **media: str) -> None:
    page = folder / "report.html"
    page.write_text(render(session), encoding="utf-8")
    browser.show(driver, page, width=width, **media)


def timeline(driver: Any) -> Any:
    script = "return [...document.querySelectorAll('#timeline:not([hidden]) canvas')]"
    [canvas] = until(lambda: driver.execute_script(script))
    return canvas


def said(driver: Any) -> str:
    return str(driver.execute_script("return document.querySelector('.said').textContent"))


def press(driver: Any, text: str) -> None:
    pressed = driver.execute_script(
        "const found = [...document.querySelectorAll('button')]"
        ".find(one => one.textContent === arguments[0]);"
        "if (found) found.click(); return !!found",
        text,
    )
    assert pressed, text


def test_the_timeline_is_drawn_and_answers(driver: Any, tmp_path: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    show(driver, tmp_path, passed())
    canvas = timeline(driver)

    drawn = driver.execute_script(
        "const canvas = arguments[0], data = canvas.getContext('2d')"
        ".getImageData(0, 0, canvas.width, canvas.height).data;"
        "return new Set(Array.from({length: 4000}, (_, n) => "
        "data[4 * Math.floor(n * data.length / 16000)])).size",
        canvas,
    )
    assert drawn > 4
    press(driver, "profile")
    assert said(driver) == "Seen: 132 ms from 4.49 s on."
    canvas.send_keys("+")
    assert said(driver).startswith("Seen: 66.00 ms")
    before = said(driver)
    canvas.send_keys(Keys.ARROW_RIGHT)
    assert said(driver) != before
    canvas.send_keys("0")
    assert said(driver).startswith("Seen: 8.10 s")
    assert driver.get_log("browser") == []


def test_the_timeline_says_what_is_under_the_pointer(driver: Any, tmp_path: Path) -> None:
    from selenium.webdriver import ActionChains

    show(driver, tmp_path, passed())
    canvas = timeline(driver)
    press(driver, "baseline")
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    height, width = canvas.size["height"], canvas.size["width"]
    lane = 2 * (18 + 18 + 8) + 18 + 9  # the third lane's middle: title, boxes and space each

    ActionChains(driver).move_to_element_with_offset(canvas, 0, round(lane - height / 2)).perform()

    assert width > 600
    assert said(driver).startswith(
        "baseline step: 10.00 ms, of which 7.00 ms wait for input, at 4."
    )


def test_without_a_script_the_page_is_whole(driver: Any, tmp_path: Path) -> None:
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        page = tmp_path / "report.html"
        page.write_text(render(passed()), encoding="utf-8")
        driver.get(page.as_uri())
        hidden = driver.execute_cdp_cmd("DOM.getDocument", {"depth": -1})
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert hidden["root"]["nodeName"] == "#document"
    shown = driver.execute_script(
        "return [...document.querySelectorAll('.tools, #timeline, #files, .sort')]"
        ".filter(one => one.getClientRects().length).length"
    )
    assert shown == 0
    assert driver.execute_script("return document.querySelectorAll('nav a').length") > 6


def column(driver: Any, table: str, number: int) -> list[str]:
    cells: list[str] = driver.execute_script(
        "return [...document.querySelector(arguments[0]).tBodies[0].rows]"
        ".map(row => row.cells[arguments[1]].firstChild.textContent.trim())",
        table,
        number,
    )
    return cells


def test_a_table_is_sorted_by_a_click_on_a_column(driver: Any, tmp_path: Path) -> None:
    show(driver, tmp_path, trial_sessions.everything_tried())
    table, share = "table.breakdown:not(.ledger)", 2
    written = column(driver, table, share)
    head = f"document.querySelector('{table}').tHead.rows[0].cells[{share}]"
    seen = []
    for _ in range(3):
        driver.execute_script(f"{head}.querySelector('button').click()")
        order = driver.execute_script(f"return {head}.getAttribute('aria-sort')")
        seen.append((order, column(driver, table, share)))

    numbers = [float(text.split()[0]) for text in written]
    assert [order for order, _ in seen] == ["ascending", "descending", None]
    assert [float(text.split()[0]) for text in seen[0][1]] == sorted(numbers)
    assert [float(text.split()[0]) for text in seen[1][1]] == sorted(numbers, reverse=True)
    assert seen[2][1] == written


def test_quantities_are_sorted_by_what_they_are(driver: Any, tmp_path: Path) -> None:
    show(driver, tmp_path, trial_sessions.everything_tried())
    spaced = ["\u2013", "<0.01", "900 \u00b5s", "12.5 ms", "1,200 ms", "2.00 s", "3 min"]
    ordered = [text.replace(" ", "\u00a0") for text in spaced]
    # The page's own functions are its own: what they do is seen in a table of the page.
    driver.execute_script(
        """
        const body = document.querySelector("table.breakdown:not(.ledger)").tBodies[0];
        const rows = [...body.rows];
        arguments[0].forEach((text, at) => {
          if (rows[at]) rows[at].cells[1].textContent = text;
        });
        rows.slice(arguments[0].length).forEach(row => row.remove());
        """,
        list(reversed(ordered)),
    )
    table = "table.breakdown:not(.ledger)"
    driver.execute_script(
        f"document.querySelector('{table}').tHead.rows[0].cells[1].querySelector('button').click()"
    )

    shown = [text for text in column(driver, table, 1) if text in ordered]
    known = [text for text in ordered if text in shown and text != "\u2013"]
    assert [text for text in shown if text != "\u2013"] == known


def test_search_leaves_what_has_the_words(driver: Any, tmp_path: Path) -> None:
    show(driver, tmp_path, trial_sessions.everything_tried())
    field = driver.find_element("id", "find")

    field.send_keys("random-map")
    found = until(lambda: driver.find_element("id", "found").text)
    shown = driver.execute_script(
        "return [...document.querySelectorAll('.finding')].filter(one => "
        "one.getClientRects().length).map(one => one.textContent)"
    )
    assert found.split(" of ")[0] != "0"
    assert [text for text in shown if "random-map" not in text] == []
    field.send_keys("\ue00c")  # Escape
    until(lambda: driver.execute_script("return document.querySelectorAll('.off').length") == 0)


def test_the_theme_is_switched_and_back(driver: Any, tmp_path: Path) -> None:
    show(driver, tmp_path, passed(), prefers_color_scheme="light")
    paper = "return getComputedStyle(document.body).backgroundColor"
    light = driver.execute_script(paper)
    press(driver, "Dark")
    dark = driver.execute_script(paper)
    press(driver, "Light")

    assert light != dark
    assert driver.execute_script(paper) == light


def test_files_come_out_of_the_page_as_they_were(
    driver: Any, tmp_path: Path, downloads: Path
) -> None:
    session = passed()
    show(driver, tmp_path, session)
    expected = {"session.json": dump_session(session), **dict(tables.files(session))}
    for name in ("session.json", "steps.csv", "gaps.csv"):
        press(driver, name)
        saved = until(lambda name=name: [one for one in downloads.glob(name) if one.stat().st_size])
        assert saved[0].read_text(encoding="utf-8") == expected[name]


def copy_elsewhere(driver: Any) -> None:
    """A clipboard of the page's own: that of the machine is none of a test's."""
    driver.execute_script(
        "window.copied = []; Object.defineProperty(navigator, 'clipboard', "
        "{value: {writeText: async text => { window.copied.push(text); }}})"
    )


def test_the_report_is_copied_as_markdown(driver: Any, tmp_path: Path) -> None:
    show(driver, tmp_path, passed())
    copy_elsewhere(driver)
    press(driver, "Copy as Markdown")

    [text] = until(lambda: driver.execute_script("return window.copied"))
    assert text.startswith("## pipediag: Input-bound")
    assert "Copied." in until(lambda: driver.find_element("id", "found").text)


def test_a_change_is_copied_as_its_patch(driver: Any, tmp_path: Path) -> None:
    session = trial_sessions.patched()
    show(driver, tmp_path, session)
    copy_elsewhere(driver)
    copies = driver.find_elements("css selector", ".copy")
    patches = [one.patch.diff for one in session.findings if one.patch and one.patch.diff]

    driver.execute_script("arguments[0].focus(); arguments[0].click()", copies[0])

    [text] = until(lambda: driver.execute_script("return window.copied"))
    assert text == patches[0]
    assert until(lambda: copies[0].text) == "Copied"
    assert len(copies) > len(patches)


def test_no_other_script_runs(driver: Any, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    text = render(passed()).replace("</main>", "<script>window.other = 1</script></main>")
    page.write_text(text, encoding="utf-8")
    driver.get(page.as_uri())

    assert driver.execute_script("return window.other") is None
    assert any("Content Security Policy" in one["message"] for one in driver.get_log("browser"))


def test_every_control_is_reached_by_the_keyboard_and_says_its_name(
    driver: Any, tmp_path: Path
) -> None:
    show(driver, tmp_path, passed())
    timeline(driver)
    driver.execute_script(
        "document.querySelectorAll('details').forEach(one => { one.open = true })"
    )
    names = json.loads(
        driver.execute_script(
            """
            const reached = [];
            const controls = "a[href], button, input, summary, canvas, [tabindex]";
            for (const one of document.querySelectorAll(controls)) {
              if (!one.getClientRects().length) continue;
              one.focus();
              const name = one.getAttribute("aria-label") || one.textContent.trim() ||
                (one.labels && one.labels[0].textContent) || "";
              reached.push([one.tagName, document.activeElement === one, name !== ""]);
            }
            return JSON.stringify(reached);
            """
        )
    )
    assert len(names) > 20
    assert [one for one in names if not (one[1] and one[2])] == []


LINKS = "return [...document.querySelectorAll('.place a')].map(link => link.getAttribute('href'))"
CHOOSE = """
const choice = document.querySelector("#editor");
choice.value = arguments[0];
choice.dispatchEvent(new Event("change"));
"""


def mapping_at(path: str) -> Session:
    operation = records.make_operation("map_0", file=path, line=7)
    pipeline = records.make_pipeline(ops=[operation], bottleneck_op_id="map_0")
    return factories.make_session(pipeline=pipeline)


def test_places_open_in_the_editor_that_is_chosen(driver: Any, tmp_path: Path) -> None:
    show(driver, tmp_path, mapping_at("/home/me/train.py"))
    words = "return [...document.querySelectorAll('.place')].map(one => one.textContent)"
    before = driver.execute_script(words)
    assert driver.execute_script(LINKS) == []

    driver.execute_script(CHOOSE, "VS Code")
    links = driver.execute_script(LINKS)
    assert "vscode://file/home/me/train.py:7" in links
    assert driver.execute_script(words) == before
    driver.refresh()
    assert driver.execute_script(LINKS) == links
    driver.execute_script(CHOOSE, "PyCharm")
    assert "pycharm://open?file=/home/me/train.py&line=7" in driver.execute_script(LINKS)
    driver.execute_script(CHOOSE, "")
    driver.refresh()
    assert driver.execute_script(LINKS) == []
    assert driver.get_log("browser") == []


def test_a_strangers_path_stays_a_path(driver: Any, tmp_path: Path) -> None:
    path = "/a b/../%2e?x&line=1#/javascript:alert(1)/t.py"
    show(driver, tmp_path, mapping_at(path))
    driver.execute_script(CHOOSE, "VS Code")
    links = driver.execute_script(LINKS)
    driver.execute_script(CHOOSE, "")

    assert "vscode://file/a%20b/../%252e%3Fx%26line%3D1%23/javascript%3Aalert(1)/t.py:7" in links
    assert all(link.startswith("vscode://file/") for link in links)
