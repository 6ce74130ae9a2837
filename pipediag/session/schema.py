"""The JSON Schema of `session.json`, shipped next to it, and the table of keys in docs/session.md.

Both are made of the model and the docstrings that stand below its fields: run
`python -m pipediag.session.schema` after the model has changed.
"""

from __future__ import annotations

import ast
import inspect
import json
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from pipediag.session.model import Session

SCHEMA_PATH = Path(__file__).with_name("schema.json")
DIALECT = "https://json-schema.org/draft/2020-12/schema"


class _Described(GenerateJsonSchema):
    """Each key bears the docstring below it in the model, read from the sources only when asked."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        return _described(super().model_schema(schema), schema["cls"])

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        return _described(super().dataclass_schema(schema), schema["cls"])


def _described(schema: JsonSchemaValue, record: type) -> JsonSchemaValue:
    for parent in record.__mro__:
        if parent.__module__.startswith("pipediag."):
            for key, words in _docstrings(parent).items():
                schema["properties"][key].setdefault("description", words)
    return schema


def _docstrings(record: type) -> dict[str, str]:
    """Return the string that stands below each attribute."""
    [definition] = ast.parse(dedent(inspect.getsource(record))).body
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for attribute, below in pairwise(definition.body):
        match attribute, below:
            case (
                ast.AnnAssign(target=ast.Name(id=key)),
                ast.Expr(value=ast.Constant(value=str(words))),
            ):
                found[key] = inspect.cleandoc(words)
    return found


def session_schema() -> dict[str, Any]:
    """Return the schema of the session as this version of pipediag writes it."""
    described = Session.model_json_schema(mode="serialization", schema_generator=_Described)
    return {"$schema": DIALECT, **described}


def schema_text() -> str:
    """Return the schema as it is shipped."""
    return json.dumps(session_schema(), indent=1) + "\n"


PAGE = Path(__file__).parents[2] / "docs" / "session.md"

_BEGIN = "<!-- Made by `python -m pipediag.session.schema`. -->\n"
_END = "<!-- The rest is written by hand. -->\n"


def table() -> str:
    """Return a row for each key of the session; why one is missing needs no row of its own."""
    keys = session_schema()["properties"]
    rows = [
        f"| `{name}` | {' '.join(key.get('description', '').split())} |"
        for name, key in keys.items()
        if not name.endswith("_missing")
    ]
    return "\n".join(["| key | what it holds |", "|---|---|", *rows]) + "\n"


def with_table(page: str) -> str:
    """Return the page with the table as it should be."""
    before, rest = page.split(_BEGIN)
    after = rest.split(_END)[1]
    return f"{before}{_BEGIN}{table()}{_END}{after}"


if __name__ == "__main__":
    SCHEMA_PATH.write_text(schema_text(), encoding="utf-8")
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
