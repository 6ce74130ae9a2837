from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.run import slow_epoch_end
from pipediag.session.ledger import OWN_LINE, READING, RunPart, callback_words
from pipediag.session.model import Session
from tests.factories import make_loop, make_session
from tests.ledgers import make_part, make_run
from tests.rules.sessions import only, run, saved_s


def callback(seconds: float, name: str = "Saver", **overrides: Any) -> RunPart:
    values = {
        "what": callback_words(name),
        "file": "train.py",
        "line": 30,
        "count": 20,
        "loop_id": "loop_0",
    }
    return make_part("epoch_end", seconds, **{**values, **overrides})


def session_with(*parts: RunPart, **overrides: Any) -> Session:
    return make_session(run=make_run(*parts, **overrides))


def test_a_callback_is_named_with_its_line() -> None:
    finding = only(slow_epoch_end, session_with(callback(40.0)))
    assert (finding.status, finding.part) == ("fail", "epoch_end")
    assert (finding.file, finding.line) == ("train.py", 30)
    assert "The callback Saver takes 40.0 s" in finding.advice
    assert "every few epochs" in finding.advice
    assert "(epoch + 1) % 5 == 0" in finding.advice  # not before anything is trained


def test_what_every_fifth_time_leaves_is_predicted_by_the_ledger() -> None:
    finding = only(slow_epoch_end, session_with(callback(40.0)))
    assert (finding.speedup_at_most, saved_s(finding)) == (5.0, pytest.approx(32.0))


def test_what_it_is_without_is_told_with_the_ledgers_interval() -> None:
    row = callback(40.0, ci95_percent=(36.0, 44.0))
    advice = only(slow_epoch_end, session_with(row)).advice
    # 40 s of 100, give or take 4; the rest came once, which is a tenth in doubt.
    assert "Without it the run would be 1.67x as fast, by the ledger (1.58 to 1.77x)." in advice
    epoch = session_with(row, scope="epoch", epochs_planned=None)
    assert "Without it an epoch would be 1.67x" in only(slow_epoch_end, epoch).advice


@pytest.mark.parametrize(("count", "left"), [(3, 1), (5, 1), (6, 2), (9, 2), (11, 3)])
def test_the_first_and_every_fifth_behind_it_are_left(count: int, left: int) -> None:
    finding = only(slow_epoch_end, session_with(callback(40.0, count=count)))
    assert finding.status == "fail"
    assert finding.speedup_at_most == pytest.approx(count / left, abs=0.001)
    assert saved_s(finding) == pytest.approx(40.0 * (1 - left / count))


def test_a_callback_of_kerass_is_looked_for_where_it_is_given() -> None:
    checkpoint = callback(40.0, "ModelCheckpoint", file=None, line=None)
    finding = only(slow_epoch_end, session_with(checkpoint))
    assert (finding.file, finding.line) == ("train.py", 20)
    assert "save_best_only=True" in finding.advice
    # That leaves something of each time, and all of it may go.
    assert (finding.speedup_at_most, saved_s(finding)) == (100.0, 40.0)


def test_a_data_set_that_is_read_again_is_counted_otherwise() -> None:
    row = callback(40.0, what=READING, line=43)
    loop = make_loop(id="loop_1", kind="eager", role="reading", diagnosed=False, line=43)
    session = make_session(run=make_run(row, whole_s=80.0), loops=[make_loop(), loop])
    finding = only(slow_epoch_end, session)
    assert (finding.status, finding.line) == ("fail", 43)
    assert "To read this data set takes 40.0 s in all: `cardinality()` tells" in finding.advice


def test_one_of_that_name_that_the_user_wrote_is_the_user_s() -> None:
    finding = only(slow_epoch_end, session_with(callback(40.0, "ModelCheckpoint")))
    assert (finding.line, "save_best_only" in finding.advice) == (30, False)


@pytest.mark.parametrize(("kind", "status"), [("eager", "pass"), ("keras", "fail")])
def test_a_loop_that_evaluates_lets_go_of_its_iterator_at_its_own_line(
    kind: str, status: str
) -> None:
    line = callback(9.0, what=OWN_LINE, line=31, count=None)
    validation = make_loop(id="loop_1", kind=kind, role="validation", diagnosed=False, line=31)
    session = make_session(run=make_run(line, whole_s=80.0), loops=[make_loop(), validation])
    assert only(slow_epoch_end, session).status == status


def test_lines_of_a_function_are_one_finding() -> None:
    lines = [
        callback(6.0, what="in `draw`", line=41, count=None),
        callback(8.0, what="in `draw`", line=52, count=None),
    ]
    finding = only(slow_epoch_end, session_with(*lines))
    assert (finding.status, finding.line, saved_s(finding)) == ("fail", 52, pytest.approx(11.2))
    assert "`draw` takes 14.0 s" in finding.advice


def test_each_that_takes_a_notable_part_is_told_the_costliest_first() -> None:
    parts = [callback(7.0, "Plots", line=60), callback(20.0), callback(1.0, "Log", line=70)]
    findings = run(slow_epoch_end, session_with(*parts))
    assert [(one.status, one.line) for one in findings] == [("fail", 30), ("informative", 60)]


def test_neighbouring_lines_outside_of_functions_are_one_stretch() -> None:
    line = {"what": OWN_LINE, "count": None}
    near = [callback(6.0, line=41, **line), callback(5.0, line=43, **line)]
    assert only(slow_epoch_end, session_with(*near)).status == "fail"
    far = [callback(6.0, line=41, **line), callback(5.0, line=90, **line)]
    assert {one.status for one in run(slow_epoch_end, session_with(*far))} == {"informative"}


@pytest.mark.parametrize("count", [1, 2])
def test_what_comes_once_can_not_come_less_often(count: int) -> None:
    finding = only(slow_epoch_end, session_with(callback(40.0, count=count)))
    assert finding.status == "informative"
    assert "can't be done less often" in finding.advice
    own = callback(40.0, what="in `draw`", count=None)
    few = session_with(own, epochs_planned=count)
    assert only(slow_epoch_end, few).status == "informative"
    stopped_early = session_with(own, epochs_planned=100, epochs_seen=float(count))
    assert only(slow_epoch_end, stopped_early).status == "informative"


@pytest.mark.parametrize(
    ("seconds", "status"),
    [(10.0, "fail"), (9.9, "informative"), (5.0, "informative"), (4.9, "pass")],
)
def test_either_side_of_the_limits(seconds: float, status: str) -> None:
    assert only(slow_epoch_end, session_with(callback(seconds))).status == status


def test_in_a_ledger_of_one_epoch_it_comes_with_each() -> None:
    epoch = session_with(callback(0.4, count=1), whole_s=2.0, scope="epoch", epochs_planned=None)
    assert only(slow_epoch_end, epoch).status == "fail"


def test_what_has_no_line_is_no_fault_of_the_script() -> None:
    unknown = callback(30.0, what=None, file=None, line=None)
    finding = only(slow_epoch_end, session_with(unknown))
    assert finding.status == "informative"
    assert "in no line but the loop's own" in finding.advice
    little = callback(9.0, what=None, file=None, line=None)
    assert only(slow_epoch_end, session_with(little)).status == "pass"
    # Of few steps that were seen, one end of an epoch may be most.
    assert only(slow_epoch_end, session_with(unknown, scope="1000_steps")).status == "pass"


def test_the_loop_s_own_line_begins_the_next_epoch() -> None:
    """As Keras's work between two epochs is seen at the line of `fit`."""
    own = callback(30.0, what=OWN_LINE, line=20, count=None)
    finding = only(slow_epoch_end, session_with(own))
    assert (finding.status, finding.line) == ("informative", 20)
    assert "do it every few epochs" not in finding.advice


def test_a_try_of_a_few_seconds_is_only_informed() -> None:
    finding = only(slow_epoch_end, session_with(callback(1.9), whole_s=4.0))
    assert finding.status == "informative"


def test_validation_is_another_rule_s() -> None:
    validation = make_part("evaluation", 50.0, what="validation in `fit`", count=20)
    assert only(slow_epoch_end, session_with(validation)).status == "pass"
