"""Whether an operation's cost matters for a run: what is said where it does not."""

from __future__ import annotations

from pipediag.rules.relevance import weigh_input
from tests.factories import make_session
from tests.records import make_breakdown, make_input_wait


def test_a_wait_that_a_repeated_batch_contests_is_not_said_to_be_worth_nothing() -> None:
    def sentence(contested: float | None) -> str:
        wait = make_input_wait(native_percent=1.0, contested_by_percent=contested)
        session = make_session(breakdown=make_breakdown(input_wait=1.0), input_wait=wait)
        return weigh_input(session).sentence

    assert "would gain nothing now" in sentence(None)
    assert "on a repeated batch it is 59 % shorter" in sentence(59.0)
    assert "would gain nothing now" in sentence(-30.0)
