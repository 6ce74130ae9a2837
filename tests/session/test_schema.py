from __future__ import annotations

import json
import subprocess
import sys

import jsonschema
import pytest

from pipediag.session.model import Session
from pipediag.session.reference import PAGE, table, with_table
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


def test_the_committed_page_is_current() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_table(page), "run python -m pipediag.session.reference"


def test_every_section_has_a_row_with_words() -> None:
    rows = dict(row[3:-2].split("` | ") for row in table().splitlines()[2:])
    assert set(rows) == {name for name in Session.model_fields if not name.endswith("_missing")}
    assert not [name for name, words in rows.items() if not words], "give them a docstring"


PROGRAM = """
from pipediag.session.record import build_validators
from pipediag.session.devices import TraceHost, TraceReport, TraceSteps

built = lambda: [record.__pydantic_complete__ for record in (TraceReport, TraceHost, TraceSteps)]
print(built())
build_validators(TraceReport)
print(built())
"""


def test_validators_are_built_of_the_record_and_of_those_in_it() -> None:
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )

    assert said.stdout.splitlines() == ["[False, False, False]", "[True, True, True]"], said.stderr
