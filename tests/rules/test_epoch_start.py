from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.epoch_start import SLOW_EPOCH_START, run_through
from pipediag.rules.python_input import PYTHON_INPUT
from pipediag.rules.registry import yielding
from pipediag.rules.shuffling import SLOW_SHUFFLE_FILL
from pipediag.session.edits import AUTOTUNE, Edit, Insert, SetParameters
from pipediag.session.ledger import RunPart
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from tests.factories import make_keras, make_loop, make_loop_time
from tests.ledgers import make_part, make_run
from tests.records import make_breakdown, make_operation
from tests.rules.sessions import batch, only, saved_s, session_of, source

READER = make_operation("read", "TFRecordDataset", line=5)


LONG: dict[str, Any] = {"epochs_planned": 10}
"""Epochs of 6 s of steps, too long to be run through several times."""


def waits(seconds: float, **overrides: Any) -> RunPart:
    values = {"file": "train.py", "line": 20, "count": 20, "loop_id": "loop_0"}
    return make_part("epoch_start", seconds, **{**values, **overrides})


def session_with(
    part: RunPart,
    *ops: Operation,
    first_batch_ms: float = 2000.0,
    ends: int = 19,
    input_wait: float = 1.0,
    **overrides: Any,
) -> Session:
    """Each of twenty epochs waits for two seconds; the steps wait for nothing."""
    time = make_loop_time(first_batch_ms=first_batch_ms, epoch_ends_seen=ends)
    return session_of(
        *(ops or (READER, batch())),
        run=make_run(part, **overrides),
        loops=[make_loop(time=time)],
        breakdown=make_breakdown(input_wait=input_wait, device_compute=90.0),
    )


def test_files_that_are_opened_anew() -> None:
    finding = only(SLOW_EPOCH_START, session_with(waits(40.0)))
    assert (finding.status, finding.part, finding.line) == ("fail", "epoch_start", 20)
    # The first wait stays.
    assert saved_s(finding) == pytest.approx(38.0)


def test_what_only_moves_beside_the_steps_is_hidden_by_them() -> None:
    """Of 90 s of waits no more than the 10 s of steps could run meanwhile."""
    finding = only(SLOW_EPOCH_START, session_with(waits(90.0), first_batch_ms=4500.0))
    assert saved_s(finding) == pytest.approx(10.0)


def test_a_generator_loads_once() -> None:
    generator = make_operation("gen", "from_generator", line=8)
    session = session_with(waits(90.0), generator, batch(), first_batch_ms=4500.0)
    finding = only(SLOW_EPOCH_START, session)
    assert saved_s(finding) == pytest.approx(85.5)
    # Through all epochs it would load what it needs just as often.
    assert finding.edit is None
    assert finding.trial.reason == (
        "What the generator loads has to leave its function, which is for you to write."
    )


def test_a_buffer_of_cheap_elements_is_made_smaller() -> None:
    shuffle = make_operation("shuffle", "shuffle", line=9)
    session = session_with(waits(40.0), source(), shuffle, batch(), **LONG)
    finding = only(SLOW_EPOCH_START, session)
    assert finding.status == "fail"
    assert finding.edit is None
    assert "run from end to end" in str(finding.trial.reason)


THROUGH = Edit(
    id="epoch-start:repeat:batch",
    label="one pipeline through all epochs, by a repeat behind the batch in line 9",
    changes=(Insert("batch", "repeat"),),
    caveat="Measured from the second step of an epoch to the second of the next.",
    whole_epoch=True,
    runs_through=True,
)


def test_one_pipeline_through_all_epochs_is_tried_where_they_are_short() -> None:
    """Twenty epochs take 80 s of steps, and then 20 s of waits are a fifth of the run."""
    ahead = make_operation("ahead", "prefetch", line=10)
    for op in (
        make_operation("shuffle", "shuffle", line=9, parameters={"buffer_size": 5000}),
        source(),
    ):
        first = [op] if op.kind != "shuffle" else [source(), op]
        session = session_with(waits(20.0), *first, batch(), ahead, first_batch_ms=1000.0)
        finding = only(SLOW_EPOCH_START, session)
        assert (finding.status, finding.edit) == ("fail", THROUGH)
        assert finding.effect_on_results == "same up to order or rounding"


def test_files_are_opened_at_once_rather_than_through_all_epochs() -> None:
    session = session_with(waits(20.0), READER, batch(), first_batch_ms=1000.0)
    edit = only(SLOW_EPOCH_START, session).edit
    assert edit is not None
    assert not edit.runs_through
    at_once = READER.model_copy(update={"parameters": {"num_parallel_reads": -1}})
    session = session_with(waits(20.0), at_once, batch(), first_batch_ms=1000.0)
    assert only(SLOW_EPOCH_START, session).edit == THROUGH


@pytest.mark.parametrize(
    ("steps_s", "scope", "epochs", "tried"),
    [
        (80.0, "run", 20, True),
        (80.2, "run", 20, False),
        (4.0, "epoch", None, True),
        (4.1, "epoch", None, False),
        (4.0, "1000_steps", None, False),
        (4.0, "run", None, False),
    ],
)
def test_how_short_an_epoch_has_to_be(
    steps_s: float, scope: str, epochs: int | None, tried: bool
) -> None:
    run = make_run(whole_s=steps_s, scope=scope, epochs_planned=epochs, epochs_seen=None)
    session = session_of(source(), batch(), run=run, loops=[make_loop()])
    assert (run_through(session, "rule") is not None) is tried


def test_an_epoch_of_nobody_knows_how_many_steps_is_not_tried() -> None:
    unknown = make_loop(planned_steps=None)
    told = make_loop(planned_steps=None, keras=make_keras(steps_per_epoch=40))
    for loop, tried in ((unknown, False), (told, True)):
        session = session_of(source(), batch(), run=make_run(whole_s=20.0), loops=[loop])
        assert (run_through(session, "rule") is not None) is tried


def test_a_pipeline_that_repeats_itself_is_left_alone() -> None:
    run = make_run(whole_s=20.0)
    endless = make_operation("repeat", "repeat", line=8)
    session = session_of(source(), endless, batch(), run=run, loops=[make_loop()])
    assert run_through(session, "rule") is None


def test_a_smaller_buffer_is_tried_in_whole_epochs() -> None:
    shuffle = make_operation("shuffle", "shuffle", line=9, parameters={"buffer_size": 5000})
    session = session_with(waits(40.0), source(), shuffle, batch(), **LONG)
    finding = only(SLOW_EPOCH_START, session)
    assert finding.edit is not None
    assert finding.edit.changes == (SetParameters("shuffle", {"buffer_size": 500}),)
    assert finding.edit.whole_epoch
    assert finding.effect_on_results == "changes a hyper-parameter"


def test_several_files_are_opened_at_once_in_whole_epochs() -> None:
    edit = only(SLOW_EPOCH_START, session_with(waits(40.0))).edit
    assert edit is not None
    assert edit.changes == (SetParameters("read", {"num_parallel_reads": AUTOTUNE}),)
    assert edit.whole_epoch
    alone = READER.model_copy(update={"parameters": {"file_count": 1}})
    session = session_with(waits(40.0), alone, batch(), **LONG)
    assert only(SLOW_EPOCH_START, session).edit is None


def test_a_long_first_wait_alone_stays() -> None:
    """A cache is filled in the first epoch; the others read it."""
    cached = session_with(waits(40.0), first_batch_ms=20.0)
    assert only(SLOW_EPOCH_START, cached).status == "pass"


def test_a_pipeline_of_kerass_is_not_the_script_s_to_change() -> None:
    array = make_operation("slices", "from_tensor_slices", made_by_framework=True)
    finding = only(SLOW_EPOCH_START, session_with(waits(40.0), array))
    assert finding.status == "informative"


def test_where_the_steps_wait_as_well_nothing_is_gained() -> None:
    finding = only(SLOW_EPOCH_START, session_with(waits(40.0), input_wait=60.0))
    assert finding.status == "informative"


@pytest.mark.parametrize(("first_batch_ms", "status"), [(61.0, "fail"), (59.0, "informative")])
def test_what_a_generator_loads_first_is_no_steps_to_wait_for(
    first_batch_ms: float, status: str
) -> None:
    """A step waits for 6 ms of its 10."""
    generator = make_operation("gen", "from_generator", line=8)
    part = waits(40.0, count=2000)
    session = session_with(part, generator, batch(), first_batch_ms=first_batch_ms, input_wait=60.0)
    assert only(SLOW_EPOCH_START, session).status == status


def test_without_an_end_of_an_epoch_it_is_not_known() -> None:
    assert only(SLOW_EPOCH_START, session_with(waits(40.0), ends=0)).status == "inconclusive"
    assert only(SLOW_EPOCH_START, session_with(waits(4.0), ends=0)).status == "pass"


@pytest.mark.parametrize(
    ("first_batch_ms", "status"),
    [(527.0, "fail"), (526.0, "informative"), (264.0, "informative"), (263.0, "pass")],
)
def test_either_side_of_the_limits(first_batch_ms: float, status: str) -> None:
    session = session_with(waits(40.0), first_batch_ms=first_batch_ms)
    assert only(SLOW_EPOCH_START, session).status == status


def test_a_ledger_of_one_epoch_has_no_first_one() -> None:
    session = session_with(waits(1.0, count=1), whole_s=4.0, scope="epoch")
    assert only(SLOW_EPOCH_START, session).status == "fail"


def test_a_try_of_a_few_seconds_is_only_informed() -> None:
    session = session_with(waits(1.9), whole_s=4.0, first_batch_ms=95.0)
    assert only(SLOW_EPOCH_START, session).status == "informative"


def test_rules_that_know_more_of_that_time_go_first() -> None:
    waits = SLOW_EPOCH_START.finding("fail", "Start once.", part="epoch_start")
    knowing = SLOW_SHUFFLE_FILL.finding("fail", "Shuffle first.", part="epoch_start")
    of_steps = PYTHON_INPUT.finding("fail", "Rewrite it.")
    ours = (SLOW_EPOCH_START, waits)
    assert yielding([(SLOW_SHUFFLE_FILL, knowing), ours])[1].status == "informative"
    assert yielding([(PYTHON_INPUT, of_steps), ours])[1] == waits


def test_what_was_not_seen_is_weighed_from_its_limit_on() -> None:
    assert only(SLOW_EPOCH_START, session_with(waits(5.0), ends=0)).status == "inconclusive"
