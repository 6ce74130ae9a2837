"""Parts of the page: patches, and source lines."""

from __future__ import annotations

from pipediag.facts.order import SourcePlace
from pipediag.reporters.html import render
from pipediag.reporters.html.source_lines import annotated, margin_note
from pipediag.session.edits import Edit, Insert
from pipediag.session.findings import LeftOut, Patch, SourceExcerpt
from tests import factories
from tests.factories import SCRIPT, make_finding, make_part, make_session, make_verdict
from tests.reporters.pages import Page

CACHED = Edit("cache", "a cache", (Insert("map", "cache"),))


def shown(patch: Patch) -> Page:
    return Page(render(make_session(findings=[make_finding(edit=CACHED, patch=patch)])))


def test_what_can_not_be_written_stands_there_as_code_to_paste() -> None:
    left = LeftOut(edit="cache", reason="The call stands in a loop.", snippet=".cache()")
    page = shown(Patch(left_out=[left]))
    assert "The call stands in a loop. By hand:" in page.root.words()
    assert [each.words().strip() for each in page.find("pre")][-1] == ".cache()"


def test_projected_seconds_are_marked() -> None:
    lines = ("a = parse()", "b = 0", "fit(callbacks=[Save()])")
    source = SourceExcerpt(file=SCRIPT, line=7, first_line=7, lines=list(lines))
    parts = [
        make_part("before_training", 2.0, line=7),
        make_part("epoch_end", 10.0, basis="projected", line=9),
    ]
    session = make_session(
        verdict=make_verdict(source=source),
        run=factories.make_run(parts=parts),
        pipeline=None,
        host=None,
    )
    blocks = annotated(session, SourcePlace(SCRIPT, 7))
    costs = {line.number: line.cost for block in blocks for line in block.lines}
    assert [costs[line][:1] for line in (7, 8, 9)] == ["2", "", "~"]
    assert "(~)" in margin_note(blocks)
