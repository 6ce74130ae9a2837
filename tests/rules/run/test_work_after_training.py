from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.run import work_after_training
from pipediag.session.ledger import IN_FRAMEWORK, OWN_LINE, RunPart
from pipediag.session.model import Session
from tests.factories import make_loop, make_session
from tests.ledgers import make_part, make_run
from tests.rules.sessions import only, saved_s


def after(seconds: float, **overrides: Any) -> RunPart:
    values = {"what": "in `draw`", "file": "train.py", "line": 40}
    return make_part("after_training", seconds, **{**values, **overrides})


def session_with(*parts: RunPart, **overrides: Any) -> Session:
    return make_session(run=make_run(*parts, **overrides), loops=[make_loop()])


def test_what_is_drawn_after_the_training_is_named_by_its_line() -> None:
    finding = only(work_after_training, session_with(after(12.0), after(18.0, line=44)))
    assert (finding.status, finding.part, finding.line) == ("fail", "after_training", 44)
    assert saved_s(finding) == 30.0
    assert "30.0 s pass in `draw` after the training" in finding.advice


def test_lines_outside_of_functions_are_told_by_their_stretch() -> None:
    lines = [after(9.0, what=OWN_LINE), after(10.0, what=OWN_LINE, line=41)]
    finding = only(work_after_training, session_with(*lines))
    assert (finding.status, finding.line, saved_s(finding)) == ("fail", 41, 19.0)
    assert "at this line" in finding.advice


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
    assert only(work_after_training, session_with(part, **more)).status == status


def test_of_a_part_of_the_training_nothing_is_said() -> None:
    finding = only(work_after_training, session_with(after(40.0), scope="1000_steps"))
    assert finding.status == "not-applicable"
