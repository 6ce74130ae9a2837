from __future__ import annotations

import pytest

from pipediag.rules.step import small_batch
from pipediag.session.edits import Edit, SetParameters
from tests.factories import make_loop, make_session
from tests.records import make_breakdown, make_steps
from tests.rules.sessions import batch, only, session_of, source

FIXED = make_breakdown(dispatch=40.0, python=20.0, device_compute=40.0)


def test_fails_at_the_batch_and_says_that_it_changes_training() -> None:
    finding = only(small_batch, session_of(source(), batch(32), breakdown=FIXED))
    assert (finding.status, finding.line, finding.op_id) == ("fail", 9, "batch")
    assert "batch of 128 in place of 32" in finding.advice
    assert finding.effect_on_results == "changes a hyper-parameter"
    assert finding.speedup_at_most == 4.0


def test_without_a_pipeline_it_points_to_the_loop() -> None:
    finding = only(small_batch, make_session(breakdown=FIXED, pipeline=None))
    assert (finding.status, finding.line) == ("fail", 20)


@pytest.mark.parametrize(
    ("size", "fixed", "status"),
    [(256, 60.0, "informative"), (32, 20.0, "informative"), (32, 3.0, "pass")],
)
def test_a_larger_batch_is_tried_unless_no_trial_could_confirm_it(
    size: int, fixed: float, status: str
) -> None:
    shares = make_breakdown(dispatch=fixed, device_compute=100.0 - fixed)
    session = session_of(source(), batch(size), breakdown=shares, steps=make_steps(batch_size=size))
    finding = only(small_batch, session)
    assert (finding.status, finding.edit is not None) == (status, status == "informative")


def test_a_large_batch_that_keras_makes_passes() -> None:
    session = make_session(breakdown=FIXED, steps=make_steps(batch_size=256), pipeline=None)
    assert only(small_batch, session).status == "pass"


def test_while_the_input_is_the_bottleneck_it_only_informs() -> None:
    breakdown = make_breakdown(input_wait=40.0, dispatch=30.0, python=20.0)
    finding = only(small_batch, session_of(source(), batch(32), breakdown=breakdown))
    assert (finding.status, finding.edit is not None) == ("informative", True)
    assert "deal with the input first" in finding.advice


def test_missing_data_is_inconclusive() -> None:
    session = make_session(
        breakdown=FIXED, steps=make_steps(batch_size=None), loops=[make_loop(batch_size=None)]
    )
    assert only(small_batch, session).status == "inconclusive"
    assert only(small_batch, make_session(breakdown=None)).status == "inconclusive"


def test_tries_four_times_the_batch() -> None:
    assert only(small_batch, session_of(source(), batch(32), breakdown=FIXED)).edit == Edit(
        id="small-batch:batch",
        label="batches of 128 in place of 32 from the batch in line 9",
        changes=(SetParameters("batch", {"batch_size": 128}),),
        caveat="It counts examples per second; how well the model learns from larger batches is "
        "not measured.",
    )


def test_batches_that_keras_makes_are_not_tried() -> None:
    finding = only(small_batch, make_session(breakdown=FIXED, pipeline=None))
    assert finding.edit is None
    assert "Keras or your own code makes the batches" in str(finding.trial.reason)


def test_each_replica_gets_a_part_of_the_batch() -> None:
    """A batch that is large enough for one device is small for four."""
    loops, steps = [make_loop(replicas=4)], make_steps(batch_size=512)
    finding = only(small_batch, make_session(breakdown=FIXED, loops=loops, steps=steps))

    assert finding.status == "fail"
    assert "Each of 4 replicas gets 128 examples of it." in finding.advice
    enough = make_session(
        breakdown=FIXED, loops=loops, steps=make_steps(batch_size=1024), pipeline=None
    )
    assert only(small_batch, enough).status == "pass"
