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
why it matters, what to change, and where its thresholds come from. [Recipes](recipes.md) have code
for the commonest.

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
    first = rules[0]
    for rule in rules:
        yield (
            ("Why it matters", [rule.why])
            if rule is first is rules[-1]
            else (rule.title, [rule.why])
        )
        yield "What to change", [rule.fix]
    untried = dict.fromkeys(rule.untried for rule in rules if rule.untried)
    if untried:
        yield "If nothing is tried", [reason for reason in untried if reason]
    limits = dict.fromkeys(one for rule in rules for one in rule.thresholds)
    if limits:
        said = [f"{one.name}: {one.value:g} {one.unit} ({one.source})" for one in limits]
        yield "Thresholds", said
    about = f"Concerns {_SUBJECTS[first.subject]}. Severity: {first.severity}."
    yield "About", [f"{about} Effect on results: {first.effect}."]


if __name__ == "__main__":
    PAGE.write_text(markdown(), encoding="utf-8")
