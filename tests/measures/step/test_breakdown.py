from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipediag.measures.bootstrap import Measured
from pipediag.measures.breakdown import CLASSES, break_down, round_to_hundred
from tests.measures.traces import make_split

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


def test_without_a_profile_the_consumer_is_unattributed() -> None:
    shares = break_down(10.0, measured(20.0), None)
    assert shares["unattributed"].percent == 80.0
    assert sum(share.percent for share in shares.values()) == pytest.approx(100.0)


def test_a_profile_of_waiting_alone_attributes_nothing() -> None:
    shares = break_down(10.0, measured(90.0), make_split(input_wait=5.0))
    assert shares["unattributed"].percent == 10.0


def test_thirds_are_rounded_so_that_they_add_up() -> None:
    assert sorted(round_to_hundred(np.array([1.0, 1.0, 1.0]))) == [33.33, 33.33, 33.34]


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
