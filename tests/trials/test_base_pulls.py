"""The pipeline as written, pulled without its consumer in the time that edits leave."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pipediag.trials.arms import Arm, ArmRefusedError, Block, ExecutorLostError
from pipediag.trials.outcome import TrialOutcome
from pipediag.vocabulary import BASE
from tests.trials.bench import FakeExecutor, make_finding, try_edits


@dataclass
class FailingPull(FakeExecutor):
    """Pulls raise this."""

    failure: Exception | None = None

    def pull(self, arm: Arm, seconds: float) -> Block:
        self.calls.append(("pull", arm.name))
        assert self.failure is not None
        raise self.failure


def tried(executor: FakeExecutor, budget_s: float = 60.0) -> TrialOutcome:
    return try_edits(executor, [make_finding("a"), make_finding("b")], budget_s)


def test_a_pull_that_fails_says_why_and_is_not_tried_again() -> None:
    executor = FailingPull({"a": 2.0}, failure=ArmRefusedError("It raised OutOfRange."))
    outcome = tried(executor)
    assert (outcome.pipeline_alone, outcome.pipeline_alone_missing) == (
        None,
        "It raised OutOfRange.",
    )
    assert executor.count("pull", BASE) == 1
    assert outcome.trials["a"].state == "confirmed"


def test_a_process_that_is_lost_in_a_pull_keeps_what_was_decided() -> None:
    executor = FailingPull({"a": 2.0}, failure=ExecutorLostError("It hangs."))
    outcome = try_edits(executor, [make_finding("a")])
    said = "The trials ended while trying the pipeline as written: It hangs."
    assert (outcome.pipeline_alone, outcome.pipeline_alone_missing) == (None, said)
    assert outcome.run.notes == [said]
    assert outcome.trials["a"].state == "confirmed"
    assert outcome.combined is not None


# Building and a first block of the base 1 s, the edit 0.5 s and five rounds of 1 s; a pull counts
# as a block of the base, 0.5 s.
@pytest.mark.parametrize(("budget_s", "pulls"), [(7.7, 0), (8.2, 3), (8.7, 4), (12.0, 5)])
def test_at_the_end_it_gets_all_the_time_that_is_left(budget_s: float, pulls: int) -> None:
    executor = FakeExecutor({"a": 2.0}, noise=0.0)
    # Without a spread of its own an edit that is twice as fast takes half a second as well.
    outcome = try_edits(executor, [make_finding("a")], budget_s)
    assert executor.count("pull", BASE) == pulls
    if pulls == 0:
        assert outcome.pipeline_alone_missing == "No time was left for it."


def test_a_process_lost_at_the_very_end_is_noted() -> None:
    executor = FailingPull({"a": 2.0}, noise=0.0, failure=ExecutorLostError("It hangs."))
    outcome = try_edits(executor, [make_finding("a")], 8.7)
    said = "The trials ended while trying the pipeline as written: It hangs."
    assert outcome.pipeline_alone_missing == said
    assert outcome.run.notes == [said]
