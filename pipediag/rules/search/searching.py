"""A search where rules are silent or wrong: something could be had, and none of them says how."""

from __future__ import annotations

from collections.abc import Sequence

from pipediag.facts.limits import INPUT_BOUND
from pipediag.facts.pipeline import delay_ms
from pipediag.facts.step import CALL_CLASSES, class_ms
from pipediag.rules.rule import Meta
from pipediag.rules.search.catalogue import Fitting, of_the_input, of_the_model
from pipediag.session.findings import Finding
from pipediag.session.model import Session

META = Meta(
    id="search",
    name="Search",
    title_failed="A change that no rule calls for",
    title_informative="A change that no rule calls for",
    title_passed="A search beyond the rules found nothing",
    looks_at="Runs whose verdict is that something can be had, and of which no rule has an advice "
    "that can be tried, or none whose trial confirms it while time for trials is left.",
    why="Rules know causes that were seen before. Where none of them fits, trying what there is to "
    "try costs a minute, and that nothing helps is worth knowing, too.",
    edit="Whatever a trial confirms: parallel calls, several sources at once, a cache, a prefetch, "
    "a free order, threads of its own; for the model several steps in a call, or XLA.",
    cost="That of the change.",
    bound="None; changes of what takes most go first.",
    needs=("loop", "steps", "breakdown"),
    thresholds=(INPUT_BOUND,),
    severity="info",
    effect_on_results="same results",
    tried_when_informing=True,
)

MOST = 6
"""Own choice: more would share a minute between so many that none is decided."""


def search(session: Session, findings: Sequence[Finding]) -> list[Finding]:
    """What is to be tried, of the costliest operation first; nothing where a rule has an edit."""
    if any(_has_a_way(finding) for finding in findings):
        return []
    return beyond(session, findings)


def beyond(session: Session, findings: Sequence[Finding]) -> list[Finding]:
    """What is to be tried where nothing helps that these findings call for; nothing where they are
    such a search's own already."""
    loop = session.diagnosed_loop()
    if loop is None or session.verdict.severity not in ("moderate", "high"):
        return []
    if any(finding.rule == META.id for finding in findings):
        return []
    known = [finding.edit.changes for finding in findings if finding.edit is not None]
    fitting = [one for one in _fitting(session) if one.edit.changes not in known]
    place = (loop.file, loop.line)
    return [
        META.finding(
            "informative",
            one.advice if one.condition is None else f"{one.advice} Only {one.condition}.",
            op=one.op,
            place=place if one.op is None else None,
            effect=one.effect,
            condition=one.condition,
            edit=one.edit,
        )
        for one in fitting[:MOST]
    ]


def told(findings: Sequence[Finding]) -> list[Finding]:
    """What a search came to: what it confirmed, and of all else one finding that counts it."""
    ours = [finding for finding in findings if finding.rule == META.id]
    if not ours:
        return list(findings)
    confirmed = [one for one in ours if one.trial.state == "confirmed"]
    tried = [one for one in ours if one.trial.state in ("refuted", "inconclusive")]
    others = [finding for finding in findings if finding.rule != META.id]
    return [*others, *confirmed, *_in_one(tried, also=bool(confirmed))]


def _in_one(tried: Sequence[Finding], *, also: bool) -> list[Finding]:
    """One finding of all that did not help; none where nothing was tried."""
    labels = [one.edit.label for one in tried if one.edit is not None]
    if not labels:
        return []
    count = "One change" if len(labels) == 1 else f"{len(labels)} changes"
    was = "was" if len(labels) == 1 else "were"
    more = " more" if also else ""
    undecided = any(one.trial.state == "inconclusive" for one in tried)
    ending = "none was confirmed" if undecided else "none helps"
    said = f"{count[:1].lower()}{count[1:]}{more} tried, {ending}"
    return [
        META.finding(
            "informative",
            f"{count}{more} that no rule calls for {was} tried, and {ending}: {'; '.join(labels)}.",
            title=f"A search beyond the rules: {said}",
            evidence={"tried": len(labels)},
        )
    ]


def _fitting(session: Session) -> list[Fitting]:
    """What could shorten most of the step first; of operations, the costliest."""
    of_input = of_the_input(session, META.id)
    of_input.sort(key=lambda one: -(delay_ms(session, one.op) or 0.0 if one.op else 0.0))
    if session.verdict.bottleneck == "input":
        return of_input
    of_model = of_the_model(session, META.id)
    if session.verdict.bottleneck == "overhead":
        return of_model
    waits_more = class_ms(session, ["input_wait"]) > class_ms(session, CALL_CLASSES)
    return [*of_input, *of_model] if waits_more else [*of_model, *of_input]


def _has_a_way(finding: Finding) -> bool:
    """Whether its advice on speed can be tried in the training loop, as far as is known before."""
    failed = finding.status == "fail" and not finding.about_results
    if not failed or finding.edit is None or finding.edit.loop_id is not None:
        return False
    return finding.effect_on_results != "not safe here"
