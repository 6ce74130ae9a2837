from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.script_work import (
    SLOW_EPOCH_END,
    SLOW_START,
    WORK_AFTER_TRAINING,
    WORK_BETWEEN_TRAININGS,
)
from pipediag.session.ledger import IN_FRAMEWORK, OWN_LINE, READING, RunPart, callback_words
from pipediag.session.loops import Loop
from pipediag.session.model import Session
from pipediag.vocabulary import LoopRole
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


def end_session_with(*parts: RunPart, **overrides: Any) -> Session:
    return make_session(run=make_run(*parts, **overrides))


def test_a_callback_is_named_with_its_line() -> None:
    finding = only(SLOW_EPOCH_END, end_session_with(callback(40.0)))
    assert (finding.status, finding.part) == ("fail", "epoch_end")
    assert (finding.file, finding.line) == ("train.py", 30)


def test_what_every_fifth_time_leaves_is_predicted_by_the_ledger() -> None:
    finding = only(SLOW_EPOCH_END, end_session_with(callback(40.0)))
    assert (finding.speedup_at_most, saved_s(finding)) == (5.0, pytest.approx(32.0))


@pytest.mark.parametrize(("count", "left"), [(3, 1), (5, 1), (6, 2), (9, 2), (11, 3)])
def test_the_first_and_every_fifth_behind_it_are_left(count: int, left: int) -> None:
    finding = only(SLOW_EPOCH_END, end_session_with(callback(40.0, count=count)))
    assert finding.status == "fail"
    assert finding.speedup_at_most == pytest.approx(count / left, abs=0.001)
    assert saved_s(finding) == pytest.approx(40.0 * (1 - left / count))


def test_a_callback_of_kerass_is_looked_for_where_it_is_given() -> None:
    checkpoint = callback(40.0, "ModelCheckpoint", file=None, line=None)
    finding = only(SLOW_EPOCH_END, end_session_with(checkpoint))
    assert (finding.file, finding.line) == ("train.py", 20)
    # That leaves something of each time, and all of it may go.
    assert (finding.speedup_at_most, saved_s(finding)) == (100.0, 40.0)


def test_a_data_set_that_is_read_again_is_counted_otherwise() -> None:
    row = callback(40.0, what=READING, line=43)
    loop = make_loop(id="loop_1", kind="eager", role="reading", diagnosed=False, line=43)
    session = make_session(run=make_run(row, whole_s=80.0), loops=[make_loop(), loop])
    finding = only(SLOW_EPOCH_END, session)
    assert (finding.status, finding.line) == ("fail", 43)


def test_one_of_that_name_that_the_user_wrote_is_the_user_s() -> None:
    finding = only(SLOW_EPOCH_END, end_session_with(callback(40.0, "ModelCheckpoint")))
    assert (finding.line, "save_best_only" in finding.advice) == (30, False)


@pytest.mark.parametrize(("kind", "status"), [("eager", "pass"), ("keras", "fail")])
def test_a_loop_that_evaluates_lets_go_of_its_iterator_at_its_own_line(
    kind: str, status: str
) -> None:
    line = callback(9.0, what=OWN_LINE, line=31, count=None)
    validation = make_loop(id="loop_1", kind=kind, role="validation", diagnosed=False, line=31)
    session = make_session(run=make_run(line, whole_s=80.0), loops=[make_loop(), validation])
    assert only(SLOW_EPOCH_END, session).status == status


def test_lines_of_a_function_are_one_finding() -> None:
    lines = [
        callback(6.0, what="in `draw`", line=41, count=None),
        callback(8.0, what="in `draw`", line=52, count=None),
    ]
    finding = only(SLOW_EPOCH_END, end_session_with(*lines))
    assert (finding.status, finding.line, saved_s(finding)) == ("fail", 52, pytest.approx(11.2))


def test_each_that_takes_a_notable_part_is_told_the_costliest_first() -> None:
    parts = [callback(7.0, "Plots", line=60), callback(20.0), callback(1.0, "Log", line=70)]
    findings = run(SLOW_EPOCH_END, end_session_with(*parts))
    assert [(one.status, one.line) for one in findings] == [("fail", 30), ("informative", 60)]


def test_neighbouring_lines_outside_of_functions_are_one_stretch() -> None:
    line = {"what": OWN_LINE, "count": None}
    near = [callback(6.0, line=41, **line), callback(5.0, line=43, **line)]
    assert only(SLOW_EPOCH_END, end_session_with(*near)).status == "fail"
    far = [callback(6.0, line=41, **line), callback(5.0, line=90, **line)]
    assert {one.status for one in run(SLOW_EPOCH_END, end_session_with(*far))} == {"informative"}


@pytest.mark.parametrize("count", [1, 2])
def test_what_comes_once_can_not_come_less_often(count: int) -> None:
    finding = only(SLOW_EPOCH_END, end_session_with(callback(40.0, count=count)))
    assert finding.status == "informative"
    own = callback(40.0, what="in `draw`", count=None)
    few = end_session_with(own, epochs_planned=count)
    assert only(SLOW_EPOCH_END, few).status == "informative"
    stopped_early = end_session_with(own, epochs_planned=100, epochs_seen=float(count))
    assert only(SLOW_EPOCH_END, stopped_early).status == "informative"


@pytest.mark.parametrize(
    ("seconds", "status"),
    [(10.0, "fail"), (9.9, "informative"), (5.0, "informative"), (4.9, "pass")],
)
def test_end_either_side_of_the_limits(seconds: float, status: str) -> None:
    assert only(SLOW_EPOCH_END, end_session_with(callback(seconds))).status == status


def test_in_a_ledger_of_one_epoch_it_comes_with_each() -> None:
    epoch = end_session_with(
        callback(0.4, count=1), whole_s=2.0, scope="epoch", epochs_planned=None
    )
    assert only(SLOW_EPOCH_END, epoch).status == "fail"


def test_what_has_no_line_is_no_fault_of_the_script() -> None:
    unknown = callback(30.0, what=None, file=None, line=None)
    finding = only(SLOW_EPOCH_END, end_session_with(unknown))
    assert finding.status == "informative"
    little = callback(9.0, what=None, file=None, line=None)
    assert only(SLOW_EPOCH_END, end_session_with(little)).status == "pass"
    # Of few steps that were seen, one end of an epoch may be most.
    assert only(SLOW_EPOCH_END, end_session_with(unknown, scope="1000_steps")).status == "pass"


def test_the_loop_s_own_line_begins_the_next_epoch() -> None:
    """As Keras's work between two epochs is seen at the line of `fit`."""
    own = callback(30.0, what=OWN_LINE, line=20, count=None)
    finding = only(SLOW_EPOCH_END, end_session_with(own))
    assert (finding.status, finding.line) == ("informative", 20)


def test_a_try_of_a_few_seconds_is_only_informed() -> None:
    finding = only(SLOW_EPOCH_END, end_session_with(callback(1.9), whole_s=4.0))
    assert finding.status == "informative"


def test_validation_is_another_rule_s() -> None:
    validation = make_part("evaluation", 50.0, what="validation in `fit`", count=20)
    assert only(SLOW_EPOCH_END, end_session_with(validation)).status == "pass"


def before(seconds: float, **overrides: Any) -> RunPart:
    values = {"what": "in `read_vectors`", "file": "train.py", "line": 9}
    return make_part("before_training", seconds, **{**values, **overrides})


def before_session_with(
    *parts: RunPart, loops: list[Loop] | None = None, **overrides: Any
) -> Session:
    every = loops if loops is not None else [make_loop()]
    return make_session(run=make_run(*parts, **overrides), loops=every)


def test_parsing_is_kept_as_an_array() -> None:
    finding = only(SLOW_START, before_session_with(before(20.0), before(25.0, line=11)))
    assert (finding.status, finding.part, finding.line) == ("fail", "before_training", 11)
    assert saved_s(finding) == 45.0


def test_a_comprehension_is_a_part_of_its_function() -> None:
    inner = before(6.0, what="in `read_vectors.<locals>.<listcomp>`")
    finding = only(SLOW_START, before_session_with(before(7.0), inner))
    assert (finding.status, saved_s(finding)) == ("fail", 13.0)
    nested = before(6.0, what="in `read_vectors.<locals>.parse`")
    findings = run(SLOW_START, before_session_with(before(7.0), nested))
    assert [one.status for one in findings] == ["informative", "informative"]


def test_before_lines_outside_of_functions_are_told_by_their_stretch() -> None:
    lines = [before(8.0, what=OWN_LINE), before(8.0, what=OWN_LINE, line=10)]
    finding = only(SLOW_START, before_session_with(*lines))
    assert (finding.status, saved_s(finding)) == ("fail", 16.0)


@pytest.mark.parametrize(
    ("role", "words"), [("adapt", "get_vocabulary()"), ("preparation", "dataset.save(path)")]
)
def test_a_data_set_that_is_read_first(role: LoopRole, words: str) -> None:
    loop = make_loop(id="loop_1", role=role, diagnosed=False, line=14)
    row = before(30.0, what=READING, line=14)
    finding = only(SLOW_START, before_session_with(row, loops=[make_loop(), loop]))
    assert finding.status == "fail"


def test_before_building_a_model_takes_what_it_takes() -> None:
    row = before(30.0, what=OWN_LINE + IN_FRAMEWORK, line=14)
    finding = only(SLOW_START, before_session_with(row))
    assert finding.status == "informative"


def test_what_is_mostly_the_script_s_own_work_fails() -> None:
    rows = [before(30.0), before(12.0, what="in `read_vectors`" + IN_FRAMEWORK)]
    assert only(SLOW_START, before_session_with(*rows)).status == "fail"


@pytest.mark.parametrize(
    "parts",
    [
        # Start-up is no line of the script.
        [make_part("startup", 50.0, what="imports", file="train.py", line=3)],
        [before(50.0, what=None, file=None, line=None)],
        [before(4.9)],
        # Long, but of a training that takes hours.
        [before(60.0)],
        [],
    ],
)
def test_before_near_misses_pass(parts: list[RunPart]) -> None:
    whole_s = 7200.0 if parts and parts[0].seconds == 60.0 else 100.0
    assert only(SLOW_START, before_session_with(*parts, whole_s=whole_s)).status == "pass"


@pytest.mark.parametrize(
    ("seconds", "status"), [(10.0, "fail"), (9.9, "informative"), (5.0, "informative")]
)
def test_before_either_side_of_the_limits(seconds: float, status: str) -> None:
    assert only(SLOW_START, before_session_with(before(seconds))).status == status


def test_a_second_is_nothing_to_speak_of() -> None:
    assert only(SLOW_START, before_session_with(before(1.9), whole_s=4.0)).status == "informative"


def test_where_the_whole_is_not_known_nothing_is_said() -> None:
    assert only(SLOW_START, before_session_with(scope="1000_steps")).status == "not-applicable"


@pytest.mark.parametrize(
    ("seconds", "epoch_s", "status"),
    [
        (5.0, 5.0, "informative"),
        (4.9, 1.0, "not-applicable"),
        (40.0, 41.0, "not-applicable"),
    ],
)
def test_beside_a_training_of_unknown_length_its_seconds_count(
    seconds: float, epoch_s: float, status: str
) -> None:
    session = before_session_with(scope="epoch", whole_s=epoch_s, seen=[before(seconds)])
    finding = only(SLOW_START, session)
    assert finding.status == status
    assert ("np.load" in finding.advice) is (status == "informative")


def test_how_long_it_takes_is_said_beside_an_epoch() -> None:
    session = before_session_with(
        scope="epoch", whole_s=10.0, seen=[before(25.0), before(16.0, line=11)]
    )
    finding = only(SLOW_START, session)
    assert (finding.file, finding.line, saved_s(finding)) == ("train.py", 9, None)


def test_beside_an_unknown_length_a_framework_s_work_is_left_alone() -> None:
    building = before(60.0, what=OWN_LINE + IN_FRAMEWORK)
    session = before_session_with(scope="epoch", whole_s=10.0, seen=[building])
    assert only(SLOW_START, session).status == "not-applicable"


@pytest.mark.parametrize(("own", "status"), [(20.0, "fail"), (19.9, "informative")])
def test_half_of_it_the_script_s_own_is_enough(own: float, status: str) -> None:
    rows = [before(own), before(20.0, what="in `read_vectors`" + IN_FRAMEWORK)]
    assert only(SLOW_START, before_session_with(*rows)).status == status


def after(seconds: float, **overrides: Any) -> RunPart:
    values = {"what": "in `draw`", "file": "train.py", "line": 40}
    return make_part("after_training", seconds, **{**values, **overrides})


def after_session_with(*parts: RunPart, **overrides: Any) -> Session:
    return make_session(run=make_run(*parts, **overrides), loops=[make_loop()])


def test_what_is_drawn_after_the_training_is_named_by_its_line() -> None:
    finding = only(WORK_AFTER_TRAINING, after_session_with(after(12.0), after(18.0, line=44)))
    assert (finding.status, finding.part, finding.line) == ("fail", "after_training", 44)
    assert saved_s(finding) == 30.0


def test_after_lines_outside_of_functions_are_told_by_their_stretch() -> None:
    lines = [after(9.0, what=OWN_LINE), after(10.0, what=OWN_LINE, line=41)]
    finding = only(WORK_AFTER_TRAINING, after_session_with(*lines))
    assert (finding.status, finding.line, saved_s(finding)) == ("fail", 41, 19.0)


@pytest.mark.parametrize(
    ("part", "whole_s", "status"),
    [
        (after(14.9), None, "pass"),
        (after(15.1), None, "fail"),
        (after(0.9), 3.0, "pass"),
        (after(1.1), 3.0, "informative"),
        (after(2.1), 6.0, "fail"),
        (after(40.0, what="exit", file=None, line=None), None, "pass"),
        (after(40.0, what=f"in `draw`{IN_FRAMEWORK}"), None, "informative"),
    ],
)
def test_how_much_of_it_matters(part: RunPart, whole_s: float | None, status: str) -> None:
    more = {} if whole_s is None else {"whole_s": whole_s}
    assert only(WORK_AFTER_TRAINING, after_session_with(part, **more)).status == status


def test_of_a_part_of_the_training_nothing_is_said() -> None:
    finding = only(WORK_AFTER_TRAINING, after_session_with(after(40.0), scope="1000_steps"))
    assert finding.status == "not-applicable"


def between(seconds: float, **overrides: Any) -> RunPart:
    values = {"what": "in `read_table`", "file": "train.py", "line": 28}
    return make_part("between_loops", seconds, **{**values, **overrides})


def between_session_with(*parts: RunPart, **overrides: Any) -> Session:
    return make_session(run=make_run(*parts, **overrides), loops=[make_loop()])


def test_what_is_the_same_for_all_is_done_once() -> None:
    finding = only(
        WORK_BETWEEN_TRAININGS, between_session_with(between(20.0), between(25.0, line=29))
    )

    assert (finding.status, finding.part, finding.line) == ("fail", "between_loops", 29)
    assert (saved_s(finding), finding.speedup_at_most) == (45.0, None)


def test_functions_are_told_apart() -> None:
    other = between(15.0, what="in `shuffle_rows`", line=40)

    assert [
        one.line for one in run(WORK_BETWEEN_TRAININGS, between_session_with(between(30.0), other))
    ] == [
        28,
        40,
    ]


@pytest.mark.parametrize(("own", "status"), [(20.0, "fail"), (19.9, "informative")])
def test_between_building_a_model_takes_what_it_takes(own: float, status: str) -> None:
    framework = between(20.0, what="in `read_table`" + IN_FRAMEWORK)

    assert (
        only(WORK_BETWEEN_TRAININGS, between_session_with(between(own), framework)).status == status
    )


def test_it_is_told_of_a_part_of_the_training_too() -> None:
    """Between two trainings of which nobody knows how many come lies as much each time."""
    finding = only(WORK_BETWEEN_TRAININGS, between_session_with(between(30.0), scope="1000_steps"))

    assert finding.status == "fail"


@pytest.mark.parametrize(
    "parts",
    [
        [between(50.0, what=None, file=None, line=None)],
        [between(4.9)],
        [make_part("before_training", 50.0, what="in `read_table`", file="train.py", line=28)],
        [],
    ],
)
def test_between_near_misses_pass(parts: list[RunPart]) -> None:
    assert (
        only(WORK_BETWEEN_TRAININGS, between_session_with(*parts, whole_s=100.0)).status == "pass"
    )


@pytest.mark.parametrize(
    ("seconds", "status"), [(10.0, "fail"), (9.9, "informative"), (5.0, "informative")]
)
def test_between_either_side_of_the_limits(seconds: float, status: str) -> None:
    assert only(WORK_BETWEEN_TRAININGS, between_session_with(between(seconds))).status == status
