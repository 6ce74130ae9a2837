"""The forms in which `check` prints its results, by the name that `--format` takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pipediag.gate.formats.github import render_github
from pipediag.gate.formats.markdown import render_markdown
from pipediag.gate.formats.text import render_text
from pipediag.gate.result import GateResult

FORMATS: dict[str, Callable[[Sequence[GateResult]], str]] = {
    "text": render_text,
    "github": render_github,
    "markdown": render_markdown,
}
