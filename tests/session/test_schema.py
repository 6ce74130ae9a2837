from __future__ import annotations

import json

import jsonschema
import pytest

from pipediag.session.schema import SCHEMA_PATH, schema_text
from pipediag.session.store import dump_session
from tests.factories import make_session


def test_the_shipped_schema_is_current() -> None:
    assert SCHEMA_PATH.read_text(encoding="utf-8") == schema_text(), (
        "The model has changed: run `python -m pipediag.session.schema`."
    )


def test_it_accepts_a_session() -> None:
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)

    jsonschema.validate(json.loads(dump_session(make_session())), schema)


def test_it_refuses_a_session_with_an_unknown_verdict() -> None:
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    session = json.loads(dump_session(make_session()))
    session["verdict"]["bottleneck"] = "network"

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(session, schema)
