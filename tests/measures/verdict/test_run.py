"""The verdict where another part of the run weighs more than its steps."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.measures.verdict.decision import decide
from pipediag.session.model import Session
from pipediag.session.run import Script
from tests import factories
from tests.records import make_operation, make_pipeline, make_steps


def decided(session: Session) -> dict[str, object]:
    return decide(session).model_dump()


def test_the_run_is_said_first_and_the_step_among_the_reasons() -> None:
    verdict = decide(factories.make_session(run=factories.make_run()))

    assert verdict.summary == (
        "50 % of the run (10 s of 20 s) lies between the epochs, in callbacks and other code: the "
        "callback Save at train.py:14, 10 times. Its steps are input-bound."
    )
    assert verdict.reasons[0].startswith("Of a step: Highly input-bound: 70 % of each step")
    assert (verdict.where, verdict.where_percent) == ("epoch_end", 50.0)
    assert (verdict.where_line, verdict.severity) == (14, "high")
    assert verdict.bottleneck == "input"


def test_part_of_a_part_says_how_much_of_it() -> None:
    parts = [
        factories.make_part("before_training", 12.0, what="in `parse`", line=7),
        factories.make_part("before_training", 4.0),
        factories.make_part("steps", 4.0),
    ]

    verdict = decide(factories.make_session(run=factories.make_run(parts=parts)))

    assert verdict.summary == (
        "80 % of the run (16 s of 20 s) passes before the first training step: 75 % of it in "
        "`parse` at train.py:7. Its steps are input-bound."
    )


def test_a_run_that_goes_on_for_long_after_its_training_says_so() -> None:
    parts = [
        factories.make_part("steps", 4.0),
        factories.make_part("after_training", 12.0, what="in `export`", line=40),
        factories.make_part("after_training", 4.0, what="exit"),
    ]

    verdict = decide(factories.make_session(run=factories.make_run(parts=parts)))

    assert verdict.summary == (
        "60 % of the run (12 s of 20 s) comes after the training: in `export` at train.py:40. Its "
        "steps are input-bound."
    )
    assert (verdict.where, verdict.where_percent, verdict.where_line) == (
        "after_training",
        60.0,
        40,
    )


@pytest.mark.parametrize("outcome", ["raised", "killed", "timed-out"])
def test_of_a_script_that_failed_before_its_steps_that_is_said_first(outcome: Any) -> None:
    script = Script(path="t.py", args=[], outcome=outcome, status=1, detail="ValueError: no rows")
    parts = [factories.make_part("before_training", 12.0, what="in `parse`", line=7)]
    session = factories.make_session(
        run=factories.make_run(parts=parts),
        script=script,
        steps=None,
        steps_missing="Only 0 steps were seen.",
        breakdown=None,
    )

    verdict = decide(session)

    if outcome == "timed-out":
        assert verdict.where == "before_training"
        return
    assert verdict.summary == (
        "The script ended before enough steps were seen: ValueError: no rows (its own status: 1)."
    )
    assert verdict.reasons[0] == "No verdict: Only 0 steps were seen."
    assert (verdict.where, verdict.bottleneck) == (None, "inconclusive")


def test_where_steps_weigh_most_the_verdict_is_theirs() -> None:
    run = factories.make_run(parts=[factories.make_part("steps", 20.0)])

    looked, without = (decided(factories.make_session(run=known)) for known in (run, None))

    assert looked["where"] == "steps"
    assert without["where"] is None
    for key in ("summary", "reasons", "severity", "bottleneck"):
        assert looked[key] == without[key]


def test_waits_for_first_batches_are_told_by_the_ledger_and_those_of_the_loop_beside_it() -> None:
    loop = factories.make_loop(
        time=factories.make_loop_time(
            total_s=20.0, steps_s=4.0, first_batches_s=16.0, between_epochs_s=0.0, unexplained_s=0.0
        )
    )
    parts = [
        factories.make_part("before_training", 5.0),
        factories.make_part("epoch_start", 12.0, line=20, loop_id=loop.id),
        factories.make_part("steps", 3.0, line=20, loop_id=loop.id),
    ]

    verdict = decide(factories.make_session(loops=[loop], run=factories.make_run(parts=parts)))

    assert (verdict.where, verdict.where_percent) == ("epoch_start", 60.0)
    assert verdict.summary.startswith("Highly input-bound: 60 % of the run (12 s of 20 s) is spent")
    assert verdict.reasons[0].startswith("Of the loop: Highly input-bound: 80 % of the loop's time")


def test_a_fill_of_all_the_data_is_the_verdict_before_an_epoch_has_ended() -> None:
    """Ten waits of 8 s, of which one was seen, beside 20 s of steps."""
    gone = {"self_ms_per_step": None, "elements": None}
    ops = [
        make_operation("source", "from_tensor_slices", **gone),
        make_operation("map", parent_ids=["source"], line=12, **gone),
        make_operation("shuffle", "shuffle", parent_ids=["map"], line=14),
    ]
    unseen = factories.make_loop_time(
        total_s=20.0,
        steps_s=20.0,
        first_batches_s=0.0,
        between_epochs_s=0.0,
        epoch_ends_seen=0,
        first_batch_ms=None,
    )
    loop = factories.make_loop(time=unseen)
    parts = [
        factories.make_part("epoch_start", 80.0, 100.0, line=20, loop_id=loop.id, count=10),
        factories.make_part("steps", 20.0, 100.0, line=20, loop_id=loop.id),
    ]

    verdict = decide(
        factories.make_session(
            loops=[loop],
            pipeline=make_pipeline(ops=ops),
            steps=make_steps(fill_ms=8000.0),
            run=factories.make_run(parts=parts, projected_total_s=100.0),
        )
    )

    assert (verdict.bottleneck, verdict.where, verdict.line) == ("input", "epoch_start", 14)
    assert verdict.confidence == "medium"
    assert verdict.summary == (
        "Highly input-bound: 80 % of the run (80 s of 100 s) is spent waiting for the first batch "
        "of each epoch; `shuffle` at train.py:14 fills meanwhile with what `map` at train.py:12 "
        "makes. Without all but the first of these waits it would be 3.57x as fast."
    )
    assert any(reason.startswith("No end of an epoch was seen") for reason in verdict.reasons)
