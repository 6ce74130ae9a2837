from __future__ import annotations

from typing import Any

import pytest

from pipediag.capture.loops.loop import HandOver
from pipediag.capture.runtime import IteratorModel
from pipediag.capture.watching.updates import EarlySteps
from tests.capture.instruments import consumer_of, training_loop
from tests.capture.runtimes import ToyRuntime

MS = 1_000_000


class Registry:
    """Remembers of which loops it described the model."""

    def __init__(self) -> None:
        self.described: list[Any] = []

    def describe_keras(self, loop: Any) -> None:
        self.described.append(loop)


class Updates:
    """A watch that has seen tracing."""

    tracing_ns = 300 * MS


def early_steps(registry: Any = None) -> EarlySteps:
    updates: Any = Updates()
    return EarlySteps(registry or Registry(), updates)


def first_fill_ns(
    gaps_us: list[int] | None,
    hand_over: HandOver = "call",
    known_ns: int | None = None,
) -> int | None:
    """The time of the first fill, after a first step of a second with 0.3 s of tracing."""
    loop, runtime = training_loop(fill_ns=known_ns), ToyRuntime()
    loop.runtime = runtime
    runtime.models = [] if gaps_us is None else [IteratorModel(gaps_us, [], 0)]
    consumer = consumer_of(loop)
    consumer.hand_over = hand_over
    steps = early_steps()
    steps.describe(consumer, 1000 * MS)
    steps.describe(consumer, 10 * MS)
    return consumer.loop.record.fill_ns


def test_the_first_step_tells_what_it_took_and_what_of_it_was_tracing() -> None:
    registry, loop = Registry(), training_loop()
    early_steps(registry).describe(consumer_of(loop), 1000 * MS)

    assert (loop.record.first_step_ns, loop.traced_in_first_step_ns) == (1000 * MS, 300 * MS)
    assert registry.described == [loop]


def test_the_model_is_described_once() -> None:
    registry, consumer = Registry(), consumer_of(training_loop(fill_ns=1))
    steps = early_steps(registry)
    for _ in range(2):
        steps.describe(consumer, MS)

    assert len(registry.described) == 1


def test_a_first_batch_that_is_asked_for_in_a_call_took_what_the_rest_did_not() -> None:
    assert first_fill_ns([100_000, 9_000_000]) == 600 * MS


def test_a_fill_takes_no_negative_time() -> None:
    assert first_fill_ns([5_000_000]) == 0


@pytest.mark.parametrize("gaps_us", [None, []])
def test_without_gap_times_the_fill_is_not_known(gaps_us: list[int] | None) -> None:
    assert first_fill_ns(gaps_us) is None


def test_a_first_batch_that_python_asked_for_was_timed_there() -> None:
    assert first_fill_ns([100_000], known_ns=7) == 7
    assert first_fill_ns([100_000], hand_over="next") is None
