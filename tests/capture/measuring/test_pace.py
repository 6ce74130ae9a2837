from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipediag.capture.measuring import diagnosis as module
from pipediag.capture.measuring.diagnosis import Diagnosis, Phase
from pipediag.capture.measuring.pace import CacheFill, Pace
from pipediag.capture.recorder import Recorder
from pipediag.session.recording import RecordedOperation
from pipediag.session.settings import RunSettings, WantedLoop
from tests.capture.instruments import FakeInstruments, FakeSampler, consumer_of, training_loop
from tests.recordings import make_recorded_loop

MS = 1_000_000
SECOND = 1000 * MS


def pace(**settings: float) -> Pace:
    return Pace(RunSettings("train.py", (), False, "out", **settings))  # type: ignore[arg-type]


def test_warm_up_ends_when_two_chunks_agree() -> None:
    assert pace().warmed_up([50 * MS] * 10, 10, SECOND, None) == (True, True)


def test_warm_up_goes_on_while_steps_get_faster() -> None:
    falling = [200 * MS] * 4 + [100 * MS] * 4

    assert pace().warmed_up(falling, 8, 2 * SECOND, None) == (False, False)


def test_short_steps_need_a_quarter_of_a_second_a_chunk() -> None:
    assert pace().warmed_up([MS] * 400, 400, SECOND, None) == (False, False)
    assert pace().warmed_up([MS] * 500, 500, SECOND, None) == (True, True)


def test_long_steps_need_four_a_chunk() -> None:
    assert pace().warmed_up([400 * MS] * 7, 7, 3 * SECOND, None) == (False, False)
    assert pace().warmed_up([400 * MS] * 8, 8, 4 * SECOND, None) == (True, True)


@pytest.mark.parametrize(
    ("since_trace", "elapsed_s", "over"),
    [(2, 6, False), (3, 5, False), (3, 6, True), (0, 9, True), (1, 21, True)],
)
def test_warm_up_does_not_wait_for_ever(since_trace: int, elapsed_s: int, over: bool) -> None:
    durations = [(number + 1) * SECOND for number in range(since_trace)]

    assert pace().warmed_up(durations, since_trace, elapsed_s * SECOND, None) == (over, False)


def test_a_short_training_gets_a_short_warm_up() -> None:
    assert pace().warmed_up([9 * MS, 5 * MS, 4 * MS], 3, 20 * MS, 40) == (True, False)
    assert pace().warmed_up([9 * MS, 5 * MS, 4 * MS], 3, 20 * MS, 400) == (False, False)


def test_the_users_warm_up_counts() -> None:
    chosen = pace(warmup=3)

    assert chosen.warmed_up([MS] * 2, 2, 60 * SECOND, None) == (False, False)
    assert chosen.warmed_up([MS] * 3, 3, 3 * MS, None) == (True, False)


@pytest.mark.parametrize(
    ("count", "elapsed_s", "remaining", "done"),
    [
        (29, 5, None, False),
        (30, 1, None, False),
        (30, 2, None, True),
        (10, 6, None, True),
        (5, 20, None, True),
        (4, 60, None, False),
        (10, 1, 8, True),
        (10, 1, 11, False),
        (9, 1, 8, False),
        (5, 6, 5, True),
        (5, 5, 5, False),
        (5, 6, 6, False),
        (4, 6, 2, False),
    ],
)
def test_baseline(count: int, elapsed_s: int, remaining: int | None, done: bool) -> None:
    assert pace().baseline_done(count, elapsed_s * SECOND, remaining) is done


@pytest.mark.parametrize(
    ("budget_s", "count", "elapsed_s", "done"),
    [
        (0, 10, 6, True),
        (60, 10, 6, False),  # steps of 0.6 s: ten more take six seconds of sixty
        (60, 19, 14, False),
        (60, 20, 12, True),
        (60, 10, 15, True),
        (10, 10, 6, True),
        (60, 5, 20, True),
        (3600, 10, 59, False),
        (3600, 5, 60, True),
    ],
)
def test_where_the_budget_allows_enough_steps_are_measured(
    budget_s: float, count: int, elapsed_s: int, done: bool
) -> None:
    assert pace(budget_s=budget_s).baseline_done(count, elapsed_s * SECOND, None) is done


def test_the_users_number_of_steps_counts() -> None:
    assert not pace(steps=100).baseline_done(99, 60 * SECOND, None)
    assert not pace(steps=100).baseline_done(99, 60 * SECOND, 100)
    assert pace(steps=100).baseline_done(100, 0, None)


def test_more_steps_than_the_script_has_are_not_waited_for() -> None:
    assert pace(steps=100).baseline_done(20, 0, 20)
    assert not pace(steps=100).baseline_done(9, 0, 1)


def test_a_block_ends_before_gap_times_are_lost() -> None:
    assert not pace().block_done(93, 0, 1)
    assert pace().block_done(94, 0, 1)
    assert pace().block_done(22, 0, 4)
    assert pace().block_done(5, SECOND // 4, 1)
    assert not pace().block_done(4, SECOND, 1)


def test_short_steps_skip_two_after_a_reading() -> None:
    assert pace().steps_to_skip(49 * MS) == 2
    assert pace().steps_to_skip(50 * MS) == 1


def test_tiny_steps_are_asked_about_seldom() -> None:
    assert pace().steps_between_decisions(4_999_999) == 8
    assert pace().steps_between_decisions(5_000_000) == 1
    assert pace(steps=20).steps_between_decisions(1_000_000) == 1


def test_stacks() -> None:
    assert not pace().stacks_done(4, SECOND, None)
    assert pace().stacks_done(5, SECOND, None)
    assert pace().stacks_done(1, 3 * SECOND, None)


def test_stacks_leave_the_last_steps_to_the_profile() -> None:
    assert pace().stacks_done(2, 0, 39)
    assert not pace().stacks_done(1, 0, 39)
    assert not pace().stacks_done(2, 0, 40)


@pytest.mark.parametrize(
    ("count", "elapsed_s", "done"),
    [(20, 0, True), (19, 1, False), (5, 2, True), (4, 9, False), (2, 10, True), (1, 60, False)],
)
def test_profile(count: int, elapsed_s: int, done: bool) -> None:
    assert pace().profile_done(count, elapsed_s * SECOND) is done


def test_at_the_last_batch_fewer_steps_do_for_a_profile() -> None:
    assert pace().profile_done(5, 0, at_last_batch=True)
    assert not pace().profile_done(4, 0, at_last_batch=True)


def test_no_profile_is_taken_where_none_is_asked_for() -> None:
    assert pace(profile_steps=0).no_profile == "none was asked for"
    assert pace().no_profile is pace(profile_steps=1).no_profile is None


@pytest.mark.parametrize(
    ("count", "elapsed_s", "done"),
    [(20, 0, False), (20, 1, True), (5, 3, True), (4, 5, False), (0, 6, True)],
)
def test_repeat(count: int, elapsed_s: int, done: bool) -> None:
    assert pace().repeat_done(count, elapsed_s * SECOND) is done


@pytest.mark.parametrize(("seconds", "expected"), [(5.0, True), (5.1, False), (None, False)])
def test_only_a_short_loop_may_be_a_rehearsal(seconds: float | None, expected: bool) -> None:
    assert pace().may_be_a_rehearsal(seconds) is expected


def test_a_second_run_ends_with_its_one_loop_however_short_that_is() -> None:
    second = Pace(RunSettings("train.py", (), False, "out", hold_loop="loop1"))

    assert second.ends_here(0.1, followed=True)
    assert not pace().ends_here(0.1, followed=True)


@pytest.mark.parametrize(
    ("seconds", "followed", "wanted", "ends"),
    [
        (4.0, True, None, False),
        (6.0, True, None, True),
        (4.0, False, None, True),  # nothing to be seen behind it, and trials need it held
        (None, True, None, True),
        (None, False, "longest", False),
        (None, True, "longest", False),
        (4.0, False, "longest", False),  # what other files do is not known
        (6.0, False, "longest", True),
        (6.0, True, "longest", True),
    ],
)
def test_a_loop_ends_the_run_where_nothing_is_gained_by_waiting(
    seconds: float | None, followed: bool, wanted: WantedLoop | None, ends: bool
) -> None:
    settings = RunSettings("train.py", (), False, "out", loop=wanted)
    assert Pace(settings).ends_here(seconds, followed=followed) is ends


OPERATIONS = [
    RecordedOperation("source", "from_tensor_slices", "source", "/home/me/train.py", 3),
    RecordedOperation("cache", "cache", "cache", "/home/me/train.py", 5, parent_ids=["source"]),
    RecordedOperation("batch", "batch", "batch", "/home/me/train.py", 6, parent_ids=["cache"]),
]


def fill(directory: Path, epochs: int | None = 5, root: str = "batch", **record: Any) -> CacheFill:
    recorder = Recorder(directory / "recording.json")
    recorder.recording.operations = list(OPERATIONS)
    keras = make_recorded_loop().keras
    assert keras is not None
    keras.epochs = epochs
    loop = training_loop(**{"root_op_id": root, "keras": keras, **record})
    return CacheFill(loop, recorder)


def test_steps_wait_while_the_first_of_several_epochs_fills_a_cache(tmp_path: Path) -> None:
    assert fill(tmp_path).awaited(0)


@pytest.mark.parametrize(
    "there",
    [
        {"epochs": 1},
        {"epochs": None},
        {"root": "source"},
        {"root": None},
        {"keras": None},
        {"keras": None, "planned_rounds": 1},
        {"seams": 1},
    ],
)
def test_they_wait_for_nothing_else(there: dict[str, Any], tmp_path: Path) -> None:
    assert not fill(tmp_path, **there).awaited(0)


def test_a_snapshot_is_a_cache_too(tmp_path: Path) -> None:
    filling = fill(tmp_path)
    filling._recorder.recording.operations[1] = replace(OPERATIONS[1], kind="snapshot")
    assert filling.awaited(0)


def test_a_long_epoch_is_measured_although_it_is_the_first(tmp_path: Path) -> None:
    filling = fill(tmp_path)

    assert filling.awaited(30 * SECOND - 1)
    assert not filling.awaited(30 * SECOND)


def test_steps_that_filled_it_are_not_taken_for_those_that_follow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "StackSampler", FakeSampler)
    instruments = FakeInstruments(tmp_path)
    instruments.recorder.recording.operations = list(OPERATIONS)
    keras = make_recorded_loop().keras
    assert keras is not None
    keras.epochs = 5
    loop = training_loop(root_op_id="batch", keras=keras)
    diagnosis, consumer = Diagnosis(loop, instruments.all), consumer_of(loop)

    def steps(count: int, *, first: bool = False) -> None:
        for number in range(count):
            diagnosis.boundary(consumer, 1 + number, 1, continuous=not (first and number == 0))

    steps(50, first=True)
    assert diagnosis.phase is Phase.WARMUP
    diagnosis.seam(consumer, exhausted=True)
    steps(2, first=True)
    assert diagnosis.phase is Phase.WARMUP
    assert len(diagnosis._since_trace) == 0
    steps(2)
    assert diagnosis.phase is Phase.BASELINE
