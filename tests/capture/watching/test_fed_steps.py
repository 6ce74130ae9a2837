"""Steps that Python feeds: where they begin, with calls told by hand and no TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.callsites import CallSite
from pipediag.capture.loops.loop import Consumer
from pipediag.capture.watching import conductor as module
from pipediag.capture.watching.steps import FedSteps
from tests.capture.runtimes import ToyRuntime
from tests.capture.watching.conductors import Stage


def fed(stage: Stage) -> Consumer:
    """A loop that Python feeds."""
    consumer = stage.consumer()
    consumer.hand_over = "fed"
    return consumer


def _finding(site: CallSite) -> Callable[[], CallSite]:
    return lambda: site


class Script:
    """Calls training steps from its lines; `loops` are the lines that became loops."""

    def __init__(self) -> None:
        self.loops: list[int] = []
        self.consumers: dict[int, Any] = {}
        registry: Any = SimpleNamespace(fed_consumer=self._found)
        self.steps = FedSteps(registry)

    def _found(self, site: CallSite, _runtime: Any, *, eager: bool) -> Any:
        self.loops.append(site.line)
        self.consumers[site.line] = SimpleNamespace(line=site.line, eager=eager)
        return self.consumers[site.line]

    def calls(self, *lines: int, last: Any = None) -> list[int | None]:
        """The line whose loop takes each call as the begin of a step; None where none does."""
        taken = []
        for line in lines:
            site = CallSite("train.py", line, "<module>", by_framework=False)
            found: Any = self.steps.begins(_finding(site), last, ToyRuntime(), eager=False)
            taken.append(found.line if found is not None else None)
        return taken


def test_a_single_call_is_no_loop() -> None:
    script = Script()
    assert script.calls(3) == [None]
    assert script.loops == []


def test_a_line_that_calls_again_is_a_loop() -> None:
    assert Script().calls(3, 3, 3) == [None, 3, 3]


def test_what_other_lines_train_within_a_step_is_a_part_of_it() -> None:
    """As the two halves of a discriminator's batch, and the generator behind them."""
    script = Script()
    assert script.calls(3, 4, 5, 3, 4, 5, 3) == [None, None, None, 3, None, None, 3]
    assert script.loops == [3]


def test_a_line_that_calls_again_and_again_in_between_takes_over() -> None:
    """A call before the loop, to build the model, begins none of its steps."""
    script = Script()
    assert script.calls(1, 7, 7, 7, 7) == [None, None, None, 7, 7]
    assert script.loops == [7]


def test_a_loop_that_is_come_back_to_is_the_same_one() -> None:
    script = Script()
    script.calls(3, 3, 3, 8, 8, 8)
    assert script.calls(3, 3, 3) == [None, 3, 3]
    assert script.loops == [3, 8]


def reads(*, trains: bool = False, alive: bool = True, hand_over: str = "next") -> Any:
    """An iterator that has handed over a batch."""
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


def test_an_iterator_that_was_only_looked_at_is_forgotten_at_last() -> None:
    script = Script()
    script.calls(*[3] * 300, last=reads())
    assert script.loops == [3]
    trained = Script()
    trained.calls(*[3] * 300, last=reads(trains=True))
    assert trained.loops == []


# As the conductor counts them.


@pytest.fixture
def begun(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Consumer:
    """A loop that is fed, whose steps begin when the stage's conductor hears of them."""
    consumer = fed(stage)
    monkeypatch.setattr(FedSteps, "begins", lambda *_, **__: consumer)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic_ns=lambda: stage.now))
    return consumer


def step(stage: Stage) -> None:
    stage.now += 10
    stage.conductor.fed_step(ToyRuntime())
    stage.updates.note()


def test_fed_steps_train_and_wait_for_nothing(stage: Stage, begun: Consumer) -> None:
    for _ in range(5):
        step(stage)
    record = begun.loop.record
    assert (record.role, record.steps, record.elapsed_ns) == ("training", 5, 40)
    assert set(begun.loop.diagnosis.waits) <= {0, None}


def test_a_prediction_in_each_step_is_a_part_of_it(stage: Stage, begun: Consumer) -> None:
    predict = stage.consumer(role="predict", kind="keras")
    for _ in range(6):
        step(stage)
        stage.step(predict)
        stage.conductor.epoch_ended()
    # Only from the second one on it is known that each step has one.
    record = begun.loop.record
    assert record.steps == 6
    assert record.elapsed_ns == 4 * 20
    assert predict.loop.record.steps == 6


def test_a_prediction_now_and_then_interrupts_the_steps(stage: Stage, begun: Consumer) -> None:
    predict = stage.consumer(role="predict", kind="keras")
    for number in range(6):
        step(stage)
        if number == 3:
            stage.step(predict)
    assert begun.loop.record.elapsed_ns == 4 * 10
    assert begun.loop.diagnosis.seams == 1
