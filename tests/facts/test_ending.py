from __future__ import annotations

import signal

import pytest

from pipediag.facts.script import cut_short, ended_from_outside, ending, failed_by_itself
from pipediag.session.run import Script
from pipediag.vocabulary import ScriptOutcome
from tests import factories


def script(outcome: ScriptOutcome, status: int | None, detail: str | None = None) -> Script:
    return Script(path="t.py", args=[], outcome=outcome, status=status, detail=detail)


@pytest.mark.parametrize("outcome", ["raised", "killed", "interrupted", "timed-out"])
def test_what_ended_before_its_end_was_cut_short(outcome: ScriptOutcome) -> None:
    assert cut_short(script(outcome, None))


@pytest.mark.parametrize(
    ("outcome", "status"), [("finished", 0), ("exited", 0), ("stopped", None), ("hung-in-exit", 0)]
)
def test_what_came_to_its_end_was_not(outcome: ScriptOutcome, status: int | None) -> None:
    assert not cut_short(script(outcome, status))


def test_a_status_of_its_own_says_that_it_failed() -> None:
    assert cut_short(script("exited", 3))


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        ("interrupted", 130),
        ("timed-out", None),
        ("killed", -signal.SIGINT),
        ("killed", -signal.SIGTERM),
        ("killed", -signal.SIGHUP),
    ],
)
def test_what_was_asked_to_end_was_ended_from_outside(
    outcome: ScriptOutcome, status: int | None
) -> None:
    assert ended_from_outside(outcome, status)


@pytest.mark.parametrize(
    ("outcome", "status"),
    [("killed", -signal.SIGKILL), ("raised", 1), ("exited", 143), ("stopped", None)],
)
def test_what_failed_or_chose_its_end_was_not(outcome: ScriptOutcome, status: int | None) -> None:
    assert not ended_from_outside(outcome, status)


def test_how_it_ended_names_the_status_where_there_is_one() -> None:
    assert ending(script("raised", 1, "ValueError: no rows.")) == (
        "ValueError: no rows (its own status: 1)."
    )
    assert ending(script("timed-out", None)) == "timed-out."


@pytest.mark.parametrize("outcome", ["raised", "killed", "exited"])
def test_a_script_that_nobody_else_ended_failed_by_itself(outcome: ScriptOutcome) -> None:
    ended = factories.make_session(script=script(outcome, 1), steps=None)
    assert "before enough steps were seen" in (failed_by_itself(ended) or "")


@pytest.mark.parametrize(
    ("outcome", "status"), [("interrupted", 130), ("timed-out", None), ("exited", 0)]
)
def test_one_that_was_ended_or_meant_to_end_did_not(
    outcome: ScriptOutcome, status: int | None
) -> None:
    ended = factories.make_session(script=script(outcome, status), steps=None)
    assert failed_by_itself(ended) is None
