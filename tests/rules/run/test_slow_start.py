from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.run import slow_start
from pipediag.session.ledger import IN_FRAMEWORK, OWN_LINE, READING, RunPart
from pipediag.session.loops import Loop
from pipediag.session.model import Session
from pipediag.vocabulary import LoopRole
from tests.factories import make_loop, make_session
from tests.ledgers import make_part, make_run
from tests.rules.sessions import only, run, saved_s


def before(seconds: float, **overrides: Any) -> RunPart:
    values = {"what": "in `read_vectors`", "file": "train.py", "line": 9}
    return make_part("before_training", seconds, **{**values, **overrides})


def session_with(*parts: RunPart, loops: list[Loop] | None = None, **overrides: Any) -> Session:
    every = loops if loops is not None else [make_loop()]
    return make_session(run=make_run(*parts, **overrides), loops=every)


def test_parsing_is_kept_as_an_array() -> None:
    finding = only(slow_start, session_with(before(20.0), before(25.0, line=11)))
    assert (finding.status, finding.part, finding.line) == ("fail", "before_training", 11)
    assert "45.0 s pass in `read_vectors`" in finding.advice
    assert "np.load(path, mmap_mode" in finding.advice
    assert saved_s(finding) == 45.0


def test_a_comprehension_is_a_part_of_its_function() -> None:
    inner = before(6.0, what="in `read_vectors.<locals>.<listcomp>`")
    finding = only(slow_start, session_with(before(7.0), inner))
    assert (finding.status, saved_s(finding)) == ("fail", 13.0)
    assert "in `read_vectors` before" in finding.advice
    nested = before(6.0, what="in `read_vectors.<locals>.parse`")
    findings = run(slow_start, session_with(before(7.0), nested))
    assert [one.status for one in findings] == ["informative", "informative"]


def test_lines_outside_of_functions_are_told_by_their_stretch() -> None:
    lines = [before(8.0, what=OWN_LINE), before(8.0, what=OWN_LINE, line=10)]
    finding = only(slow_start, session_with(*lines))
    assert (finding.status, saved_s(finding)) == ("fail", 16.0)


@pytest.mark.parametrize(
    ("role", "words"), [("adapt", "get_vocabulary()"), ("preparation", "dataset.save(path)")]
)
def test_a_data_set_that_is_read_first(role: LoopRole, words: str) -> None:
    loop = make_loop(id="loop_1", role=role, diagnosed=False, line=14)
    row = before(30.0, what=READING, line=14)
    finding = only(slow_start, session_with(row, loops=[make_loop(), loop]))
    assert finding.status == "fail"
    assert words in finding.advice


def test_building_a_model_takes_what_it_takes() -> None:
    row = before(30.0, what=OWN_LINE + IN_FRAMEWORK, line=14)
    finding = only(slow_start, session_with(row))
    assert finding.status == "informative"
    assert "framework's own work" in finding.advice


def test_what_is_mostly_the_script_s_own_work_fails() -> None:
    rows = [before(30.0), before(12.0, what="in `read_vectors`" + IN_FRAMEWORK)]
    assert only(slow_start, session_with(*rows)).status == "fail"


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
def test_near_misses_pass(parts: list[RunPart]) -> None:
    whole_s = 7200.0 if parts and parts[0].seconds == 60.0 else 100.0
    assert only(slow_start, session_with(*parts, whole_s=whole_s)).status == "pass"


@pytest.mark.parametrize(
    ("seconds", "status"), [(10.0, "fail"), (9.9, "informative"), (5.0, "informative")]
)
def test_either_side_of_the_limits(seconds: float, status: str) -> None:
    assert only(slow_start, session_with(before(seconds))).status == status


def test_a_second_is_nothing_to_speak_of() -> None:
    assert only(slow_start, session_with(before(1.9), whole_s=4.0)).status == "informative"


def test_where_the_whole_is_not_known_nothing_is_said() -> None:
    assert only(slow_start, session_with(scope="1000_steps")).status == "not-applicable"


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
    session = session_with(scope="epoch", whole_s=epoch_s, seen=[before(seconds)])
    finding = only(slow_start, session)
    assert finding.status == status
    assert ("np.load" in finding.advice) is (status == "informative")


def test_how_long_it_takes_is_said_beside_an_epoch() -> None:
    session = session_with(scope="epoch", whole_s=10.0, seen=[before(25.0), before(16.0, line=11)])
    finding = only(slow_start, session)
    assert "takes 4.1 times as long as an epoch. 41.0 s pass in `read_vectors`" in finding.advice
    assert (finding.file, finding.line, saved_s(finding)) == ("train.py", 9, None)


def test_beside_an_unknown_length_a_framework_s_work_is_left_alone() -> None:
    building = before(60.0, what=OWN_LINE + IN_FRAMEWORK)
    session = session_with(scope="epoch", whole_s=10.0, seen=[building])
    assert only(slow_start, session).status == "not-applicable"


@pytest.mark.parametrize(("own", "status"), [(20.0, "fail"), (19.9, "informative")])
def test_half_of_it_the_script_s_own_is_enough(own: float, status: str) -> None:
    rows = [before(own), before(20.0, what="in `read_vectors`" + IN_FRAMEWORK)]
    assert only(slow_start, session_with(*rows)).status == status
