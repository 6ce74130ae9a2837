"""Rules in words: what `pipediag explain` prints, and the table in docs/rules.md.

`python -m pipediag.rules.reference` writes docs/rules.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipediag.rules.registry import CAUSES
from pipediag.rules.rule import Meta

PAGE = Path(__file__).parents[2] / "docs" / "rules.md"

_HEAD = """\
# Rules

Each rule reads a session and says whether one thing slows training or spoils its results. A rule
about speed fails only where the measurement says that it matters. `pipediag explain RULE` prints
why it matters, what to change, and where its thresholds come from.

This page is made by `python -m pipediag.rules.reference`.

| Rule | What it advises | Severity |
|---|---|---|
"""
_SUBJECTS = {
    "precondition": "the machine; comes before all other advice",
    "correctness": "correctness",
    "speed": "speed",
    "quality": "how well the model learns",
}


def markdown() -> str:
    """Return the whole page: a table with one line for each rule."""
    rows = (
        f"| `{rule}` | {'; '.join(meta.title_failed for meta in causes)} | {causes[0].severity} |"
        for rule, causes in CAUSES.items()
    )
    return _HEAD + "\n".join(rows) + "\n"


def paragraphs(causes: Sequence[Meta]) -> list[tuple[str, list[str]]]:
    """Return heading and lines of each paragraph on the causes that a rule covers."""
    found: list[tuple[str, list[str]]] = []
    for meta in causes:
        limits = [f"{one.name}: {one.value:g} {one.unit} ({one.source})" for one in meta.thresholds]
        found += [
            (meta.title_failed if len(causes) > 1 else "Why it matters", [meta.why]),
            ("What to change", [meta.edit]),
            ("What that might cost", [meta.cost]),
            ("Thresholds", limits or ["None."]),
            ("Trial", [_trial(meta)]),
        ]
    first = causes[0]
    about = (
        f"Concerns {_SUBJECTS[first.subject]}. Severity when it fails: {first.severity}. Effect of "
        f"the edit on results: {first.effect_on_results}."
    )
    return [*found, ("About", [about])]


def _trial(meta: Meta) -> str:
    if meta.untried is not None:
        return f"None. {meta.untried}"
    informs = ", also where the rule only informs" if meta.tried_when_informing else ""
    return f"The edit is applied and measured where the run allows it{informs}."


if __name__ == "__main__":
    PAGE.write_text(markdown(), encoding="utf-8")
