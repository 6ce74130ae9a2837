"""Windows of a loop inside a tf.function, with a counter that is turned by hand."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.runtime import KeptBatch
from pipediag.capture.watching import in_graph as module
from pipediag.capture.watching.in_graph import InGraphMeasure
from pipediag.session.messages import LoopMeasured, WindowBegun
from tests.capture.instruments import FakeInstruments, training_loop
from tests.capture.measuring.test_looking import ToyTables
from tests.capture.runtimes import ToyRuntime

MS = 1_000_000


class Call:
    """A call that is running: its clock, its counter, and who reads that."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.instruments = FakeInstruments(directory)
        self.now, self.count = 1000 * MS, 0
        self.loop = training_loop(kind="in_graph")
        clock: Any = SimpleNamespace(monotonic_ns=lambda: self.now)
        monkeypatch.setattr(module, "time", clock)
        counter = SimpleNamespace(read=lambda: self.count)
        self.measure = InGraphMeasure(self.loop, counter, self.instruments.all)

    def runs(self, steps: int, ms: int = 200) -> None:
        """It makes so many steps in that time."""
        self.now += ms * MS
        self.count += steps

    def interval(self, steps: int, ms: int = 200) -> None:
        """It makes them, and the counter is read."""
        self.runs(steps, ms)
        self.measure.poll()

    @property
    def recording(self) -> Any:
        return self.instruments.recorder.recording

    def durations(self, window: int) -> list[list[int]]:
        return [block.durations_ns for block in self.recording.windows[window].blocks]

    def until_profile(self) -> None:
        for _ in range(50):
            if self.instruments.windows[-1][0] == "profile":
                return
            self.interval(4)
        raise AssertionError("it never came to be profiled")


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    return Call(tmp_path, monkeypatch)


def test_an_interval_gives_the_average_of_its_steps(call: Call) -> None:
    call.instruments.pace.warmup = 100
    call.measure.call_begins()
    call.interval(1, ms=5000)  # in which the pipeline starts up
    call.interval(4)
    call.interval(2)

    call.measure.call_ended()
    assert call.durations(0) == [[50 * MS], [100 * MS]]
    assert (call.loop.record.steps, call.loop.record.elapsed_ns) == (7, 400 * MS)


def test_a_call_that_ends_before_the_first_reading_is_one_interval(call: Call) -> None:
    call.instruments.pace.warmup = 100
    call.measure.call_begins()
    call.runs(10, ms=50)
    call.measure.call_ended()

    assert call.durations(0) == [[5 * MS]]
    assert call.loop.record.seams == 1


def test_what_lies_between_two_calls_is_no_step(call: Call) -> None:
    call.instruments.pace.warmup = 100
    for _ in range(2):
        call.measure.call_begins()
        call.runs(10, ms=50)
        call.measure.call_ended()
        call.runs(0, ms=9000)

    assert call.durations(0) == [[5 * MS], [5 * MS]]
    assert call.loop.record.elapsed_ns == 100 * MS


def test_a_reading_that_finds_no_step_waits_for_the_next(call: Call) -> None:
    call.instruments.pace.warmup = 100
    call.interval(1)
    call.interval(0)
    call.interval(4)

    assert call.durations(0) == [[100 * MS]]


def test_each_window_follows_the_one_before(call: Call) -> None:
    call.until_profile()
    assert call.instruments.profiler.running
    call.interval(4)
    assert not call.measure.done
    call.interval(4)

    assert call.measure.done
    assert call.instruments.windows == [("warmup", True), ("baseline", True), ("profile", True)]
    assert call.recording.windows[2].trace_directory == "trace"
    assert call.instruments.events == [WindowBegun, WindowBegun, LoopMeasured]
    assert "inside a tf.function" in call.recording.notes[0]


def test_a_profile_that_nobody_asked_for_is_not_begun(call: Call) -> None:
    call.instruments.pace.no_profile = "none was asked for"
    call.until_profile()

    assert not call.instruments.profiler.running
    assert call.measure.done
    assert call.recording.windows[2].reason == "none was asked for"


def test_a_baseline_has_five_intervals_however_many_steps_each_has(call: Call) -> None:
    call.until_profile()

    assert len(call.durations(1)) == 5


def test_an_interval_in_which_a_window_began_is_of_neither(call: Call) -> None:
    call.interval(1)
    call.interval(4)
    assert call.instruments.windows[-1][0] == "baseline"
    call.interval(4)
    assert call.durations(1) == []
    call.interval(4)

    assert call.durations(1) == [[50 * MS]]


def test_a_profiler_that_does_not_start_ends_the_measuring(call: Call) -> None:
    call.instruments.profiler.refuses = "the script profiles itself"
    for _ in range(20):
        call.interval(4)

    assert call.measure.done
    assert call.instruments.windows[-1] == ("profile", False)
    assert call.recording.windows[-1].reason == "the script profiles itself"


def test_a_profile_that_was_not_written_is_incomplete(call: Call) -> None:
    call.instruments.profiler.fails = "no space left"
    for _ in range(20):
        call.interval(4)

    assert call.instruments.windows[-1] == ("profile", False)
    assert call.recording.windows[-1].trace_directory is None


def test_a_loop_that_was_measured_still_counts(call: Call) -> None:
    for _ in range(20):
        call.interval(4)
    windows = call.instruments.windows
    call.interval(4)

    assert call.loop.record.steps == 84
    assert call.instruments.windows == windows


def test_a_loop_that_does_not_train_is_counted_and_not_timed(call: Call) -> None:
    call.loop.record.role = "other"
    call.measure.call_begins()
    call.runs(10)
    call.measure.call_ended()

    assert call.loop.record.steps == 10
    assert call.durations(0) == []


def test_a_script_that_ends_in_the_profile_leaves_no_profiler_running(call: Call) -> None:
    call.until_profile()
    call.measure.finish("the script finished")
    call.measure.finish("again")

    assert not call.instruments.profiler.running
    last = call.recording.windows[-1]
    assert (last.complete, last.reason) == (False, "the script finished")


def test_steps_of_the_warm_up_are_none_of_the_baseline(call: Call) -> None:
    call.instruments.pace.warmup, call.instruments.pace.baseline = 40, 40
    call.until_profile()

    assert len(call.durations(1)) == 10


def test_the_timeline_is_told_of_each_call(call: Call) -> None:
    for _ in range(2):
        call.measure.call_begins()
        call.measure.call_ended()

    name = call.loop.record.id
    assert call.instruments.timeline.told == [("called", name), ("ended", "")] * 2


class ToyKeeper:
    """Has kept the batch of the step that the counter is at."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.fails = False
        self.emptied = 0

    def empty(self) -> None:
        self.emptied += 1

    def read(self) -> KeptBatch | None:
        if self.fails:
            raise RuntimeError("gone")
        return (
            KeptBatch("here", self.call.count, [self.call.count % 10]) if self.call.count else None
        )


def keeping(call: Call) -> ToyKeeper:
    keeper = ToyKeeper(call)
    call.loop.runtime = ToyRuntime()
    call.loop.runtime.tables = ToyTables()
    call.measure.keepers.append(keeper)
    return keeper


def test_kept_batches_are_looked_at_behind_the_profile(call: Call) -> None:
    keeping(call)
    call.until_profile()
    for _ in range(4):
        call.interval(3)

    assert call.measure.done
    (table,) = call.recording.variables
    assert table.ids is not None
    assert len(table.ids.batches) == call.instruments.pace.look
    assert all(later - one == 3 for one, later in pairwise(table.ids.batches))
    assert [kind for kind, _ in call.instruments.windows] == ["warmup", "baseline", "profile"]


def test_the_last_batch_of_a_loop_that_is_over_is_looked_at_once(call: Call) -> None:
    keeping(call)
    over: Any = SimpleNamespace(read=lambda: KeptBatch("there", 2, [7]), empty=lambda: None)
    call.measure.keepers.append(over)
    call.until_profile()
    for _ in range(4):
        call.interval(3)

    (table,) = call.recording.variables
    assert table.ids is not None
    # Each batch that is kept has one id.
    assert table.ids.lookups == len(table.ids.batches) + 1


def test_the_last_batch_outlives_a_loop_that_ends_early(call: Call) -> None:
    keeping(call)
    call.interval(4)
    call.measure.finish("the script finished")

    (table,) = call.recording.variables
    assert table.ids is not None
    assert table.ids.batches == [4]


def test_a_batch_that_can_not_be_read_ends_the_look(call: Call) -> None:
    keeper = keeping(call)
    keeper.fails = True
    call.interval(4)
    call.measure.finish("the script finished")

    (table,) = call.recording.variables
    assert table.ids_missing == "The ids of a batch could not be computed: RuntimeError."


def test_no_batch_is_held_behind_the_look(call: Call) -> None:
    keeper = keeping(call)
    call.until_profile()
    for _ in range(4):
        call.interval(3)
    assert call.measure.done
    assert (keeper.emptied, call.measure.keepers) == (1, [])
    # The call's graph has kept another one since.
    call.measure.call_ended()

    assert keeper.emptied == 2


def test_why_no_batch_is_kept_is_said(call: Call) -> None:
    keeping(call)
    call.measure.keepers.clear()
    call.measure.keeps_none = "They are too large."
    call.interval(4)
    call.measure.finish("the script finished")

    assert call.recording.variables[0].ids_missing == "They are too large."
