"""Which loop trains and which is measured, when a script is stopped, and a look at evaluations."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.guard import StopScript
from pipediag.capture.loops.loop import Consumer, Interruption, Loop
from pipediag.capture.runtime import IteratorModel
from pipediag.capture.trying.trials import Trials
from pipediag.capture.watching import loop_choice as module
from pipediag.capture.watching.loop_choice import Evaluations, LoopChoice
from pipediag.capture.watching.step_parts import FedSteps
from pipediag.capture.watching.updates import UpdateWatch
from pipediag.session import messages
from pipediag.session.messages import RunSettings
from pipediag.session.recording import RecordedBlock, RecordedWindow
from pipediag.vocabulary import LoopRole
from tests.capture.instruments import FakeInstruments, ToyRuntime, consumer_of, training_loop
from tests.capture.watching.clocks import SECOND, FakeDiagnosis, Stage


def test_steps_on_a_repeated_batch_are_none_of_the_scripts(stage: Stage) -> None:
    consumer = stage.consumer()
    for _ in range(3):
        stage.step(consumer, trains=True)
    consumer.loop.diagnosis.repeats = True
    for _ in range(100):
        stage.step(consumer, trains=True)

    assert (consumer.loop.record.steps, consumer.loop.record.elapsed_ns) == (3, 20)
    consumer.loop.diagnosis.repeats = False
    stage.step(consumer, trains=True)
    assert consumer.loop.record.steps == 4


def test_a_loop_does_not_train_by_the_weights_that_are_put_back_before_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    training, validation = stage.consumer(), stage.consumer()
    for _ in range(3):
        stage.step(training, trains=True)
    instruments: Any = stage.clock._with
    monkeypatch.setattr(instruments, "state", SimpleNamespace(show=stage.updates.note))
    for _ in range(3):
        stage.step(validation)

    assert validation.loop.record.role == "other"
    assert not validation.loop.record.updates_variables


def test_a_pass_over_the_data_that_calls_no_model_is_no_validation(stage: Stage) -> None:
    training, counting = stage.consumer(), stage.consumer()
    counting.loop.record.only_reads = True
    stage.step(training, trains=True)
    for _ in range(9):
        stage.step(counting)
    stage.clock.script_over("the script finished")

    assert counting.loop.record.role == "reading"


def test_several_batches_asked_for_one_by_one_are_one_step(stage: Stage) -> None:
    consumer = stage.consumer("training", batches_per_call=4)
    for _ in range(9):
        stage.step(consumer, wait_ns=3)

    assert consumer.batches == 9
    assert consumer.loop.record.steps == 12
    assert consumer.loop.diagnosis.waits == [None, 12, 12]


def test_steps_are_counted_whose_arguments_can_not_be_read(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = stage.consumer("training")
    consumer.loop.record.batch_size = None

    class Settings:
        def __getattr__(self, name: str) -> Any:
            return {}[name]

    monkeypatch.setattr(ToyRuntime, "rows", lambda _, arguments: arguments[0].shape)
    monkeypatch.setattr(FedSteps, "begins", lambda *_, **__: consumer)
    for _ in range(4):
        stage.clock.fed_step(len, (Settings(),))

    assert (consumer.loop.record.steps, consumer.loop.record.batch_size) == (4, None)


@pytest.mark.parametrize(("behind", "longer_s"), [("training", 0), ("predict", 60)])
def test_later_loops_are_waited_for_until_a_time_and_evaluations_longer(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, behind: LoopRole, longer_s: int
) -> None:
    monkeypatch.setattr(FakeDiagnosis, "lasts", 2)
    training = stage.consumer("training")
    last = training if behind == "training" else stage.consumer(behind)
    training.loop.record.planned_steps = 4
    training.loop.record.kind = "keras"
    for _ in range(4):
        stage.step(training)
    assert stage.clock.choice.deadline_ns is not None
    if longer_s:
        stage.now = stage.clock.choice.deadline_ns + 1
        stage.step(last)
    stage.now = stage.clock.choice.deadline_ns + longer_s * SECOND
    with pytest.raises(StopScript):
        stage.step(last)


def test_a_later_loop_that_is_held_is_not_stopped_for_the_time_it_took_to_come(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeDiagnosis, "lasts", 2)
    held = stage.clock._held

    def hold(loop: Any, *_: Any, **__: Any) -> bool:
        held.loop = loop
        return True

    monkeypatch.setattr(held, "hold", hold)
    consumer = stage.consumer("training")
    stage.clock.choice.deadline_ns = stage.now
    for _ in range(3):
        stage.step(consumer)
    assert held.loop is consumer.loop


def test_two_threads_that_train_at_once_are_two_trainings_one_of_them_measured(
    stage: Stage,
) -> None:
    first, second = stage.consumer("training", "keras"), stage.consumer("training", "keras")
    other = ThreadPoolExecutor(1)
    first.loop.thread = threading.current_thread()
    second.loop.thread = other.submit(threading.current_thread).result()
    for _ in range(4):
        stage.step(first)
        other.submit(stage.step, second).result()

    assert first.loop.diagnosis.measuring
    assert (first.loop.diagnosis.boundaries, second.loop.diagnosis) == (0, None)
    assert (first.loop.record.steps, second.loop.record.steps) == (4, 4)
    assert (first.loop.record.beside, second.loop.record.beside) == ("loop1", "loop0")


def test_a_fit_that_ended_early_gives_way_to_the_next(stage: Stage) -> None:
    first, second = stage.consumer("training", "keras"), stage.consumer("training", "keras")
    for _ in range(3):
        stage.step(first)
    stage.step(second)

    assert first.loop.diagnosis.ended == "the loop ended before this window was full"
    assert second.loop.diagnosis.measuring


def test_a_thread_that_goes_on_while_the_script_ends_does_not_stop_it_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeDiagnosis, "lasts", 2)
    first, second = stage.consumer("training"), stage.consumer("training")
    for _ in range(2):
        stage.step(first)
    with pytest.raises(StopScript):
        stage.step(first)
    stage.clock.script_over("the script stopped")
    for _ in range(5):
        stage.step(second)

    assert not stage.left


def test_a_second_run_holds_one_loop_once_it_has_started_up_and_measures_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "Diagnosis", FakeDiagnosis)
    stage = Stage(tmp_path, hold_loop="loop1")
    rehearsal, fit = stage.consumer("training"), stage.consumer("training", batches_per_call=2)
    for _ in range(50):
        stage.step(rehearsal)
    for _ in range(4):
        stage.step(fit)
    with pytest.raises(StopScript):
        stage.step(fit)

    assert rehearsal.loop.diagnosis is fit.loop.diagnosis is None
    assert rehearsal.loop.record.steps == 50
    assert fit.loop.record.steps == 6  # the third step of two batches begins


def test_of_several_loops_the_one_at_the_wanted_line_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "Diagnosis", FakeDiagnosis)
    stage = Stage(tmp_path, loop=20)
    first, second = stage.consumer(), stage.consumer()
    first.loop.record.line, second.loop.record.line = 10, 20
    for consumer in (first, second):
        for _ in range(3):
            stage.step(consumer, trains=True)

    assert (first.loop.record.role, first.loop.diagnosis) == ("training", None)
    assert second.loop.diagnosis is not None


@pytest.mark.parametrize(("batches", "ended"), [(12, True), (2, False)])
def test_what_follows_a_break_is_no_step(stage: Stage, batches: int, ended: bool) -> None:
    """After `next(iter(dataset))` the step on its batch is still to come."""
    first, second = stage.consumer("training"), stage.consumer("training")
    for _ in range(batches):
        stage.step(first)
    first.left_ns = stage.now + 5
    stage.now += 1000
    stage.step(second)

    assert (first.loop.interruption.at_ns == first.left_ns) == ended


@pytest.mark.parametrize("trains", [True, False])
def test_lines_are_sampled_in_the_steps_of_a_loop_that_trains_nothing(
    stage: Stage, trains: bool
) -> None:
    consumer = stage.consumer()
    stage.step(consumer)
    assert not stage.timeline.lines
    for _ in range(2):
        stage.step(consumer, trains=trains)
    assert stage.timeline.lines is not trains
    stage.clock.epoch_ended()
    stage.step(consumer)
    assert stage.timeline.lines is not trains


class FakeHeld:
    def __init__(self, loop: Loop) -> None:
        self.loop: Loop | None = loop
        self.goes_on = True

    def boundary(self, consumer: Consumer, *_: Any) -> bool:
        if not self.goes_on:
            self.over(consumer.loop)
        return self.goes_on

    def over(self, loop: Loop) -> None:
        loop.interruption = Interruption(by_trials=True)
        self.loop = None


@pytest.mark.parametrize("interrupted", [False, True])
def test_the_timeline_is_told_that_trials_are_no_part_of_the_script(
    stage: Stage, interrupted: bool
) -> None:
    consumer = stage.consumer("training")
    stage.step(consumer)
    held: Any = FakeHeld(consumer.loop)
    stage.clock._held = held
    stage.step(consumer)
    stage.step(consumer)
    assert stage.timeline.told == [("handed", "loop0")]
    if interrupted:
        stage.clock.epoch_ended()
    held.over(consumer.loop)
    stage.step(consumer)

    between = [("ended", "")] if interrupted else []
    expected = [("handed", "loop0"), *between, ("aside", ""), ("handed", "loop0")]
    assert stage.timeline.told == expected


def test_trials_that_end_within_a_step_are_told_to_the_timeline_and_keep_the_iterator(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = stage.consumer("training")
    stage.step(consumer)
    held: Any = FakeHeld(consumer.loop)
    stage.clock._held = held
    monkeypatch.setattr(stage.clock.choice, "go_on_or_stop", lambda _: None)
    held.goes_on = False
    stage.step(consumer)

    assert stage.timeline.told == [("handed", "loop0"), ("aside", "")]
    assert stage.clock.choice.kept_alive == [consumer.iterator()]


MS = 1_000_000
STEP_NS = 5 * MS
GAPS = [900_000, 2_000, *[3_000] * 32]
"""In the first the step was traced."""


def models(count: int) -> list[IteratorModel]:
    return [IteratorModel(list(GAPS), [], 0) for _ in range(count)]


class Evaluated:
    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.evaluations = Evaluations(FakeInstruments(path).all)
        self.loop = training_loop(role="validation")
        self.runtime = ToyRuntime()
        self.loop.runtime = self.runtime
        self.now = 0
        monkeypatch.setattr(module.time, "monotonic_ns", lambda: self.now)

    def steps(self, count: int, consumer: Consumer | None = None) -> Consumer:
        consumer = consumer or consumer_of(self.loop)
        for _ in range(count):
            self.loop.record.last_ns = self.now
            self.evaluations.step(consumer, self.now)
            self.now += STEP_NS
        return consumer


@pytest.fixture
def evaluated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Evaluated:
    return Evaluated(tmp_path, monkeypatch)


def evaluation_of(loop: Loop) -> tuple[int, float, float | None] | None:
    seen = loop.record.evaluation
    return None if seen is None else (seen.steps, seen.step_ms, seen.consumer_ms)


@pytest.mark.parametrize(
    ("steps", "measured"), [(5, None), (6, 4), (9, 4), (10, 8), (33, 16), (34, 32), (300, 32)]
)
def test_after_its_first_steps_an_evaluation_is_looked_at(
    evaluated: Evaluated, steps: int, measured: int | None
) -> None:
    evaluated.runtime.models = models(4)
    evaluated.steps(steps)

    expected = None if measured is None else (measured, STEP_NS / 1e6, 3.0)
    assert evaluation_of(evaluated.loop) == expected


@pytest.mark.parametrize(("steps", "looked_at_again"), [(10, True), (33, True), (34, False)])
def test_a_short_evaluation_is_looked_at_once_more_as_its_first_pass_may_fill_a_cache(
    evaluated: Evaluated, steps: int, looked_at_again: bool
) -> None:
    for gap_us in (1_000, 5_000, 2_000):
        evaluated.runtime.models = [IteratorModel([gap_us] * 33, [], 0) for _ in range(4)]
        evaluated.steps(steps)

    seen = evaluation_of(evaluated.loop)
    assert seen[2] == (5.0 if looked_at_again else 1.0)


def test_what_pipediag_does_in_an_evaluation_is_no_part_of_its_steps(evaluated: Evaluated) -> None:
    """Of 32 steps of 5 ms with gaps of 3 ms, 32 ms are pairs of calls."""
    evaluated.runtime.models = models(4)
    consumer = evaluated.steps(10)
    evaluated.loop.record.set_aside_ns += 32 * MS
    evaluated.steps(90, consumer)

    assert evaluation_of(evaluated.loop) == (32, 4.0, pytest.approx(2.0))


def test_steps_of_two_evaluations_are_not_put_together(evaluated: Evaluated) -> None:
    evaluated.steps(5)
    evaluated.steps(5)

    assert evaluated.loop.record.evaluation is None
    evaluated.steps(20)
    assert evaluation_of(evaluated.loop) == (16, STEP_NS / 1e6, None)


class Ends:
    def __init__(self, directory: Path, *, run_to_end: bool = False) -> None:
        self.instruments = FakeInstruments(directory)
        self.instruments.pace.settings = RunSettings(
            "train.py", (), False, str(directory), run_to_end=run_to_end
        )
        self.left = False
        self.instruments.all.running_pipelines = lambda: ["handle"]
        self.kept = 0
        held = Trials(None, self.instruments.all)
        self.choice = LoopChoice(UpdateWatch(), self.instruments.all, held, self.leave, self.keep)

    def leave(self) -> None:
        self.left = True

    def keep(self) -> None:
        self.kept += 1

    def disturb(self) -> None:
        window = RecordedWindow("repeat", "loop1", 0, 1, complete=False)
        window.blocks.append(RecordedBlock())
        self.instruments.recorder.recording.windows.append(window)


@pytest.fixture
def ends(tmp_path: Path) -> Ends:
    return Ends(tmp_path)


def test_a_script_is_stopped_where_its_loop_would_take_long(ends: Ends) -> None:
    with pytest.raises(StopScript):
        ends.choice.go_on_or_stop(training_loop())

    assert ends.instruments.events == [messages.Stopping]
    assert (ends.choice.kept_alive, ends.kept, ends.left) == (["handle"], 1, False)
    with pytest.raises(StopScript):
        ends.choice.stop()
    assert ends.left, "a script that swallows its stop is left by force"


def test_a_short_rest_is_waited_for_and_the_wait_is_not_prolonged(ends: Ends) -> None:
    ends.instruments.pace.ends = False
    ends.choice.go_on_or_stop(training_loop())
    deadline_ns = ends.choice.deadline_ns
    ends.choice.go_on_or_stop(training_loop(2))

    assert deadline_ns is not None
    assert ends.choice.deadline_ns == deadline_ns


@pytest.mark.parametrize("run_to_end", [False, True])
def test_a_script_whose_model_was_disturbed_is_stopped_however_short_its_rest(
    tmp_path: Path, run_to_end: bool
) -> None:
    ends = Ends(tmp_path, run_to_end=run_to_end)
    ends.instruments.pace.ends = run_to_end
    ends.choice.stop_the_disturbed()
    ends.disturb()

    assert ends.choice.goes_on_after(training_loop()) is run_to_end
    for stops in (
        ends.choice.stop_the_disturbed,
        partial(ends.choice.go_on_or_stop, training_loop()),
    ):
        with nullcontext() if run_to_end else pytest.raises(StopScript):
            stops()
    assert ends.choice.deadline_ns is None
