"""Rows that a long benchmark has made, a line of JSON each: a call may be ended at any time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pipediag.session.files import write_text


def read_rows(file: Path) -> list[dict[str, Any]]:
    """Those of earlier calls, none without a file."""
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def keep_rows(file: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """All of them, at once."""
    write_text(file, "".join(f"{json.dumps(row)}\n" for row in rows))
