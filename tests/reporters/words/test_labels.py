from __future__ import annotations

from pipediag.reporters.words.labels import ending
from tests.factories import make_session

SCRIPT = make_session().script


def test_a_run_is_told_by_how_it_ended() -> None:
    assert ending(SCRIPT.model_copy(update={"outcome": "killed"})) == "was killed"
