from __future__ import annotations

import json

from pipediag.reporters.html.embedded import embed
from pipediag.session.model import Session
from tests import factories
from tests.reporters import sessions


def test_no_character_can_end_the_script_element() -> None:
    text = embed(sessions.hostile(), 100_000).text

    assert not set("<>&\u2028\u2029") & set(text)
    assert Session.model_validate(json.loads(text)) == sessions.hostile()


def test_nothing_is_left_out_of_what_fits() -> None:
    assert embed(factories.make_session(), 100_000).left_out == []


def test_rows_go_first_and_the_rest_stays_a_session() -> None:
    session = factories.make_session(step_rows=factories.make_step_rows() * 2000)

    embedded = embed(session, 100_000)

    assert embedded.left_out == ["single steps (in steps.csv)"]
    kept = Session.model_validate(json.loads(embedded.text))
    assert kept == session.model_copy(update={"step_rows": []})


def test_everything_bulky_goes_before_the_session_goes() -> None:
    small = factories.make_session()
    size = len(embed(small, 100_000).text)

    embedded = embed(small, size // 3)

    assert "findings (in findings.csv)" in embedded.left_out
    assert len(embedded.text) <= size // 3
    assert Session.model_validate(json.loads(embedded.text)).verdict == small.verdict


def test_what_cannot_be_made_to_fit_is_null() -> None:
    assert embed(sessions.enormous(), 100_000).text == "null"
