"""The JSON Schema of `session.json`: generated from the model, shipped beside it.

`python -m pipediag.session.schema` writes it anew after the model has changed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pipediag.session.model import Session

SCHEMA_PATH = Path(__file__).with_name("schema.json")
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def session_schema() -> dict[str, Any]:
    """The schema of the session as this version of pipediag writes it."""
    return {"$schema": DIALECT, **Session.model_json_schema(mode="serialization")}


def schema_text() -> str:
    """The schema as it is shipped."""
    return json.dumps(session_schema(), indent=1) + "\n"


if __name__ == "__main__":
    SCHEMA_PATH.write_text(schema_text(), encoding="utf-8")
