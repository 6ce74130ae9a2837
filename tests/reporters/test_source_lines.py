"""A patch on the page, and which call of a line is meant."""

from __future__ import annotations

import base64

import pytest

from pipediag.facts.order import SourcePlace
from pipediag.reporters.html import render
from pipediag.reporters.html.source_lines import (
    brief_lines,
    excerpt_lines,
    is_in_patch,
    marked,
    of_the_change,
    patch_link,
)
from pipediag.reporters.words.advice import FirstAdvice
from pipediag.session.edits import Edit, Insert
from pipediag.session.findings import CallSpan, LeftOut, Patch, SourceExcerpt
from tests.factories import make_finding, make_session
from tests.records import make_operation
from tests.reporters.pages import Page

DIFF = """--- a/t.py
+++ b/t.py
@@ -1,2 +1,3 @@
~
 ds = ds.map(f)
+ds = ds.cache()
 ds = ds.batch(2)
@@ -9,1 +10,1 @@
-m.compile('<b>')
+m.compile('sgd')
""".replace("~", " ")
EDIT = Edit("cache", "a cache", (Insert("map", "cache"),))


def shown(patch: Patch) -> Page:
    return Page(render(make_session(findings=[make_finding(edit=EDIT, patch=patch)])))


def test_a_diff_stands_under_its_finding_and_can_be_saved() -> None:
    page = shown(Patch(edits=["cache"], diff=DIFF))
    _, block = [each for each in page.find("pre") if each.attributes.get("class") == "diff"]
    assert [span.text.rstrip("\n") for span in block.find("span")] == [
        " ds = ds.map(f)",
        "+ds = ds.cache()",
        " ds = ds.batch(2)",
        "…",
        "-m.compile('<b>')",
        "+m.compile('sgd')",
    ]
    (link,) = [each for each in page.find("a") if "download" in each.attributes]
    address = link.attributes["href"] or ""
    assert base64.b64decode(address.partition("base64,")[2]).decode() == DIFF
    assert link.attributes["download"] == "parallel-map.patch"


def test_what_can_not_be_written_stands_there_as_code_to_paste() -> None:
    left = LeftOut(edit="cache", reason="The call stands in a loop.", snippet=".cache()")
    page = shown(Patch(left_out=[left]))
    assert "The call stands in a loop. By hand:" in page.root.words()
    assert [each.words().strip() for each in page.find("pre")] == [".cache()", ".cache()"]


def test_the_patch_of_all_is_offered_where_it_is_more_than_one_edit() -> None:
    together = Patch(edits=["a", "b"], diff=DIFF)
    page = Page(render(make_session(findings=[make_finding()], patch=together)))
    names = [each.attributes.get("download") for each in page.find("a")]
    assert list(filter(None, names)) == ["pipediag.patch"]


def test_a_patch_that_would_fill_the_page_is_no_link() -> None:
    assert patch_link("+x\n" * 20_000) is None


@pytest.mark.parametrize(
    ("code", "kind", "expected"),
    [
        (
            "ds.map(f(1), n=')').batch(2)",
            "map",
            "ds.<mark>map(f(1), n=&#39;)&#39;)</mark>.batch(2)",
        ),
        ("ds = a.zip(b).batch(2)  # x", "batch", "ds = a.zip(b).<mark>batch(2)</mark>  # x"),
        ("x = read(p).map(  # (", "map", "x = read(p).<mark>map(</mark>  # ("),
        ("ds = ds.map(f)", "map", "ds = ds.map(f)"),
        ("ds.map(f).map(g)", "map", "ds.map(f).map(g)"),
        ("make(<b>)(x)", "map", "make(&lt;b&gt;)(x)"),
    ],
)
def test_the_call_is_marked_where_a_line_has_others(code: str, kind: str, expected: str) -> None:
    assert str(marked(make_operation(kind=kind, code=code))) == expected


def test_a_brief_diff_keeps_what_a_change_is_seen_by() -> None:
    body = "".join(f" same{n}\n" for n in range(4))
    diff = f"@@ -1,9 +1,10 @@\n{body}-old\n+new\n{body}+more\n same\n"
    assert [line.text for line in brief_lines(diff)] == [
        " same3",
        "-old",
        "+new",
        " same0",
        "…",
        " same3",
        "+more",
        " same",
    ]
    assert brief_lines("") == []


def excerpt(*lines: str, call: CallSpan | None = None) -> SourceExcerpt:
    return SourceExcerpt(file="t.py", line=5, first_line=4, lines=list(lines), call=call)


def test_an_excerpt_loses_the_indent_that_its_lines_share_and_marks_the_call() -> None:
    lines = excerpt_lines(
        excerpt(
            "",
            "    ds = ds.map(",
            "        f)  # <b>",
            "    ds = ds.batch(2)",
            "",
            call=CallSpan(line=5, column=12, end_line=6, end_column=10),
        )
    )
    assert [(line.number, str(line.text), line.meant, line.far) for line in lines] == [
        (5, "ds = ds.<mark>map(</mark>", True, False),
        (6, "    <mark>f)</mark>  # &lt;b&gt;", False, False),
        (7, "ds = ds.batch(2)", False, True),
    ]


def test_an_excerpt_from_elsewhere_may_say_anything_of_its_call() -> None:
    call = CallSpan(line=-3, column=-7, end_line=99, end_column=-2)
    lines = excerpt_lines(excerpt("    a", "  b", "", call=call))
    assert [line.text.striptags() for line in lines] == ["a", "b"]
    assert excerpt_lines(excerpt("", " ")) == []


COMPILE = Patch(
    edits=["cache"],
    diff="""--- a/t.py
+++ b/t.py
@@ -1,1 +1,2 @@
 import tensorflow as tf
+from pipediag.optimizers import LazyAdam
@@ -26,3 +27,3 @@
 )
-model.compile(optimizer="adam")
+model.compile(optimizer=LazyAdam())
 model.fit(dataset)
""",
)


@pytest.mark.parametrize(
    ("op_id", "first_line", "finding_line", "expected"),
    [
        (None, 25, 28, 27),
        ("map_0", 25, 28, 28),  # an operation is meant, and stands where it stands
        (None, 28, 28, 28),  # the changed line is not among those that are shown
        (None, 25, 9, 28),  # the advice is about another line
    ],
)
def test_the_line_that_is_shown_is_the_one_that_changes(
    op_id: str | None, first_line: int, finding_line: int, expected: int
) -> None:
    finding = make_finding(file="/p/t.py", line=finding_line, edit=EDIT, patch=COMPILE)
    excerpt = SourceExcerpt(file="/p/t.py", line=28, first_line=first_line, lines=["x"] * 4)
    place = SourcePlace("/p/t.py", 28, op_id)
    found = of_the_change(place, FirstAdvice(finding, (), ""), excerpt)
    assert found is not None
    assert found.line == expected
    meant = [line.number for line in excerpt_lines(excerpt, found.line) if line.meant]
    assert meant == [expected]


@pytest.mark.parametrize(
    ("file", "line", "has"),
    [("/a/t.py", 11, True), ("/a/t.py", 10, False), ("/a/other.py", 11, False)],
)
def test_a_line_that_the_patch_takes_away_is_in_it(file: str, line: int, has: bool) -> None:
    hunk = "@@ -10,2 +10,2 @@\n ds = load()\n-ds = ds.map(f)\n+ds = ds.map(g)\n"
    diff = f"--- a/t.py\n+++ b/t.py\n{hunk}"
    finding = make_finding("r", file="/a/t.py", line=11, patch=Patch(edits=["e"], diff=diff))
    by_hand = finding.model_copy(update={"patch": None})
    assert is_in_patch(finding, SourcePlace(file, line)) is has
    assert not is_in_patch(by_hand, SourcePlace(file, line))
    assert not is_in_patch(finding, None)
