"""All advice on one axis: each change with what was predicted and what was measured."""

from __future__ import annotations

from itertools import pairwise

from pipediag.reporters.html.forest import MOST_ROWS, Forest, forest
from pipediag.reporters.html.page import render
from pipediag.session.findings import Finding
from pipediag.session.trials import Trial
from tests import factories
from tests.reporters import trial_sessions
from tests.reporters.html.pages import Page

CONFIRMED = factories.make_finding(
    "missing-cache", edit=trial_sessions.CACHE, trial=trial_sessions.CONFIRMED
)
REFUTED = factories.make_finding(
    "missing-prefetch",
    edit=trial_sessions.PREFETCH,
    trial=trial_sessions.REFUTED,
    predicted_speedup=None,
)
UNTRIED = factories.make_finding(
    "random-map", trial=trial_sessions.UNTRIED, predicted_speedup=None, speedup_at_most=4.0
)


def drawn(*findings: Finding) -> Forest:
    found = forest(factories.make_session(findings=list(findings)))
    assert found is not None
    return found


def test_each_lies_where_its_figures_are_on_one_axis() -> None:
    confirmed, refuted, untried = drawn(CONFIRMED, REFUTED, UNTRIED).rows
    assert confirmed.low is not None
    assert confirmed.measured is not None
    assert confirmed.high is not None
    assert confirmed.predicted is not None
    assert untried.predicted is not None
    assert refuted.measured is not None
    # 1.88 < 1.94 < predicted 2.00 < 2.01, and far right of these 4.00 at most.
    assert confirmed.low < confirmed.measured < confirmed.predicted < confirmed.high
    assert refuted.measured < confirmed.low
    assert untried.predicted > confirmed.high
    assert (refuted.predicted, untried.measured) == (None, None)
    assert [row.state for row in (confirmed, refuted, untried)] == [
        "confirmed",
        "refuted",
        "not_tried",
    ]


def test_twice_as_fast_is_as_far_as_half_as_fast() -> None:
    half = Trial(state="refuted", reason=None, speedup=0.5, ci95=(0.5, 0.5), blocks=8)
    plot = drawn(CONFIRMED, factories.make_finding("small-batch", trial=half))
    predicted, measured = plot.rows[0].predicted, plot.rows[1].measured
    assert predicted is not None
    assert measured is not None
    assert abs((predicted - plot.none) - (plot.none - measured)) < 1e-9


def test_the_numbers_under_the_axis_are_apart_and_1x_is_among_them() -> None:
    far = factories.make_finding("small-batch", predicted_speedup=90.0)
    for plot in (drawn(CONFIRMED, REFUTED), drawn(CONFIRMED, far)):
        places = [tick.x for tick in plot.ticks]
        assert "1x" in [tick.text for tick in plot.ticks]
        assert all(0.0 <= x <= 100.0 for x in places)
        assert min(after - x for x, after in pairwise(places)) >= 12.0


def test_one_alone_is_not_drawn_and_neither_is_what_no_speed_settles() -> None:
    right = factories.make_finding("ids-outside", subject="correctness")
    passed = factories.make_finding("small-batch", status="pass")
    session = factories.make_session(findings=[CONFIRMED, right, passed])
    assert forest(session) is None


def test_what_there_is_no_room_for_is_counted() -> None:
    plot = drawn(*[CONFIRMED] * (MOST_ROWS + 3))
    assert (len(plot.rows), plot.more) == (MOST_ROWS, 3)


def test_figures_that_are_none_are_not_drawn() -> None:
    endless = factories.make_finding("small-batch", predicted_speedup=float("inf"))
    assert forest(factories.make_session(findings=[CONFIRMED, endless])) is None


def test_a_prediction_lies_within_its_range() -> None:
    likely = factories.make_finding("small-batch", predicted_range=(1.46, 2.73))
    endless = factories.make_finding("random-map", predicted_range=(0.0, float("inf")))
    row, nowhere, without = drawn(likely, endless, CONFIRMED).rows

    assert row.likely is not None
    assert row.predicted is not None
    assert 0.0 <= row.likely[0] < row.predicted < row.likely[1] <= 100.0
    assert (nowhere.likely, without.likely) == (None, None)


def test_it_stands_on_the_page_with_its_words() -> None:
    page = Page(render(trial_sessions.everything_tried()))
    (table,) = [
        one for one in page.find("table") if "forest" in (one.attributes.get("class") or "")
    ]
    said = " ".join(table.words().split())
    assert "16 parallel calls on the map in line 12" in said
    for word in ("Confirmed", "Refuted", "Not tried", "Inconclusive"):
        assert word in said
    assert len(table.find("circle")) >= 5
