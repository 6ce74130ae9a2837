"""The page's own script, the policy that lets this one run and no other, and its style sheet."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files

from markupsafe import Markup

_BLANKS = re.compile(r"(?<=[:;,{}])\s+|\s+(?=[{}])")
"""Not those before a colon, which in a selector stand for any child; none of them is in a text."""


@cache
def script() -> Markup:
    """Return the text between the tags, as it is hashed: without comments and indents."""
    file = files("pipediag.reporters.html").joinpath("templates", "copy.js")
    lines = (line.strip() for line in file.read_text(encoding="utf-8").split("\n"))
    kept = "\n".join(line for line in lines if line and not line.startswith("//"))
    return Markup(f'"use strict";\n(() => {{\n{kept}\n}})();\n')  # a file of ours alone


@cache
def style() -> Markup:
    """The style sheet without blanks that say nothing, a tenth of it: each page has it."""
    sheet = files("pipediag.reporters.html").joinpath("templates", "report.css")
    text = sheet.read_text(encoding="utf-8")
    return Markup(_BLANKS.sub("", text).strip())  # a file of ours alone


@cache
def policy() -> str:
    """A Content-Security-Policy: nothing is fetched, and no other script runs."""
    digest = base64.b64encode(hashlib.sha256(script().encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
