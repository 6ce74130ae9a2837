"""The rules in words: what `pipediag explain` prints, and the table in docs/rules.md.

`python -m pipediag.rules.reference` writes docs/rules.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pipediag.rules.registry import BY_ID
from pipediag.rules.rule import Rule

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
    """Return the whole page: a table with one line for each id."""
    rows = (
        f"| `{name}` | {'; '.join(rule.title for rule in rules)} | {rules[0].severity} |"
        for name, rules in BY_ID.items()
    )
    return _HEAD + "\n".join(rows) + "\n"


def paragraphs(rules: Sequence[Rule]) -> Iterator[tuple[str, list[str]]]:
    """Yield heading and lines of each paragraph on the rules of one id."""
    for rule in rules:
        yield rule.title if len(rules) > 1 else "Why it matters", [rule.why]
        yield "What to change", [rule.fix]
        if rule.thresholds:
            yield (
                "Thresholds",
                [f"{one.name}: {one.value:g} {one.unit} ({one.source})" for one in rule.thresholds],
            )
        if rule.untried is not None:
            yield "Why no trial measures it", [rule.untried]
    first = rules[0]
    yield (
        "About",
        [
            f"Concerns {_SUBJECTS[first.subject]}. Severity: {first.severity}. Effect on results: "
            f"{first.effect}."
        ],
    )


if __name__ == "__main__":
    PAGE.write_text(markdown(), encoding="utf-8")
