"""The windows of a loop in turn, with hand-overs told by hand and no TensorFlow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipediag.capture.guard import Guard
from pipediag.capture.loops.loop import Consumer, Stage
from pipediag.capture.measuring import schedule as module
from pipediag.capture.measuring.sampling import PythonClock
from pipediag.capture.measuring.schedule import Diagnosis, Phase
from pipediag.session.messages import LoopMeasured
from pipediag.session.recording import RecordedOperation
from tests.capture.instruments import (
    FakeInstruments,
    FakeSampler,
    ToyRuntime,
    consumer_of,
    training_loop,
)
from tests.capture.measuring.test_sampling import make_registry
from tests.capture.measuring.test_windows import model


class Measured:
    """A loop that is diagnosed, one step after the other; a step takes ten nanoseconds."""

    def __init__(self, directory: Path) -> None:
        self.instruments = FakeInstruments(directory)
        self.pace = self.instruments.pace
        self.runtime = ToyRuntime()
        self.loop = training_loop()
        self.loop.runtime = self.runtime
        self.consumer = consumer_of(self.loop)
        self.now = 0
        self.diagnosis = Diagnosis(self.loop, self.instruments.all)

    @property
    def recording(self) -> Any:
        return self.instruments.recorder.recording

    def step(self, consumer: Consumer | None = None, *, continuous: bool = True) -> None:
        consumer = consumer or self.consumer
        consumer.batches += 1
        self.loop.record.steps += 1
        # A reading or a window's begin moves the start of the step to the real clock.
        start_ns = self.diagnosis._start_ns or self.now
        continuous = continuous and self.diagnosis._start_ns > 0
        self.now = start_ns + 10
        self.diagnosis.boundary(consumer, self.now, 1, continuous)
        if self.diagnosis.phase is Phase.REPEAT and consumer.stage is Stage.CATCHING:
            consumer.hand_out(Stage.REPEATED, "repeated")

    def steps(self, count: int) -> None:
        for _ in range(count):
            self.step()

    def next_epoch(self, consumer: Consumer | None = None) -> None:
        self.diagnosis.interrupted(self.consumer, exhausted=True)
        self.step(consumer, continuous=False)

    def until(self, phase: Phase) -> None:
        for _ in range(100):
            if self.diagnosis.phase is phase:
                return
            self.step()
        raise AssertionError(f"it never came to {phase}")


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measured:
    FakeSampler.running = 0
    monkeypatch.setattr(module, "StackSampler", FakeSampler)
    return Measured(tmp_path)


SHRINKS = [(10, 0), (0, 10), (0, 20)]
SHRINKS_ON = [(100 - 20 * number, 20 * number) for number in range(5)]


@pytest.mark.parametrize(("stocks", "warmups"), [(SHRINKS, 2), (SHRINKS_ON, 4)])
def test_steps_on_a_stock_of_ready_batches_are_warm_up_but_not_for_ever(
    measured: Measured, stocks: list[tuple[int, int]], warmups: int
) -> None:
    measured.runtime.models = [model(*stock) for stock in stocks]
    measured.until(Phase.STACKS)

    kinds = [window.kind for window in measured.recording.windows]
    assert kinds == ["warmup"] * warmups + ["baseline", "stacks"]
    assert measured.recording.windows[1].reason == "batches stocked up earlier were being used up"
    assert len(measured.recording.snapshots) == warmups + 1


def test_tracing_begins_the_warm_up_anew(measured: Measured) -> None:
    measured.pace.warmup = 3
    measured.steps(3)
    measured.diagnosis.traced(again=False)
    measured.steps(2)
    assert measured.diagnosis.phase is Phase.WARMUP
    measured.step()
    assert measured.diagnosis.phase is Phase.BASELINE


@pytest.mark.parametrize(("again", "steps"), [(False, 3), (True, 4)])
def test_what_a_new_models_first_call_takes_is_no_step(
    measured: Measured, again: bool, steps: int
) -> None:
    measured.pace.baseline = 20
    measured.until(Phase.BASELINE)
    before = measured.diagnosis._window.count
    measured.next_epoch()
    measured.diagnosis.traced(again=again)
    measured.steps(4)

    assert measured.diagnosis._window.count == before + steps


def test_a_baseline_whose_epochs_are_shorter_than_its_decisions_ends(measured: Measured) -> None:
    measured.pace.decide_every, measured.pace.baseline = 8, 20
    measured.until(Phase.BASELINE)
    spare = []
    for _ in range(8):
        measured.step(continuous=False)
        for _ in range(4):
            spare.append(measured.diagnosis.spare_steps)
            measured.step()
        measured.diagnosis.interrupted(measured.consumer, exhausted=True)

    assert measured.diagnosis.phase is not Phase.BASELINE
    baseline = measured.recording.windows[1]
    assert sum(len(block.durations_ns) for block in baseline.blocks) == 24
    assert spare[:8] == [7, 6, 5, 4, 3, 2, 1, 0]


@pytest.mark.parametrize(("every_ns", "saved"), [(0, [2, 2]), (10**18, [])])
def test_blocks_of_an_open_baseline_are_saved_every_few_seconds(
    measured: Measured, monkeypatch: pytest.MonkeyPatch, every_ns: int, saved: list[int]
) -> None:
    monkeypatch.setattr(module, "_SAVE_EVERY_NS", every_ns)
    measured.pace.block, measured.pace.baseline = 2, 100
    measured.until(Phase.BASELINE)
    measured.steps(5)

    recording = json.loads(measured.instruments.file.read_text(encoding="utf-8"))
    baselines = [window for window in recording["windows"] if window["kind"] == "baseline"]
    blocks = [block for window in baselines for block in window["blocks"]]
    assert measured.diagnosis.phase is Phase.BASELINE
    assert [len(block["durations_ns"]) for block in blocks] == saved


def test_a_step_that_something_came_between_is_none(measured: Measured) -> None:
    measured.pace.warmup = 5
    measured.steps(2)
    measured.next_epoch()
    measured.step()

    window = measured.diagnosis._window
    assert [len(block.durations_ns) for block in (*window.record.blocks, window.block)] == [1, 1]
    assert measured.loop.record.boundaries == 1


def test_steps_beside_the_scripts_own_profile_are_left_out(measured: Measured) -> None:
    measured.pace.warmup = 5
    measured.instruments.profiler.script_is_profiling = True
    measured.steps(6)

    assert measured.diagnosis._window.count == 0


@pytest.mark.parametrize("phase", [Phase.WARMUP, Phase.STACKS, Phase.PROFILE, Phase.REPEAT])
def test_a_loop_that_ends_early_leaves_nothing_running(measured: Measured, phase: Phase) -> None:
    measured.pace.stacks = measured.pace.profile = 5
    measured.until(phase)
    measured.step()
    measured.diagnosis.finish("the script finished")

    assert not measured.diagnosis.measuring
    assert (FakeSampler.running, measured.instruments.profiler.running) == (0, False)
    assert measured.consumer.stage is Stage.OWN
    assert measured.instruments.windows[-1] == (phase.name.lower(), False)
    assert measured.recording.windows[-1].reason == "the script finished"


def test_an_iterator_is_given_back_though_closing_the_window_fails(
    measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured.until(Phase.REPEAT)

    def fail(*_: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(measured.diagnosis._window, "close", fail)
    with pytest.raises(OSError, match="no space"):
        measured.diagnosis.finish("measuring failed")

    assert measured.consumer.stage is Stage.OWN
    assert not measured.diagnosis.measuring


def test_a_profile_that_the_script_takes_over_is_incomplete(measured: Measured) -> None:
    measured.pace.profile = 5
    measured.until(Phase.PROFILE)
    measured.instruments.profiler.running = False
    measured.step()

    assert measured.recording.windows[3].reason == "the script's own profiler took over"
    assert measured.diagnosis.phase is Phase.REPEAT


def test_a_training_that_can_not_be_kept_is_given_no_repeated_batch(measured: Measured) -> None:
    measured.runtime.no_models = None
    measured.instruments.state.lack = "it does not fit in memory twice"
    measured.until(Phase.DONE)

    assert measured.instruments.windows[-1] == ("profile", True)
    assert measured.recording.notes == [
        "The consumer was not measured on a repeated batch: it does not fit in memory twice."
    ]


@pytest.mark.parametrize(
    ("distributed", "to_the_end", "ends", "calls_python", "repeats"),
    [
        (False, False, True, False, True),
        (False, False, False, True, True),
        (False, False, False, False, False),
        (True, False, True, True, False),
        (False, True, True, True, False),
    ],
)
def test_a_batch_is_repeated_where_the_script_is_stopped_anyway_or_nothing_else_tells(
    measured: Measured,
    distributed: bool,
    to_the_end: bool,
    ends: bool,
    calls_python: bool,
    repeats: bool,
) -> None:
    measured.consumer.distributed = distributed
    measured.pace.settings.run_to_end = to_the_end
    measured.pace.ends = ends
    kind = "from_generator" if calls_python else "range"
    measured.recording.operations.append(RecordedOperation("op1", kind, "op1", None, None))
    measured.until(Phase.DONE)

    assert ("repeat" in dict(measured.instruments.windows)) is repeats


def test_a_new_epoch_repeats_a_batch_of_its_own(measured: Measured) -> None:
    measured.pace.repeat = 9
    measured.until(Phase.REPEAT)
    measured.step()
    next_epoch = consumer_of(measured.loop, ordinal=2)
    measured.next_epoch(next_epoch)

    assert measured.consumer.stage is Stage.OWN
    assert next_epoch.stage is Stage.REPEATED


def test_steps_until_the_awaited_end_of_an_epoch_belong_to_no_window(measured: Measured) -> None:
    measured.pace.waits = True
    measured.until(Phase.EPOCH_END)
    counts = [window.blocks for window in measured.recording.windows]
    measured.steps(5)
    assert measured.diagnosis.phase is Phase.EPOCH_END
    measured.next_epoch()
    measured.step()

    assert measured.diagnosis.phase is Phase.REPEAT
    assert [window.blocks for window in measured.recording.windows[:4]] == counts


def test_an_end_beside_the_profiler_is_not_the_awaited_one(measured: Measured) -> None:
    measured.pace.waits = True
    measured.until(Phase.PROFILE)
    measured.next_epoch()
    measured.until(Phase.EPOCH_END)
    measured.step()
    assert measured.diagnosis.phase is Phase.EPOCH_END

    measured.diagnosis.finish("the script ended")
    assert measured.instruments.windows[-1] == ("profile", True)


def test_the_first_call_of_an_epoch_is_left_out_where_the_epochs_are_long(
    measured: Measured,
) -> None:
    measured.pace.warmup = 100
    measured.consumer.hand_over = "call"
    measured.steps(12)
    before = measured.diagnosis._window.count
    measured.next_epoch()
    measured.steps(2)

    assert measured.diagnosis._window.count == before + 1


def test_the_profile_gives_way_to_trials_at_the_last_batch(
    measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def only_at_the_last_batch(_window: str, _count: int, _elapsed_ns: int, left: int) -> bool:
        return left == 0

    measured.pace.ends = False
    measured.until(Phase.PROFILE)
    monkeypatch.setattr(measured.pace, "enough", only_at_the_last_batch)
    measured.loop.record.planned_steps = measured.loop.record.steps + 3
    measured.steps(2)
    assert measured.diagnosis.phase is Phase.PROFILE
    measured.step()
    assert measured.diagnosis.phase is Phase.DONE
    assert measured.instruments.windows[-1] == ("profile", True)


@pytest.mark.parametrize(
    ("phase", "window"), [(Phase.STACKS, ("stacks", False)), (Phase.PROFILE, ("profile", False))]
)
def test_windows_that_would_not_get_their_steps_are_skipped_at_the_last_batch(
    measured: Measured, phase: Phase, window: tuple[str, bool]
) -> None:
    measured.pace.stacks = measured.pace.profile = 10
    measured.until(phase)
    measured.loop.record.planned_steps = measured.loop.record.steps + 3
    measured.steps(2)
    assert measured.diagnosis.phase is phase
    measured.step()

    assert measured.diagnosis.phase is Phase.DONE
    assert measured.instruments.windows[-1] == window
    assert measured.instruments.events[-1] is LoopMeasured
    assert (FakeSampler.running, measured.instruments.profiler.running) == (0, False)


def test_python_functions_are_measured_in_steps_of_the_baseline_alone(
    measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = make_registry()
    clock = PythonClock()
    clock.hook_into(registry, Guard(measured.recording.notes.append))
    monkeypatch.setattr(module, "PYTHON_CLOCK", clock)

    def call() -> int:
        return registry()("warp", "cpu", [1])

    measured.until(Phase.BASELINE)
    native = registry.__dict__["__call__"]
    while measured.diagnosis._skip:
        call()
        measured.step()
    call()
    measured.diagnosis.interrupted(measured.consumer, exhausted=True)
    call()
    measured.step(continuous=False)
    call()
    measured.until(Phase.STACKS)
    assert call() == 1

    (window,) = [one for one in measured.recording.windows if one.kind == "baseline"]
    (calls,) = window.python_calls
    assert (calls.token, calls.calls) == ("warp", 2)
    assert registry.__dict__["__call__"] is not native
