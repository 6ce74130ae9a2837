"""The sessions of real runs that the gallery's pages are made of, and hold."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from pipediag.session.files import SESSION_FILE
from pipediag.session.model import Session
from pipediag.session.store import load_session
from tests.reporters.html.pages import Page

ROOT = Path(__file__).parents[2]
GALLERY = ROOT / "docs" / "gallery"
RECORDED = ROOT / "reports" / "gallery"
"""What runs on this machine left, which git ignores."""


def last_run(sample: str) -> Session:
    """That of this machine, where there was one; else the one in the page."""
    file = RECORDED / f"{sample}.json"
    return load_session(file) if file.exists() else session_of(sample)


@cache
def session_of(sample: str) -> Session:
    """The one that the sample's page holds."""
    page = Page((GALLERY / f"{sample}.html").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, SESSION_FILE)
        file.write_text(page.attached()[SESSION_FILE], encoding="utf-8")
        return load_session(file)
