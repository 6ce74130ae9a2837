"""Parts of the page: the geometry of its drawings, patches, and source lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipediag.facts.order import SourcePlace
from pipediag.reporters.html import drawings, render
from pipediag.reporters.html.drawings import round_ratios, run_timeline, trial_chart
from pipediag.reporters.html.source_lines import SourceLine, annotated, brief_lines, margin_note
from pipediag.session.edits import Edit, Insert
from pipediag.session.findings import LeftOut, Patch, SourceExcerpt
from pipediag.session.ledger import RunSpan
from pipediag.session.record import Interval
from pipediag.session.trials import Trial
from pipediag.vocabulary import RunPartName
from tests import factories, records
from tests.factories import SCRIPT, make_finding, make_part, make_session, make_verdict
from tests.ledgers import make_run
from tests.records import make_operation, make_pipeline
from tests.reporters import trial_sessions
from tests.reporters.pages import Page


@given(st.lists(st.floats(0.01, 1e5), min_size=1, max_size=2000))
def test_strip_has_a_stroke_a_bucket_within_the_drawing(samples: list[float]) -> None:
    median = sorted(samples)[len(samples) // 2]
    steps = records.make_steps(samples_ms=samples, median_ms=median, p95_ms=max(samples))
    strip = drawings.step_strip(factories.make_session(steps=steps))
    assert strip is not None
    assert strip.count == len(samples)
    assert strip.buckets == min(len(samples), drawings.MAX_BUCKETS)
    strokes = strip.path.split("M")[1:]
    assert len(strokes) == strip.buckets
    for stroke in strokes:
        start, high = stroke.split("V")
        x, low = map(float, start.split())
        assert 0 <= x <= 1000
        assert 0 <= float(high) <= low <= 100


def test_strip_clips_what_would_flatten_the_rest_and_counts_it() -> None:
    steps = records.make_steps(samples_ms=[10.0] * 99 + [900.0], p95_ms=10.5)
    strip = drawings.step_strip(factories.make_session(steps=steps))
    assert strip is not None
    assert strip.clipped == 1
    assert strip.longest_ms == 900.0
    assert strip.scale_ms < 12.0


def test_the_run_as_it_passed_has_its_parts_in_order_and_no_stretch_too_short_to_see() -> None:
    def span(part: RunPartName | None, start_ms: float, duration_ms: float) -> RunSpan:
        return RunSpan(part=part, start_ms=start_ms, duration_ms=duration_ms)

    spans = [
        span("steps", 500.0, 499.9),
        span("before_training", 0.0, 400.0),
        span(None, 400.0, 100.0),
        span("epoch_end", 999.9, 0.1),
    ]
    found = run_timeline(make_run(spans=spans))
    assert [one.part for one in found] == ["before_training", None, "steps", "epoch_end"]
    assert [round(one.start) for one in found] == [0, 40, 50, 100]
    tiny = [span("steps", 0.1 * at, 0.1) for at in range(1000)]
    assert len(run_timeline(make_run(spans=tiny))) == 1
    assert run_timeline(None) == []


EDIT = trial_sessions.PARALLEL.id
OTHER = trial_sessions.BATCH.id


def run_of(ratios: dict[str, list[float]]) -> trial_sessions.TrialRun:
    return trial_sessions.make_run(blocks=trial_sessions.make_blocks(ratios))


def found(speedup: float, bounds: Interval) -> Trial:
    return Trial(state="confirmed", reason=None, speedup=speedup, ci95=bounds, blocks=8)


def test_a_ratio_for_each_round_with_both_arms() -> None:
    run = run_of({EDIT: [2.0, 1.9], OTHER: [1.5, 1.4, 1.6]})
    assert round_ratios(run, [EDIT]) == pytest.approx([2.0, 1.9])
    assert round_ratios(run, [OTHER]) == pytest.approx([1.5, 1.4, 1.6])


def test_the_combination_is_found_in_whatever_order_its_edits_are_named() -> None:
    run = run_of({EDIT: [2.0], f"{OTHER} + {EDIT}": [3.0, 3.2]})
    assert round_ratios(run, [EDIT, OTHER]) == pytest.approx([3.0, 3.2])


@given(
    st.lists(st.floats(0.05, 50.0), min_size=1, max_size=40),
    st.floats(0.05, 50.0),
    st.floats(0.0, 20.0),
)
def test_everything_lies_within_the_drawing(ratios: list[float], low: float, width: float) -> None:
    chart = trial_chart(run_of({EDIT: ratios}), [EDIT], found(low + width / 2, (low, low + width)))
    assert chart is not None
    assert chart.interval is not None
    assert len(chart.rounds) == len(ratios)
    assert all(0 < x < 100 for x in (*chart.rounds, *chart.interval, chart.nothing_gained))


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
CACHED = Edit("cache", "a cache", (Insert("map", "cache"),))


def shown(patch: Patch) -> Page:
    return Page(render(make_session(findings=[make_finding(edit=CACHED, patch=patch)])))


def test_a_diff_stands_under_its_finding() -> None:
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


def test_what_can_not_be_written_stands_there_as_code_to_paste() -> None:
    left = LeftOut(edit="cache", reason="The call stands in a loop.", snippet=".cache()")
    page = shown(Patch(left_out=[left]))
    assert "The call stands in a loop. By hand:" in page.root.words()
    assert [each.words().strip() for each in page.find("pre")][-1] == ".cache()"


def test_a_brief_diff_keeps_what_a_change_is_seen_by() -> None:
    body = "".join(f" same{n}\n" for n in range(4))
    diff = f"@@ -1,9 +1,10 @@\n{body}-old\n+new\n{body}+more\n same\n"
    assert brief_lines(diff) == [
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


def excerpt(*lines: str) -> SourceExcerpt:
    return SourceExcerpt(file=SCRIPT, line=5, first_line=4, lines=list(lines))


def annotated_lines(shown: SourceExcerpt) -> list[SourceLine]:
    """Lines around the operation in line 5, beside one in line 20."""
    ops = [
        make_operation("map_0", line=5, self_ms_per_step=36.0, latency_ms_per_step=9.0),
        make_operation("batch_0", "batch", line=20, code="ds.batch(2)", self_ms_per_step=0.25),
    ]
    session = make_session(pipeline=make_pipeline(ops=ops), host=None)
    verdict = session.verdict.model_copy(update={"source": shown})
    blocks = annotated(
        session.model_copy(update={"verdict": verdict}), SourcePlace(SCRIPT, 5, "map_0")
    )
    return [line for block in blocks for line in block.lines]


def test_lines_lose_the_indent_that_they_share_and_have_their_time_beside_them() -> None:
    lines = annotated_lines(excerpt("", "    ds = ds.map(", "        f)  # <b>", "    )"))
    assert [(one.number, str(one.text), one.cost, one.meant, one.after_gap) for one in lines] == [
        (5, "ds = ds.map(", "9.0 ms", True, False),
        (6, "    f)  # &lt;b&gt;", "", False, False),
        (20, "ds.batch(2)", "0.25 ms", False, True),
    ]


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
