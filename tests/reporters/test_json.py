from __future__ import annotations

from pipediag.reporters import json
from pipediag.session.store import dump_session
from tests import factories


def test_is_the_text_of_the_session_file() -> None:
    session = factories.make_session()

    assert dict(json.files(session)) == {"session.json": dump_session(session)}
