"""A rule in words: what `pipediag explain` and docs/rules.md both say."""

from __future__ import annotations

from pipediag.facts.limits import Threshold
from pipediag.rules.rule import Meta

_SUBJECTS = {
    "precondition": "the machine; comes before all other advice",
    "correctness": "correctness",
    "speed": "speed",
    "quality": "how well the model learns",
}


def paragraphs(meta: Meta) -> list[tuple[str, list[str]]]:
    """Heading and lines of each paragraph, in reading order."""
    return [
        ("Looks at", [meta.looks_at]),
        ("Why it matters", [meta.why]),
        ("Thresholds", [threshold_line(t) for t in meta.thresholds] or ["None: it holds or not."]),
        ("What to change", [meta.edit]),
        ("What that might cost", [meta.cost]),
        ("At most", [_bound(meta)]),
        ("Trial", [_trial(meta)]),
        ("About", [_about(meta)]),
    ]


def threshold_line(threshold: Threshold) -> str:
    """A threshold, its unit and where it comes from, on one line."""
    return f"{threshold.name}: {threshold.value:g} {threshold.unit} ({threshold.source})"


def _bound(meta: Meta) -> str:
    if not meta.frees:
        return meta.bound
    classes = " and ".join(name.replace("_", " ") for name in meta.frees)
    return (
        f"{meta.bound} Where the rule has no bound of its own: the step over the step without "
        f"{classes}."
    )


def _trial(meta: Meta) -> str:
    if meta.untried is not None:
        return f"{meta.tried_where or 'None.'} {meta.untried}"
    tried = "The edit is applied and measured where the run allows it"
    if meta.tried_where is not None:
        return f"{tried}. {meta.tried_where}"
    informs = ", also where the rule only informs" if meta.tried_when_informing else ""
    return f"{tried}{informs}."


def _about(meta: Meta) -> str:
    needs = ", ".join(meta.needs) or "no section: it judges what there is"
    yields = ""
    if meta.sees_class_only:
        classes = " or ".join(name.replace("_", " ") for name in meta.frees)
        yields = f" Only informs where a rule fails that knows what takes {classes}."
    return (
        f"Concerns {_SUBJECTS[meta.subject]}. Severity when it fails: {meta.severity}. Effect of "
        f"the edit on results: {meta.effect_on_results}. Needs: {needs}.{yields}"
    )
