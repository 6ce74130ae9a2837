from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipediag.reporters.html.trial_chart import round_ratios, trial_chart
from pipediag.session.record import Interval
from pipediag.session.trials import NOT_TRIED, Trial
from tests.reporters import trial_sessions

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


def test_nothing_to_draw() -> None:
    assert trial_chart(None, [EDIT], found(2.0, (1.9, 2.1))) is None
    assert trial_chart(run_of({OTHER: [1.5]}), [EDIT], NOT_TRIED) is None
    assert trial_chart(run_of({OTHER: [1.5]}), [], NOT_TRIED) is None


@given(
    st.lists(st.floats(0.05, 50.0), min_size=1, max_size=40),
    st.floats(0.05, 50.0),
    st.floats(0.0, 20.0),
)
def test_everything_lies_within_the_drawing_in_its_order(
    ratios: list[float], low: float, width: float
) -> None:
    chart = trial_chart(run_of({EDIT: ratios}), [EDIT], found(low + width / 2, (low, low + width)))

    assert chart is not None
    dots = [tuple(map(float, dot.removesuffix("h0").split())) for dot in chart.path.split("M")[1:]]
    assert len(dots) == len(ratios)
    places = [*(x for x, _ in dots), chart.none, chart.limit, chart.low, chart.high]
    assert all(place is not None and 0 < place < 100 for place in places)
    assert chart.none < chart.limit
    heights = [y for _, y in dots]
    assert heights == sorted(heights)
    assert 0 < heights[0] <= heights[-1] < chart.height


def test_labels_only_where_there_is_room() -> None:
    far = trial_chart(run_of({EDIT: [2.0]}), [EDIT], found(2.0, (1.9, 2.1)))
    near = trial_chart(run_of({EDIT: [1.0]}), [EDIT], found(1.0, (0.98, 1.02)))

    assert far is not None
    assert near is not None
    assert (far.limit_labelled, far.mean_labelled) == (False, True)
    assert (near.limit_labelled, near.mean_labelled) == (True, False)


def test_words_for_those_who_do_not_see_it() -> None:
    chart = trial_chart(run_of({EDIT: [2.0, 1.9]}), [EDIT], found(1.95, (1.9, 2.0)))

    assert chart is not None
    assert chart.words.replace("\xa0", " ") == (
        "Speed-up in each of 2 rounds: 2.00x, 1.90x; 95 % interval [1.90, 2.00]"
    )


def test_what_the_pipeline_alone_did_is_drawn_apart_from_the_estimate_for_a_step() -> None:
    session = trial_sessions.pipeline_only()
    trial = session.findings[0].trial

    chart = trial_chart(session.trials, [EDIT], trial)

    assert chart is not None
    assert chart.low is not None
    assert chart.mean is not None
    assert chart.estimate is not None
    assert (chart.measured, chart.estimated) == (14.0, 4.16)
    assert chart.limit < chart.estimate < chart.low < chart.mean
    assert chart.estimate_labelled is not None
    assert chart.words.replace("\xa0", " ") == (
        "Speed-up of the pipeline alone in each of 3 rounds: 11.40x, 18.60x, 13.20x; 95 % interval "
        "[11.20, 18.90]; a step is estimated at 4.16x"
    )
