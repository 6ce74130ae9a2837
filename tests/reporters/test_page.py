"""The page."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest

from pipediag.reporters import html
from pipediag.session.edits import Edit, Insert
from pipediag.session.findings import LeftOut, Patch, SourceExcerpt
from pipediag.session.model import HotLine, Session
from tests import factories, records
from tests.factories import make_finding, make_session
from tests.reporters import trial_sessions
from tests.reporters.pages import Element, Page
from tests.reporters.sessions import SESSIONS, passed

every_session = pytest.mark.parametrize("name", SESSIONS)
SECTIONS = [
    "Where a step\N{RIGHT SINGLE QUOTATION MARK}s time goes",
    "The input pipeline",
    "Findings",
    "The steps",
    "The host",
    "Loops and machine",
]


def page_of(session: Session) -> Page:
    return Page(html.render(session))


@cache
def written(name: str) -> str:
    """The largest take seconds to write."""
    return html.render(SESSIONS[name]())


@cache
def page_named(name: str) -> Page:
    return Page(written(name))


@every_session
def test_every_section_is_there_and_every_tag_closed(name: str) -> None:
    page = page_named(name)
    assert set(SECTIONS) <= {heading.text for heading in page.find("h2")}
    assert len(page.find("h1")) == 1
    unfolded = [one for one in page.find("details") if "open" in one.attributes]
    measured = SESSIONS[name]().steps is not None
    assert [part.find("h2")[0].text for part in unfolded if part.find("h2")] == (
        [] if measured else ["Loops and machine"]
    )


@every_session
def test_fetches_nothing_and_runs_nothing(name: str) -> None:
    page = page_named(name)
    elements = all_elements(page.root)
    assert not {one.tag for one in elements} & {"script", "img", "iframe", "object", "use"}
    links = [one.attributes["href"] for one in elements if one.tag == "link"]
    assert links == ["data:,"]
    assert not [name for one in elements for name in one.attributes if name[:2] in ("on", "sr")]
    [style] = page.find("style")
    assert not re.search(r"@import|url\((?!#)", style.text)


def all_elements(element: Element) -> list[Element]:
    return [element, *(found for child in element.children for found in all_elements(child))]


@every_session
def test_drawings_and_tables_have_names_and_ids_are_unique(name: str) -> None:
    page = page_named(name)
    assert all(table.find("caption") for table in page.find("table"))
    for drawing in page.find("svg"):
        hidden = drawing.attributes.get("aria-hidden") == "true"
        assert hidden or drawing.attributes.get("aria-label"), drawing.attributes
    elements = all_elements(page.root)
    ids = [element.attributes["id"] for element in elements if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    for element in elements:
        assert set((element.attributes.get("aria-labelledby") or "").split()) <= set(ids)


def test_the_run_is_drawn_as_it_passed_with_our_own_work() -> None:
    [drawing] = [one for one in page_of(passed()).find("svg") if len(one.find("rect")) == 3]
    assert [(one.attributes["class"], one.attributes["x"]) for one in drawing.find("rect")] == [
        ("part-startup", "0.000%"),
        ("aside", "58.594%"),
        ("part-steps", "68.359%"),
    ]


def test_the_slowest_operation_is_no_bottleneck_where_training_does_not_wait_for_it() -> None:
    page = page_of(factories.make_compute_bound_session())
    badges = {
        item.text: item.attributes["class"]
        for item in page.find("span")
        if str(item.attributes.get("class")).startswith("badge")
    }
    assert badges["slowest here"] == "badge"
    rows = [str(row.attributes.get("class")) for row in page.find("tr")]
    assert not any("bottleneck" in row for row in rows)
    assert any("slowest" in row for row in rows)


SOURCE = SourceExcerpt(
    file=factories.SCRIPT,
    line=12,
    first_line=11,
    lines=["ds = load()", "ds = ds.map(augment).batch(32)", "model.fit(ds)"],
)


def head(session: Session) -> Element:
    return page_of(session).find("section")[0]


def words(element: Element) -> str:
    return " ".join(element.words().split())


def of_class(element: Element, tag: str, name: str) -> list[Element]:
    return [e for e in element.find(tag) if name in (e.attributes.get("class") or "").split()]


def sourced(session: Session, **overrides: Any) -> Session:
    verdict = session.verdict.but(source=SOURCE)
    return session.but(verdict=verdict, **overrides)


def test_all_five_are_answered_beside_the_verdict() -> None:
    top = head(sourced(trial_sessions.patched()))
    assert "70 % of each step waits for input" in words(top.find("h1")[0])
    (source,) = of_class(top, "pre", "source")
    (meant,) = of_class(source, "span", "meant")
    assert "map(augment)" in meant.words()
    assert of_class(meant, "span", "cost")[0].text == "9.0 ms"
    (change,) = of_class(top, "pre", "diff")
    assert "num_parallel_calls=16" in change.words()
    said = words(top)
    assert "3.1x [2.9, 3.3] in a step, measured" in said
    assert "alternated 6 times" in said
    assert "Waiting for input 7.00 ms" in said


def test_the_python_behind_the_operation_is_shown() -> None:
    hot = HotLine(file="/p/data.py", line=20, function="fetch", percent=76.0, thread="source")
    op = records.make_operation(
        file=factories.SCRIPT, function=records.make_function(graph_ops={"PyFunc": 1})
    )
    behind = SourceExcerpt(
        file="/p/data.py", line=20, first_line=19, lines=["def fetch(x):", "    sleep(1)"]
    )
    session = sourced(
        factories.make_session(),
        pipeline=records.make_pipeline(ops=[op], bottleneck_op_id="map_0"),
        host=factories.make_host(hot_python=[hot]),
    )
    verdict = session.verdict.but(python_source=behind)
    top = head(session.but(verdict=verdict))
    (line,) = [one for one in of_class(top, "span", "meant") if "sleep" in one.words()]
    assert "76\xa0%" in line.words()
    assert "Its Python code /p/data.py:20" in words(top)


CACHED = Edit("cache", "a cache", (Insert("map", "cache"),))


def shown(patch: Patch) -> Page:
    return page_of(make_session(findings=[make_finding(edit=CACHED, patch=patch)]))


def test_what_can_not_be_written_stands_there_as_code_to_paste() -> None:
    left = LeftOut(edit="cache", reason="The call stands in a loop.", snippet=".cache()")
    page = shown(Patch(left_out=[left]))
    assert "The call stands in a loop. By hand:" in page.root.words()
    assert [each.words().strip() for each in page.find("pre")][-1] == ".cache()"


@pytest.mark.parametrize("held", [True, False])
def test_a_diff_that_is_cut_names_the_command_that_prints_all_of_it(held: bool) -> None:
    edit = Edit("map", "four calls", ())
    diff = "--- a/t.py\n+++ b/t.py\n@@ -1,1 +1,20 @@\n" + "+x\n" * 20
    patch = Patch(edits=[edit.id], diff=diff)
    finding = make_finding("parallel-map", edit=edit, patch=patch)
    page = html.render(make_session(findings=[finding], patch=patch if held else Patch()))
    assert ("<code>pipediag fix</code> prints all" in page) is held
    assert ("<code>pipediag fix --with parallel-map</code> prints all" in page) is not held


@pytest.mark.parametrize(("share", "used"), [(70.0, True), (85.0, False)])
def test_a_share_that_was_capped_is_not_said_to_be_used(share: float, used: bool) -> None:
    session = make_session(
        input_wait=records.make_input_wait(method="differential"),
        breakdown=records.make_breakdown(input_wait=70.0),
    )
    alone = session.differential.but(input_share_percent=share)
    page = page_of(session.but(differential=alone))
    [row] = [words(one) for one in page.find("th") if "one repeated batch" in words(one)]
    assert ("used above" in row, "upper bound" in row) == (used, not used)
