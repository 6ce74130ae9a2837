"""Real sessions of every version of the schema, and the shape of each version that has a minor."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

from pipediag.session.model import SCHEMA_VERSION

FOLDER = Path(__file__).parent
SUMS = FOLDER / "SHA256SUMS"
SCRIPT = FOLDER / "train.py"


def sessions() -> list[Path]:
    return sorted(FOLDER.glob("*.json.gz"))


def session_of(version: str = SCHEMA_VERSION) -> Path:
    return FOLDER / f"{version}.json.gz"


def shape_of(version: str = SCHEMA_VERSION) -> Path:
    return FOLDER / f"{version}.shape.txt"


def text_of(session: Path) -> str:
    return gzip.decompress(session.read_bytes()).decode()


def sums() -> str:
    """The digest of each session, as `sha256sum` prints them."""
    return "".join(
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sessions()
    )
