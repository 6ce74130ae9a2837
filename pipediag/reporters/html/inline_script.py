"""The page's own script, and the policy that lets this one run and no other."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

from markupsafe import Markup

PARTS = ("start", "theme", "tables", "search", "files", "drawing", "timeline")
"""In the order in which they run; each is a file of `templates/script`."""


@cache
def script() -> Markup:
    """The text between the tags, as it is hashed: without comments and indents, for its size."""
    folder = files("pipediag.reporters.html").joinpath("templates", "script")
    parts = (folder.joinpath(f"{part}.js").read_text(encoding="utf-8") for part in PARTS)
    lines = (line.strip() for part in parts for line in part.split("\n"))
    kept = "\n".join(line for line in lines if line and not line.startswith("//"))
    return Markup(f'"use strict";\n(() => {{\n{kept}\n}})();\n')  # files of ours alone


@cache
def policy() -> str:
    """A Content-Security-Policy: nothing is fetched, and no other script runs."""
    digest = base64.b64encode(hashlib.sha256(script().encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
