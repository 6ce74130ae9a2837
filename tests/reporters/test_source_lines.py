"""A patch on the page, and which call of a line is meant."""

from __future__ import annotations

import base64

from pipediag.facts.order import SourcePlace
from pipediag.reporters.html import render
from pipediag.reporters.html.source_lines import (
    SourceLine,
    annotated,
    brief_lines,
    patch_link,
)
from pipediag.session.edits import Edit, Insert
from pipediag.session.findings import CallSpan, LeftOut, Patch, SourceExcerpt
from tests.factories import SCRIPT, make_finding, make_session
from tests.records import make_operation, make_pipeline
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
    (block,) = [each for each in page.find("pre") if each.attributes.get("class") == "diff"]
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
    assert [each.words().strip() for each in page.find("pre")][-1] == ".cache()"


def test_the_patch_of_all_is_offered_where_it_is_more_than_one_edit() -> None:
    together = Patch(edits=["a", "b"], diff=DIFF)
    page = Page(render(make_session(findings=[make_finding()], patch=together)))
    names = [each.attributes.get("download") for each in page.find("a")]
    assert list(filter(None, names)) == ["pipediag.patch"]


def test_a_patch_that_would_fill_the_page_is_no_link() -> None:
    assert patch_link("+x\n" * 20_000) is None


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
    return SourceExcerpt(file=SCRIPT, line=5, first_line=4, lines=list(lines), call=call)


def annotated_lines(shown: SourceExcerpt) -> list[SourceLine]:
    """Lines around the operation in line 5, beside one in line 20."""
    ops = [
        make_operation("map_0", line=5, self_ms_per_step=9.0),
        make_operation("batch_0", "batch", line=20, code="ds.batch(2)", self_ms_per_step=0.25),
    ]
    session = make_session(pipeline=make_pipeline(ops=ops), host=None)
    verdict = session.verdict.model_copy(update={"source": shown})
    blocks = annotated(
        session.model_copy(update={"verdict": verdict}), SourcePlace(SCRIPT, 5, "map_0")
    )
    return [line for block in blocks for line in block.lines]


def test_lines_lose_the_indent_that_they_share_and_have_their_time_beside_them() -> None:
    lines = annotated_lines(
        excerpt(
            "",
            "    ds = ds.map(",
            "        f)  # <b>",
            "    )",
            call=CallSpan(line=5, column=12, end_line=6, end_column=10),
        )
    )
    assert [(one.number, str(one.text), one.cost, one.meant, one.after_gap) for one in lines] == [
        (5, "ds = ds.<mark>map(</mark>", "9.0 ms", True, False),
        (6, "    <mark>f)</mark>  # &lt;b&gt;", "", False, False),
        (20, "ds.batch(2)", "0.25 ms", False, True),
    ]


def test_an_excerpt_from_elsewhere_may_say_anything_of_its_call() -> None:
    call = CallSpan(line=-3, column=-7, end_line=99, end_column=-2)
    lines = annotated_lines(excerpt("    a", "  b", "", call=call))
    assert [line.text.striptags() for line in lines[:2]] == ["a", "b"]
