from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.pipeline import unbatch_batch
from pipediag.session.edits import Edit, Remove, Replace
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from tests.factories import make_host, make_session
from tests.records import make_operation
from tests.rules.sessions import batch, keeps_up, only, session_of, source


def first(size: int = 64, **parameters: Any) -> Operation:
    return make_operation(
        "first", "batch", line=3, parameters={"batch_size": size, **parameters}, elements=1.0
    )


def unbatch(**overrides: Any) -> Operation:
    values = {"elements": 64.0, "self_ms_per_step": 2.0, **overrides}
    return make_operation("unbatch", "unbatch", line=5, **values)


def session_with(
    *ops: Operation, size: int = 64, batch_ms: float = 1.0, **overrides: Any
) -> Session:
    return session_of(
        source(), *ops, batch(size, self_ms_per_step=batch_ms), **{"host": make_host(), **overrides}
    )


def test_batches_of_another_size_are_cut_by_rebatch() -> None:
    finding = only(unbatch_batch, session_with(first(), unbatch(), size=16))
    assert (finding.status, finding.op_id) == ("fail", "unbatch")
    assert "`.rebatch(16)`" in finding.advice
    assert finding.speedup_at_most is None
    assert finding.edit == Edit(
        id="unbatch-batch:unbatch",
        label="rebatch(16) in place of the unbatch in line 5 and the batch in line 9",
        changes=(
            Remove("unbatch"),
            Replace("batch", "rebatch", {"batch_size": 16, "drop_remainder": False}),
        ),
        check="equal",
    )


def test_batches_of_the_same_size_need_neither() -> None:
    between = make_operation("map", "map", elements=1.0)
    finding = only(unbatch_batch, session_with(first(), between, unbatch()))
    assert finding.advice == "Drop `unbatch` at line 5 and `batch` at line 9."
    # 3 ms of 10.
    assert finding.speedup_at_most == pytest.approx(10 / 7, abs=0.001)
    assert finding.edit is not None
    assert finding.edit.changes == (Remove("unbatch"), Remove("batch"))
    assert finding.edit.check == "equal"


@pytest.mark.parametrize(
    "ops",
    [
        (first(drop_remainder=True), unbatch()),
        (first(), make_operation("repeat", "repeat"), unbatch()),
        (unbatch(),),
    ],
)
def test_remainders_and_epochs_make_a_difference(ops: tuple[Operation, ...]) -> None:
    assert "rebatch" in only(unbatch_batch, session_with(*ops)).advice


def test_single_elements_that_are_used_are_left_alone() -> None:
    session = session_with(first(), unbatch(), make_operation("shuffle", "shuffle"))
    assert only(unbatch_batch, session).status == "not-applicable"


def test_does_not_fail_where_it_does_not_weigh() -> None:
    cheap = session_with(first(), unbatch(self_ms_per_step=0.1), batch_ms=0.1)
    assert only(unbatch_batch, cheap).status == "informative"
    keeping = session_with(first(), unbatch(), **keeps_up())
    finding = only(unbatch_batch, keeping)
    assert (finding.status, finding.edit) == ("informative", None)


def test_what_was_not_measured_is_tried() -> None:
    finding = only(unbatch_batch, session_with(first(), unbatch(self_ms_per_step=None)))
    assert (finding.status, finding.edit is not None) == ("informative", True)
    assert only(unbatch_batch, make_session(pipeline=None)).status == "inconclusive"


def test_work_that_falls_away_is_bound_by_no_cpu() -> None:
    session = session_with(first(), unbatch(), host=make_host(cores_busy=2.0))
    assert only(unbatch_batch, session).speedup_at_most == pytest.approx(10 / 7, abs=0.001)


def test_what_pads_its_batches_is_no_plain_batch() -> None:
    padded = make_operation(
        "batch", "padded_batch", line=9, parameters={"batch_size": 16}, self_ms_per_step=1.0
    )
    session = session_of(source(), first(), unbatch(), padded)
    assert only(unbatch_batch, session).status == "not-applicable"
