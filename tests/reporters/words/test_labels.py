from __future__ import annotations

from pipediag.reporters.words.labels import ending
from tests.factories import make_session

SCRIPT = make_session().script


def test_a_run_is_told_by_how_it_ended() -> None:
    assert ending(SCRIPT.model_copy(update={"outcome": "killed"})) == "was killed"


def test_a_training_that_is_measured_again_did_not_end() -> None:
    third = SCRIPT.model_copy(update={"outcome": "finished", "interval": 3})
    assert ending(third) == "went on when measurement 3 was over,"
    assert ending(third.model_copy(update={"outcome": "raised"})) == "ended with an exception"
