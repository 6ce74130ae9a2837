"""The input wait by every method, the step by class, and the bound if input were free."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipediag.estimates import Measured
from pipediag.measures.input_wait import contention_of, native_input_wait, settle_input_wait
from pipediag.measures.steps import (
    CLASSES,
    ConsumerAlone,
    break_down,
    measure_ceiling,
    measure_differential,
)
from pipediag.session.loops import Differential
from pipediag.session.recording import RecordedBlock
from pipediag.trace.steps import StepSplit
from tests.factories import make_host
from tests.measures.traces import make_split
from tests.recordings import make_block, make_recording, make_window
from tests.records import MS, make_breakdown


def share(percent: float) -> Measured:
    return Measured(percent, np.array([percent - 1.0, percent, percent + 1.0]))


@pytest.mark.parametrize(
    ("block", "percent"),
    [
        # The last of the fewest steps needs no gap.
        (make_block(5, 10.0, 3.0, gaps_us=[3000] * 4, last_gap_unknown=True), 70.0),
        (make_block(4, 10.0, 3.0, gaps_us=[3000] * 3, last_gap_unknown=True), None),
        (make_block(10, 10.0, None, waits_ns=[4 * MS] * 10), 40.0),
    ],
)
def test_without_gaps_of_enough_steps_the_time_in_next_is_taken(
    block: RecordedBlock, percent: float | None
) -> None:
    recording = make_recording(windows=[make_window("baseline", block)])
    native = native_input_wait(recording, recording.loops[0])
    assert (native and native.percent) == (percent and pytest.approx(percent))


@pytest.mark.parametrize(("python_percent", "percent"), [(20.0, 29.0), (61.0, 70.0), (150.0, 70.0)])
def test_what_pythons_cpu_time_can_explain_of_a_shorter_step_is_input(
    python_percent: float, percent: float
) -> None:
    """Gap times see 9 %, the repeated batch says 70."""
    recording = make_recording()
    alone = measure_differential(recording, recording.loops[0])
    wait, chosen = settle_input_wait(
        Measured(9.0, np.full(1000, 9.0)), None, alone, "python", python_percent=python_percent
    )
    assert wait.method == "differential"
    assert chosen.percent == pytest.approx(percent)
    assert "between 9 %" in (wait.disagreement or "")


def contention(
    tf_data: float, *, others: float | None = None, idle: float = 0.0, **given: Any
) -> str | None:
    pools = {"tf_data": tf_data, "python_other": 0.0, "eigen": 180.0, "python_main": 80.0}
    host = make_host(threads=pools, cores_allowed=2.0, cores_of_others=others, cores_idle=idle)
    return contention_of(host, 10.0, **{"python_percent": 0.0, "accelerated": False, **given})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"tf_data": 0.0, "python_percent": 5.0}, "python"),
        ({"tf_data": 0.0, "python_percent": 5.0, "accelerated": True}, "python"),
        ({"tf_data": 0.0, "python_percent": 4.9}, None),
        ({"tf_data": 50.0}, "cpu"),
        ({"tf_data": 49.0}, None),
        ({"tf_data": 90.0, "accelerated": True}, None),
        # What other programs take is not what the pipeline leaves.
        ({"tf_data": 26.0, "others": 1.0}, "cpu"),
        ({"tf_data": 26.0, "others": 0.1}, None),
        ({"tf_data": 24.0, "others": 2.0}, None),
        # A metric over a dataset of its own runs threads of tf.data within the step.
        ({"tf_data": 90.0, "pipeline_ms": 2.4}, None),
        ({"tf_data": 90.0, "pipeline_ms": 2.5}, "cpu"),
    ],
)
def test_a_busy_pipeline_takes_cpus_from_a_consumer_that_computes_on_them(
    given: dict[str, Any], expected: str | None
) -> None:
    assert contention(**given) == expected


def contested(native: float, contention_: Any = None) -> float | None:
    """By a repeated batch whose step is 70 % shorter."""
    recording = make_recording()
    alone = measure_differential(recording, recording.loops[0])
    wait, _ = settle_input_wait(share(native), None, alone, contention_)
    return wait.contested_by_percent


def test_a_repeated_batch_that_contradicts_what_is_believed_is_kept_beside_it() -> None:
    assert contested(9.0) == pytest.approx(70.0)
    assert contested(68.0) is None
    assert contested(90.0) == pytest.approx(70.0)
    # There it is what is believed.
    assert contested(9.0, "cpu") is None
    assert contested(90.0, "cpu") == pytest.approx(70.0)


def between(low: float, high: float) -> Measured:
    """A share whose interval has these limits."""
    return Measured((low + high) / 2, np.repeat([low, high], 100))


@pytest.mark.parametrize(("low", "method"), [(57.1, "differential"), (56.9, "native")])
def test_the_repeated_batch_counts_where_five_points_lie_between_them(
    low: float, method: str
) -> None:
    consumer = ConsumerAlone(alone(70.0).differential, between(low, 90.0))
    told, _ = settle_input_wait(between(50.0, 52.0), None, consumer, "python")
    assert (told.method, told.contention) == (method, "python")
    assert (told.disagreement is None) is (method == "native")


@pytest.mark.parametrize(
    ("split", "compiled"), [(make_split(compile=1.0, python=9.0), None), (None, share(50.0))]
)
def test_what_is_compiled_anew_is_no_input_that_a_repeated_batch_is_without(
    split: StepSplit | None, compiled: Measured | None
) -> None:
    recording = make_recording()
    alone = measure_differential(recording, recording.loops[0])
    wait, chosen = settle_input_wait(share(9.0), split, alone, "python", compiled=compiled)
    assert (wait.method, wait.contested_by_percent) == ("native", None)
    assert chosen.percent == 9.0


def alone(percent: float) -> ConsumerAlone:
    step_ms = 1.0 - percent / 100.0
    return ConsumerAlone(
        Differential(
            step_ms=step_ms, ci95_ms=(step_ms, step_ms), steps=1930, input_share_percent=percent
        ),
        share(percent),
    )


def test_what_warm_rows_explain_is_no_input_bound_verdict() -> None:
    split = make_split(input_wait=0.7, dispatch=9.3)
    wait, chosen = settle_input_wait(None, split, alone(24.0), None)
    assert (wait.method, wait.unsettled, round(chosen.percent)) == ("trace", True, 7)
    wait, _ = settle_input_wait(None, split, alone(45.0), None)
    assert (wait.method, wait.unsettled) == ("differential", True)


amounts = st.floats(min_value=0.0, max_value=1e4, allow_nan=False)


def measured(percent: float) -> Measured:
    return Measured(percent, np.full(1000, percent))


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
    assert ceiling.ci95[0] < 4.0 < ceiling.ci95[1]
    assert ceiling.next_bottleneck == "dispatch"


def test_a_step_of_waiting_alone_has_no_ceiling() -> None:
    ceiling = measure_ceiling(Measured(100.0, np.array([100.0])), make_breakdown(input_wait=100.0))
    assert ceiling.speedup_if_input_free is None
    assert ceiling.missing is not None
