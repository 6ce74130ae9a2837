from __future__ import annotations

import pytest

from pipediag.measures.steps import differential_missing, measure_differential
from tests.recordings import make_block, make_recorded_loop, make_recording, make_window


def test_the_share_is_what_the_step_loses_on_a_repeated_batch() -> None:
    recording = make_recording()
    alone = measure_differential(recording, recording.loops[0])
    assert alone is not None
    assert (alone.differential.step_ms, alone.differential.steps) == (3.0, 20)
    assert alone.differential.input_share_percent == pytest.approx(70.0)
    assert alone.interval == pytest.approx((70.0, 70.0))


def test_a_slower_repeat_is_no_negative_share() -> None:
    windows = [make_window("baseline"), make_window("repeat", make_block(10, 11.0, None))]
    recording = make_recording(windows=windows)
    alone = measure_differential(recording, recording.loops[0])
    assert alone is not None
    assert alone.differential.input_share_percent == 0.0
    assert alone.interval == (0.0, 0.0)


def test_too_few_repeats_are_none_with_a_reason() -> None:
    windows = [make_window("baseline"), make_window("repeat", make_block(4, 3.0, None))]
    recording = make_recording(windows=windows)
    assert measure_differential(recording, recording.loops[0]) is None
    assert "4 steps only" in differential_missing(recording, recording.loops[0])


def test_a_distributed_loop_says_why() -> None:
    loop = make_recorded_loop(kind="distributed")
    assert "replicas" in differential_missing(make_recording(loops=[loop]), loop)


def test_five_steps_of_each_are_enough() -> None:
    def share(baseline: int, repeated: int) -> float | None:
        windows = [
            make_window("baseline", make_block(baseline)),
            make_window("repeat", make_block(repeated, 3.0, None)),
        ]
        recording = make_recording(windows=windows)
        alone = measure_differential(recording, recording.loops[0])
        return alone.differential.input_share_percent if alone else None

    assert share(5, 5) == pytest.approx(70.0)
    assert share(4, 5) is None
    assert share(5, 4) is None


def test_a_batch_that_was_never_repeated_says_why() -> None:
    recording = make_recording(windows=[make_window("baseline")])
    assert differential_missing(recording, recording.loops[0]) == (
        "The batch was not repeated: the loop ended first, or went on by itself."
    )


def test_what_kept_it_from_being_repeated_is_told() -> None:
    loop = make_recorded_loop(unrepeated="a copy of its variables takes too much memory")
    recording = make_recording(loops=[loop], windows=[make_window("baseline")])
    assert differential_missing(recording, loop) == (
        "The batch was not repeated: a copy of its variables takes too much memory."
    )
