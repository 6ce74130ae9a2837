from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.measuring import schedule as module
from pipediag.capture.measuring.pace import Pace, fills_a_cache
from pipediag.capture.measuring.schedule import Diagnosis, Phase
from pipediag.capture.recorder import Recorder
from pipediag.session.messages import RunSettings
from pipediag.session.recorded_loops import KerasUse
from pipediag.session.recording import RecordedOperation
from tests.capture.instruments import FakeInstruments, FakeSampler, consumer_of, training_loop
from tests.recordings import make_recorded_loop

MS = 1_000_000
SECOND = 1000 * MS


def pace(**settings: Any) -> Pace:
    return Pace(RunSettings("train.py", (), False, "out", **settings))


def keras_of(epochs: int | None) -> KerasUse:
    return replace(make_recorded_loop().keras, epochs=epochs)


@pytest.mark.parametrize(
    ("durations_ms", "elapsed_s", "remaining", "over", "settled"),
    [
        ([50] * 10, 1, None, True, True),
        ([200] * 4 + [100] * 4, 2, None, False, False),  # steps get faster
        # Two chunks that agree: of a quarter of a second, and of four steps.
        ([1] * 400, 1, None, False, False),
        ([1] * 500, 1, None, True, True),
        ([400] * 7, 3, None, False, False),
        ([400] * 8, 4, None, True, True),
        # It does not wait for ever.
        ([1000, 2000, 3000], 5, None, False, False),
        ([1000, 2000, 3000], 6, None, True, False),
        ([], 9, None, True, False),
        # A short training gets a short one.
        ([9, 5, 4], 0.02, 40, True, False),
        ([9, 5, 4], 0.02, 400, False, False),
    ],
)
def test_warm_up(
    durations_ms: list[int], elapsed_s: float, remaining: int | None, over: bool, settled: bool
) -> None:
    durations = [ms * MS for ms in durations_ms]
    elapsed_ns = int(elapsed_s * SECOND)
    assert pace().warmed_up(durations, elapsed_ns, remaining) == (over, settled)


@pytest.mark.parametrize(
    ("settings", "count", "elapsed_s", "remaining", "done"),
    [
        ({}, 29, 5, None, False),
        ({}, 30, 1, None, False),
        ({}, 30, 2, None, True),
        ({}, 10, 6, None, True),
        ({}, 5, 20, None, True),
        ({}, 4, 60, None, False),
        ({}, 5, 6, 5, True),
        ({}, 4, 6, 2, False),
        # A quarter of what is given for trials allows more steps.
        ({"budget_s": 60}, 10, 6, None, False),
        ({"budget_s": 60}, 20, 12, None, True),
        ({"budget_s": 60}, 10, 15, None, True),
        ({"budget_s": 3600}, 5, 60, None, True),
        # The user's number of steps counts, but no more than the script has.
        ({"steps": 100}, 99, 60, None, False),
        ({"steps": 100}, 100, 0, None, True),
        ({"steps": 100}, 20, 0, 20, True),
    ],
)
def test_baseline(
    settings: dict[str, Any], count: int, elapsed_s: int, remaining: int | None, done: bool
) -> None:
    assert pace(**settings).baseline_done(count, elapsed_s * SECOND, remaining) is done


@pytest.mark.parametrize(
    ("count", "elapsed_ns", "batches_per_call", "done"),
    [
        (93, 0, 1, False),  # the next one is the last whose gap time tf.data keeps
        (94, 0, 1, True),
        (5, SECOND // 4, 1, True),
        (4, SECOND, 1, False),
    ],
)
def test_a_block_ends_before_gap_times_are_lost(
    count: int, elapsed_ns: int, batches_per_call: int, done: bool
) -> None:
    assert pace().block_done(count, elapsed_ns, batches_per_call) is done


@pytest.mark.parametrize(
    ("window", "profile_steps", "count", "elapsed_s", "left", "done"),
    [
        ("stacks", None, 5, 1, None, True),
        ("stacks", None, 1, 3, None, True),
        ("stacks", None, 2, 0, 39, True),
        ("stacks", None, 2, 0, 40, False),
        ("profile", None, 20, 0, None, True),
        ("profile", None, 19, 1, None, False),
        ("profile", None, 5, 2, None, True),
        ("profile", None, 2, 10, None, True),
        ("profile", None, 5, 0, 0, True),
        ("profile", None, 4, 0, 0, False),
        ("profile", 1, 1, 0, None, True),
        ("profile", 50, 49, 60, None, False),
        ("repeat", None, 20, 0, 0, False),
        ("repeat", None, 20, 1, 0, True),
        ("repeat", None, 0, 6, 0, True),
    ],
)
def test_when_a_window_has_enough_steps(
    window: str, profile_steps: int | None, count: int, elapsed_s: int, left: int | None, done: bool
) -> None:
    chosen = pace(profile_steps=profile_steps)
    assert chosen.enough(window, count, elapsed_s * SECOND, left) is done


@pytest.mark.parametrize(("seconds", "expected"), [(5.0, True), (5.1, False), (None, False)])
def test_only_a_short_loop_may_be_a_rehearsal(seconds: float | None, expected: bool) -> None:
    assert pace().may_be_a_rehearsal(seconds) is expected


@pytest.mark.parametrize(
    ("seconds", "kind", "settings", "ends"),
    [
        (4.0, "keras", {}, False),
        (6.0, "keras", {}, True),
        (4.0, "eager", {}, True),  # trials need it held
        (None, "keras", {}, True),
        (0.1, "keras", {"hold_loop": "loop1"}, True),  # a second run ends with its one loop
    ],
)
def test_a_loop_ends_the_run_where_nothing_is_gained_by_waiting(
    seconds: float | None, kind: str, settings: dict[str, Any], ends: bool
) -> None:
    loop: Any = SimpleNamespace(seconds_left=seconds, record=SimpleNamespace(kind=kind))
    assert pace(**settings).ends_here(loop) is ends


@pytest.mark.parametrize(
    ("steps", "record", "settings", "waits"),
    [
        (70, {}, {}, True),  # 30 steps of half a second
        (170, {}, {}, True),  # in the second of five epochs
        (100, {}, {}, True),  # behind the first one's last step, and its end is to come
        (470, {}, {}, False),  # in the last one
        (170, {"saw_undisturbed_end": True}, {}, False),
        (70, {}, {"budget_s": 0}, False),
        (70, {"planned_steps": None}, {}, True),
        (70, {}, {"run_to_end": True}, False),
        (70, {}, {"hold_loop": "loop1"}, False),
    ],
)
def test_an_epochs_end_is_awaited_where_it_is_near_and_none_was_seen(
    steps: int, record: dict[str, Any], settings: dict[str, Any], waits: bool
) -> None:
    record = {"planned_steps": 500, "keras": keras_of(5), "kind": "keras", **record}
    seen = record.pop("saw_undisturbed_end", False)
    loop = training_loop(**record)
    loop.saw_undisturbed_end = seen
    loop.record.steps, loop.record.elapsed_ns = steps, steps * SECOND // 2
    assert pace(**{"budget_s": 90, **settings}).waits_for_epoch_end(loop, 10 * SECOND) is waits


OPERATIONS = [
    RecordedOperation("source", "from_tensor_slices", "source", "/home/me/train.py", 3),
    RecordedOperation("cache", "cache", "cache", "/home/me/train.py", 5, parent_ids=["source"]),
    RecordedOperation("batch", "batch", "batch", "/home/me/train.py", 6, parent_ids=["cache"]),
]


@pytest.mark.parametrize(
    ("there", "elapsed_ns", "awaited"),
    [
        ({}, 0, True),
        ({"epochs": 1}, 0, False),
        ({"root_op_id": "source"}, 0, False),
        ({"keras": None}, 0, False),
        ({"boundaries": 1}, 0, False),
        # A long epoch is measured although it is the first.
        ({}, 30 * SECOND - 1, True),
        ({}, 30 * SECOND, False),
    ],
)
def test_steps_wait_while_the_first_of_several_epochs_fills_a_cache(
    there: dict[str, Any], elapsed_ns: int, awaited: bool, tmp_path: Path
) -> None:
    there = {**there}
    recorder = Recorder(tmp_path / "recording.json")
    recorder.recording.operations = list(OPERATIONS)
    keras = keras_of(there.pop("epochs", 5))
    loop = training_loop(**{"root_op_id": "batch", "keras": keras, **there})
    assert fills_a_cache(loop, recorder, elapsed_ns) is awaited


def test_steps_that_filled_it_are_not_taken_for_those_that_follow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "StackSampler", FakeSampler)
    instruments = FakeInstruments(tmp_path)
    instruments.recorder.recording.operations = list(OPERATIONS)
    loop = training_loop(root_op_id="batch", keras=keras_of(5))
    diagnosis, consumer = Diagnosis(loop, instruments.all), consumer_of(loop)

    def steps(count: int, *, first: bool = False) -> None:
        for number in range(count):
            diagnosis.boundary(consumer, 1 + number, 1, continuous=not (first and number == 0))

    steps(50, first=True)
    assert diagnosis.phase is Phase.WARMUP
    diagnosis.interrupted(consumer, exhausted=True)
    steps(2, first=True)
    assert diagnosis.phase is Phase.WARMUP
    assert len(diagnosis._since_trace) == 0
    steps(2)
    assert diagnosis.phase is Phase.BASELINE
