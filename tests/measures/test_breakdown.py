"""The step by class, and the bound if input were free."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipediag.measures.bootstrap import Measured
from pipediag.measures.breakdown import CLASSES, break_down, measure_ceiling
from tests.factories import make_loop_time
from tests.measures.traces import make_split
from tests.records import make_breakdown

amounts = st.floats(min_value=0.0, max_value=1e4, allow_nan=False)


def measured(percent: float) -> Measured:
    return Measured(percent, np.full(1000, percent))


def test_consumer_time_is_split_in_the_profiles_proportions() -> None:
    split = make_split(input_wait=1.0, device_compute=6.0, dispatch=2.0)
    shares = break_down(10.0, measured(20.0), split)
    assert shares["input_wait"].percent == 20.0
    assert shares["device_compute"].percent == 60.0
    assert shares["dispatch"].percent == 20.0
    assert shares["device_compute"].ms == pytest.approx(6.0)
    assert shares["dispatch"].ci95_percent == pytest.approx((20.0, 20.0))
    assert shares["python"].percent == 0.0


@settings(max_examples=25, deadline=None)
@given(wait=st.floats(0.0, 100.0), ms=st.lists(amounts, min_size=9, max_size=9))
def test_percents_add_up_to_a_hundred_and_none_is_negative(wait: float, ms: list[float]) -> None:
    split = make_split(3, **dict(zip(CLASSES, ms, strict=True)))
    shares = break_down(7.0, measured(wait), split)
    assert sum(round(share.percent * 100) for share in shares.values()) == 10_000
    assert min(share.percent for share in shares.values()) >= 0.0
    assert min(share.ci95_percent[0] for share in shares.values()) >= 0.0
    assert sum(share.ms for share in shares.values()) == pytest.approx(7.0)


def test_what_the_clock_shows_of_compiling_goes_before_the_profiles_share() -> None:
    split = make_split(input_wait=1.0, device_compute=3.0, dispatch=1.0, compile=4.0)
    shares = break_down(10.0, measured(20.0), split, measured(60.0))
    percents = {name: share.percent for name, share in shares.items() if share.percent}
    assert percents == {
        "input_wait": 20.0,
        "compile": 60.0,
        "device_compute": 15.0,
        "dispatch": 5.0,
    }


@pytest.mark.parametrize("profile", [True, False])
def test_what_is_left_beside_compiling_is_unattributed_where_no_profile_tells(
    profile: bool,
) -> None:
    split = make_split(compile=5.0) if profile else None
    shares = break_down(10.0, measured(20.0), split, measured(70.0))
    assert shares["compile"].percent == 70.0
    assert shares["unattributed"].percent == 10.0


def test_the_ceiling_is_step_over_consumer_time() -> None:
    wait = Measured(75.0, np.array([74.0, 75.0, 76.0]))
    ceiling = measure_ceiling(wait, make_breakdown(input_wait=75.0, dispatch=20.0, python=5.0))
    assert ceiling.speedup_if_input_free == 4.0
    assert ceiling.ci95 is not None
    assert ceiling.ci95[0] < 4.0 < ceiling.ci95[1]
    assert ceiling.next_bottleneck == "dispatch"


def test_a_step_of_waiting_alone_has_no_ceiling() -> None:
    ceiling = measure_ceiling(Measured(100.0, np.array([100.0])), make_breakdown(input_wait=100.0))
    assert ceiling.speedup_if_input_free is None
    assert "input wait alone" in (ceiling.missing or "")


def test_the_whole_loop_gains_by_the_waits_between_epochs_as_well() -> None:
    """Of 20 s, 16 s are first batches, and half of 3 s of steps is waiting."""
    wait = Measured(50.0, np.array([50.0]))
    ceiling = measure_ceiling(wait, make_breakdown(input_wait=50.0), make_loop_time())
    assert ceiling.loop_speedup_if_input_free == pytest.approx(20.0 / 2.5)
    nothing_left = make_loop_time(steps_s=4.0, between_epochs_s=0.0)
    all_wait = measure_ceiling(
        Measured(99.8, np.array([99.8])), make_breakdown(input_wait=99.8), nothing_left
    )
    assert all_wait.loop_speedup_if_input_free is None


def test_free_input_still_creates_and_destroys_iterators() -> None:
    wait = Measured(50.0, np.array([50.0]))
    time = make_loop_time(making_s=0.5, between_epochs_s=0.5)
    ceiling = measure_ceiling(wait, make_breakdown(input_wait=50.0), time)
    assert ceiling.loop_speedup_if_input_free == pytest.approx(20.0 / 2.5)


def test_a_wait_for_a_first_batch_that_is_a_step_as_well_counts_once() -> None:
    """The mean step of 10 ms has 9 ms of them, and 0.5 ms of other waiting, of its steady 1 ms."""
    wait = Measured(95.0, np.array([95.0]))
    time = make_loop_time(step_ms=1.0)
    ceiling = measure_ceiling(wait, make_breakdown(input_wait=95.0), time)
    assert ceiling.loop_speedup_if_input_free == pytest.approx(20.0 / 2.5)
