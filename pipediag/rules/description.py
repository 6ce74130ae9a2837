"""A rule in words: what `pipediag explain` says."""

from __future__ import annotations

from collections.abc import Sequence

from pipediag.facts.limits import Threshold
from pipediag.rules.rule import Meta

_SUBJECTS = {
    "precondition": "the machine; comes before all other advice",
    "correctness": "correctness",
    "speed": "speed",
    "quality": "how well the model learns",
}


def paragraphs(causes: Sequence[Meta]) -> list[tuple[str, list[str]]]:
    """Return heading and lines of each paragraph on the causes that a rule looks at."""
    found: list[tuple[str, list[str]]] = []
    for meta in causes:
        found += [
            (meta.title_failed if len(causes) > 1 else "Why it matters", [meta.why]),
            ("What to change", [meta.edit]),
            ("What that might cost", [meta.cost]),
            ("Thresholds", [threshold_line(one) for one in meta.thresholds] or ["None."]),
            ("Trial", [_trial(meta)]),
        ]
    return [*found, ("About", [_about(causes[0])])]


def threshold_line(threshold: Threshold) -> str:
    """Return a threshold, its unit and where it comes from, on one line."""
    return f"{threshold.name}: {threshold.value:g} {threshold.unit} ({threshold.source})"


def _trial(meta: Meta) -> str:
    if meta.untried is not None:
        return f"None. {meta.untried}"
    informs = ", also where the rule only informs" if meta.tried_when_informing else ""
    return f"The edit is applied and measured where the run allows it{informs}."


def _about(meta: Meta) -> str:
    return (
        f"Concerns {_SUBJECTS[meta.subject]}. Severity when it fails: {meta.severity}. Effect of "
        f"the edit on results: {meta.effect_on_results}."
    )
