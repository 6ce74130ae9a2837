"""What begins a step, and what belongs to it: nested calls, other iterators, fed batches."""

from __future__ import annotations

import weakref
from types import SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.callsites import CallSite
from pipediag.capture.loops.loop import Consumer
from pipediag.capture.watching import step_parts
from pipediag.capture.watching.step_parts import FedSteps
from pipediag.session.timeline import Span
from tests.capture.watching.clocks import Stage


def another(consumer: Consumer) -> Consumer:
    """One more iterator of the same loop, as of the second argument of `zip` or the next epoch."""
    return Consumer(consumer.loop, 2, consumer.iterator, element_spec=None, dataset=None)


def zipped(stage: Stage, consumers: list[Consumer], steps: int, waits: list[int]) -> None:
    for _ in range(steps):
        for consumer, wait_ns in zip(consumers, waits, strict=True):
            stage.step(consumer, wait_ns=wait_ns)
        stage.now += 100
        stage.updates.note()


def test_two_iterators_of_one_line_are_one_step(stage: Stage) -> None:
    one = stage.consumer()
    zipped(stage, [one, another(one)], 8, [3, 4])

    record = one.loop.record
    assert (record.role, record.steps, record.iterators) == ("training", 8, 0)
    # Of the first two steps it is not known yet that they are some.
    assert record.elapsed_ns == 6 * 120
    assert one.loop.diagnosis.waits[1:] == [7] * 6
    assert one.loop.record.untried is not None


def test_a_batch_that_is_asked_for_within_the_step_is_part_of_it(stage: Stage) -> None:
    other, one = stage.consumer(), stage.consumer()
    zipped(stage, [one, other], 8, [3, 4])

    assert (one.loop.record.role, one.loop.record.steps) == ("training", 8)
    assert one.loop.record.elapsed_ns == 6 * 120
    assert (other.loop.record.role, other.loop.record.steps) == ("other", 8)
    assert other.loop.record.part_of == one.loop.record.id
    assert not other.loop.record.updates_variables
    assert other.loop.diagnosis is None
    stage.clock.script_over("the script finished")
    assert other.loop.record.role == "other"


def test_an_iterator_that_is_made_anew_in_each_step_is_joined_too(stage: Stage) -> None:
    one, other = stage.consumer(), stage.consumer()
    for _ in range(8):
        stage.step(one)
        stage.step(another(other))
        stage.updates.note()

    assert (one.loop.record.role, one.loop.record.elapsed_ns) == ("training", 6 * 20)
    assert len(one.loop.joined) <= 8


def test_what_is_joined_is_known_in_the_next_epoch(stage: Stage) -> None:
    first, other = stage.consumer(), stage.consumer()
    zipped(stage, [first, other], 5, [3, 4])
    stage.clock.exhausted(first)
    validation = stage.consumer()
    for _ in range(5):
        stage.step(validation)
    stage.clock.exhausted(validation)
    second = another(first)
    zipped(stage, [second, other], 5, [3, 4])

    record = first.loop.record
    assert record.steps == 10
    assert record.elapsed_ns == (5 - 2 + 5 - 1) * 120
    assert validation.loop.record.elapsed_ns == 4 * 10
    assert len(record.epoch_boundaries) == 1


def test_a_zip_that_ends_with_its_second_iterator_has_no_step_more(stage: Stage) -> None:
    one = stage.consumer()
    two = another(one)
    zipped(stage, [one, two], 5, [3, 4])
    stage.step(one)
    stage.clock.exhausted(two)

    assert (one.loop.record.steps, one.loop.record.epoch_steps) == (5, 5)


def test_validations_between_epochs_are_no_part_of_a_step(stage: Stage) -> None:
    """Even of epochs that have one step each."""
    train, valid = stage.consumer(), stage.consumer()
    for _ in range(6):
        one, other = another(train), another(valid)
        stage.step(one, trains=True)
        stage.clock.exhausted(one)
        stage.step(other)
        stage.clock.exhausted(other)

    assert train.loop.record.elapsed_ns == valid.loop.record.elapsed_ns == 0
    assert valid.loop.record.part_of is None


def test_a_batch_now_and_then_interrupts_the_steps(stage: Stage) -> None:
    train, valid = stage.consumer(), stage.consumer()
    for number in range(40):
        stage.step(train, trains=True)
        if number % 10 == 9:
            stage.step(valid)

    assert train.loop.record.elapsed_ns == 36 * 10
    assert train.loop.joined == []


def test_the_wait_is_not_told_where_a_function_asks_by_itself(stage: Stage) -> None:
    one, other = stage.consumer(), stage.consumer()
    for _ in range(6):
        stage.step(one)
        stage.clock.call_begins(other, "iterator")
        stage.updates.note()

    assert one.loop.record.role == "training"
    assert one.loop.diagnosis.waits[-1] is None


def test_an_iterator_that_was_made_again_elsewhere_takes_the_place_of_the_former(
    stage: Stage,
) -> None:
    """As in `except StopIteration: other = iter(dataset)`."""
    one, other = stage.consumer(), stage.consumer()
    zipped(stage, [one, other], 4, [3, 4])
    other.iterator = weakref.ref(type("Gone", (), {})())
    made_again = stage.consumer()
    zipped(stage, [one, made_again], 4, [3, 4])

    assert one.loop.joined == [made_again]
    assert made_again.loop.record.part_of == one.loop.record.id
    assert one.loop.record.steps == 8


@pytest.fixture
def stage(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setattr(step_parts, "time", SimpleNamespace(monotonic_ns=lambda: stage.now))
    return stage


def call(stage: Stage, consumer: Consumer, line: int = 7) -> None:
    began = stage.now
    stage.step(consumer)
    stage.clock.exhausted(consumer)
    stage.clock.epoch_ended()
    stage.clock.evaluated(
        Span(1, "evaluation", began, stage.now, consumer.loop.record.role, "gan.py", line)
    )


def test_a_prediction_in_each_step_is_a_part_of_it(stage: Stage) -> None:
    real, predict = stage.consumer(), stage.consumer("predict", "keras")
    for _ in range(6):
        stage.step(real)
        call(stage, predict)
        stage.updates.note()

    record = real.loop.record
    assert (record.role, record.steps, record.elapsed_ns) == ("training", 6, 4 * 20)
    assert not predict.loop.record.updates_variables
    (nested,) = record.nested
    assert (nested.what, nested.line, nested.count, nested.elapsed_ns) == ("predict", 7, 5, 50)


def test_an_evaluation_after_each_epoch_is_in_none_of_its_steps(stage: Stage) -> None:
    real, predict = stage.consumer(), stage.consumer("predict", "keras")
    evaluate = stage.consumer("evaluate", "keras")
    for _ in range(4):
        for _ in range(3):
            stage.step(real, trains=True)
            call(stage, predict)
        stage.clock.exhausted(real)
        call(stage, evaluate)
        call(stage, predict)  # on samples to be looked at

    record = real.loop.record
    assert record.elapsed_ns == (1 + 3 * 2) * 20  # the first prediction was not expected
    assert evaluate.loop.record.role == "evaluate"
    assert {one.what for one in record.nested} == {"predict"}


class Script:
    """Calls training steps from its lines; `loops` are the lines that became loops."""

    def __init__(self) -> None:
        self.loops: list[int] = []
        self.consumers: dict[int, Any] = {}
        self.registry: Any = SimpleNamespace(fed_consumer=self._found)
        self.steps = FedSteps()

    def _found(self, site: CallSite, *, eager: bool) -> Any:
        self.loops.append(site.line)
        self.consumers[site.line] = SimpleNamespace(line=site.line, eager=eager)
        return self.consumers[site.line]

    def calls(self, *lines: int, last: Any = None) -> list[int | None]:
        """The line whose loop takes each call as the begin of a step; None where none does."""
        taken = []
        for line in lines:
            site = CallSite("train.py", line, "<module>", by_framework=False)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(step_parts, "call_site", lambda site=site: site)
                found: Any = self.steps.begins(self.registry, last, eager=False)
            taken.append(found.line if found is not None else None)
        return taken


def test_what_other_lines_train_within_a_step_is_a_part_of_it() -> None:
    """As the two halves of a discriminator's batch, and the generator behind them."""
    script = Script()
    assert script.calls(3, 4, 5, 3, 4, 5, 3) == [None, None, None, 3, None, None, 3]
    assert script.loops == [3]
    script.calls(8, 8, 8)
    assert script.calls(3, 3, 3) == [None, 3, 3], "a loop that is come back to is the same one"
    assert script.loops == [3, 8]


def reads(*, trains: bool = False, alive: bool = True, hand_over: str = "next") -> Any:
    return SimpleNamespace(
        hand_over=hand_over,
        iterator=lambda: object() if alive else None,
        loop=SimpleNamespace(trains=trains),
    )


@pytest.mark.parametrize(
    ("last", "is_loop"),
    [
        (None, True),
        (reads(), False),
        (reads(trains=True), False),
        (reads(alive=False, trains=True), True),
        (reads(hand_over="fed"), True),
    ],
)
def test_calls_on_batches_of_an_iterator_are_its_loops(last: Any, is_loop: bool) -> None:
    script = Script()
    script.calls(3, 3, 3, last=last)
    assert bool(script.loops) == is_loop
