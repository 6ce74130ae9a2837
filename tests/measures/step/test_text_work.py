from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pipediag.measures.measured_loop import NO_PROFILE, measure_text_work
from pipediag.measures.recorded_windows import Missing
from pipediag.session.text_work import TextWork
from pipediag.trace.host.text_work import TextTimes
from tests.records import make_steps


def profile(total_ns: int, **by_type: int) -> Any:
    """A profile of two steps of a microsecond."""
    steps = SimpleNamespace(durations_ns=np.array([1000, 1000]))
    return SimpleNamespace(steps=steps, text=TextTimes(total_ns, by_type))


def test_the_share_is_the_profiles_and_the_milliseconds_are_the_clocks() -> None:
    trace = profile(500, StringSplitV2=200, LookupTableFindV2=300)
    found = measure_text_work(make_steps(mean_ms=10.0), trace, None)
    assert isinstance(found, TextWork)
    assert (found.percent, found.ms) == (pytest.approx(25.0), pytest.approx(2.5))
    assert list(found.operations) == ["LookupTableFindV2", "StringSplitV2"]


def test_without_text_it_is_zero_and_not_missing() -> None:
    found = measure_text_work(make_steps(), profile(0), None)
    assert found == TextWork(percent=0.0, ms=0.0)


def test_without_a_profile_the_reason_is_said() -> None:
    assert measure_text_work(make_steps(), None, "none was asked for") == Missing(
        "none was asked for"
    )
    assert measure_text_work(make_steps(), None, None) == Missing(NO_PROFILE)
    assert measure_text_work(Missing("no steps"), profile(1), None) == Missing("no steps")
