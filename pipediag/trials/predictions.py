"""The trial of `predict_on_batch`, from pairs of calls that were timed in the running script."""

from __future__ import annotations

from pipediag.session.edits import PredictOnBatch
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.trials import Trial
from pipediag.trials.statistics import estimate, judge


def is_of_prediction(finding: Finding) -> bool:
    """Return True if its edit is tried at calls of `predict`, and not in the training loop."""
    changes = finding.edit.changes if finding.edit is not None else ()
    return any(isinstance(one, PredictOnBatch) for one in changes)


def with_prediction_trial(session: Session, finding: Finding) -> Finding:
    """Return the finding with its trial, if its edit was tried at calls of `predict`."""
    changes = finding.edit.changes if finding.edit is not None else ()
    change = next((one for one in changes if isinstance(one, PredictOnBatch)), None)
    found = next(
        (
            one
            for one in session.predictions
            if change is not None and (one.file, one.line) == (change.file, change.line)
        ),
        None,
    )
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
