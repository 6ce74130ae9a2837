from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.run import work_between_trainings
from pipediag.session.ledger import IN_FRAMEWORK, OWN_LINE, READING, RunPart
from pipediag.session.model import Session
from tests.factories import make_loop, make_session
from tests.ledgers import make_part, make_run
from tests.rules.sessions import only, run, saved_s


def between(seconds: float, **overrides: Any) -> RunPart:
    values = {"what": "in `read_table`", "file": "train.py", "line": 28}
    return make_part("between_loops", seconds, **{**values, **overrides})


def session_with(*parts: RunPart, **overrides: Any) -> Session:
    return make_session(run=make_run(*parts, **overrides), loops=[make_loop()])


def test_what_is_the_same_for_all_is_done_once() -> None:
    finding = only(work_between_trainings, session_with(between(20.0), between(25.0, line=29)))

    assert (finding.status, finding.part, finding.line) == ("fail", "between_loops", 29)
    assert "what is done in `read_table` takes 45.0 s between them" in finding.advice
    assert (saved_s(finding), finding.speedup_at_most) == (45.0, None)


@pytest.mark.parametrize(
    ("what", "words"), [(OWN_LINE, "what these lines do"), (READING, "reading this data set")]
)
def test_lines_and_data_sets_are_called_what_they_are(what: str, words: str) -> None:
    assert words in only(work_between_trainings, session_with(between(30.0, what=what))).advice


def test_functions_are_told_apart() -> None:
    other = between(15.0, what="in `shuffle_rows`", line=40)

    assert [
        one.line for one in run(work_between_trainings, session_with(between(30.0), other))
    ] == [
        28,
        40,
    ]


@pytest.mark.parametrize(("own", "status"), [(20.0, "fail"), (19.9, "informative")])
def test_building_a_model_takes_what_it_takes(own: float, status: str) -> None:
    framework = between(20.0, what="in `read_table`" + IN_FRAMEWORK)

    assert only(work_between_trainings, session_with(between(own), framework)).status == status


def test_it_is_told_of_a_part_of_the_training_too() -> None:
    """Between two trainings of which nobody knows how many come lies as much each time."""
    finding = only(work_between_trainings, session_with(between(30.0), scope="1000_steps"))

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
def test_near_misses_pass(parts: list[RunPart]) -> None:
    assert only(work_between_trainings, session_with(*parts, whole_s=100.0)).status == "pass"


@pytest.mark.parametrize(
    ("seconds", "status"), [(10.0, "fail"), (9.9, "informative"), (5.0, "informative")]
)
def test_either_side_of_the_limits(seconds: float, status: str) -> None:
    assert only(work_between_trainings, session_with(between(seconds))).status == status
