"""Edits that are tried, in which order, and how several become one variant."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pipediag.facts.run_gain import fills_a_cache
from pipediag.session.edits import Check, Edit, PredictOnBatch, touched
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.trials import Trial
from pipediag.trials.executor import Variant
from pipediag.trials.statistics import estimate, judge

RETUNE = "Changes a hyper-parameter: retune it yourself."


@dataclass(frozen=True)
class Candidate:
    """An edit that may be tried, with what its finding says of it."""

    edit: Edit
    changes_hyper_parameter: bool
    safe: bool
    condition: str | None = None
    """What only the user can decide before it is used."""
    same_as: tuple[str, ...] = ()
    """Ids of other findings' edits that make the same changes."""

    @property
    def variant(self) -> Variant:
        return Variant(self.edit.id, self.edit.changes, self.edit.check, self.edit.runs_through)

    @property
    def left_out_of_combination(self) -> str | None:
        """Return why it needs the user's decision before it is combined with others, or None."""
        if self.changes_hyper_parameter:
            return RETUNE
        if self.condition is not None:
            return f"Only {self.condition}: that is for you to decide."
        return None

    @property
    def fills_a_cache(self) -> bool:
        return fills_a_cache(self.edit)

    @property
    def changes_model(self) -> bool:
        """Return True if it has an effect that the pipeline alone can't show."""
        return "model" in touched(self.edit.changes)


def candidates(findings: Iterable[Finding]) -> list[Candidate]:
    """Return the edits of what fails or informs, each once, in the order of the findings.

    Findings stand in the order in which to deal with them, so the budget goes first to what is
    worth knowing first.
    """
    found: dict[str, Candidate] = {}
    for finding in findings:
        edit = finding.edit
        if edit is None or finding.status not in ("fail", "informative"):
            continue
        if is_of_prediction(finding) or edit.id in found:
            continue
        first = next((one for one in found.values() if one.edit.changes == edit.changes), None)
        if first is not None:
            twins = dict.fromkeys((*first.same_as, edit.id))
            found[first.edit.id] = replace(first, same_as=tuple(twins))
            continue
        found[edit.id] = Candidate(
            edit=edit,
            changes_hyper_parameter=finding.effect_on_results == "changes a hyper-parameter",
            safe=finding.effect_on_results != "not safe here",
            condition=finding.condition,
        )
    return list(found.values())


def together(chosen: list[Candidate]) -> Variant:
    """Return one variant with the changes of several edits, in the order given."""
    return Variant(
        " + ".join(one.edit.id for one in chosen),
        tuple(change for one in chosen for change in one.edit.changes),
        chosen[0].edit.check if len(chosen) == 1 else _check_for(chosen),
        any(one.edit.runs_through for one in chosen),
    )


def _check_for(chosen: list[Candidate]) -> Check | None:
    # Elements are the same as before only as far as every edit that touches them promises it.
    promised = {one.edit.check for one in chosen if "elements" in touched(one.edit.changes)}
    promised.discard("repeats")  # each was checked by itself
    if not promised or None in promised:
        return None
    return "shape" if "shape" in promised else "equal"


def is_of_prediction(finding: Finding) -> bool:
    """Return True if its edit is tried at calls of `predict`, and not in the training loop."""
    return _prediction(finding) is not None


def with_prediction_trial(session: Session, finding: Finding) -> Finding:
    """Return the finding with its trial, if pairs of calls were timed in the running script."""
    change = _prediction(finding)
    if change is None:
        return finding
    place = (change.file, change.line)
    found = next((one for one in session.predictions if (one.file, one.line) == place), None)
    if found is None or not found.is_timed:
        return finding
    pairs = zip(found.predict_ms, found.on_batch_ms, strict=True)
    ratio = estimate([predict / max(on_batch, 1e-3) for predict, on_batch in pairs])
    trial = Trial(
        state=judge(ratio.low, ratio.high),
        reason=None,
        speedup=round(ratio.value, 4),
        ci95=ratio.interval,
        blocks=ratio.rounds,
    )
    return finding.model_copy(update={"trial": trial})


def _prediction(finding: Finding) -> PredictOnBatch | None:
    changes = finding.edit.changes if finding.edit is not None else ()
    return next((one for one in changes if isinstance(one, PredictOnBatch)), None)
