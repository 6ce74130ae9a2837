"""`predict` called for one small batch after another, where `predict_on_batch` gives the same."""

from __future__ import annotations

from pathlib import Path

from pipediag.facts.evaluations import small_predictions
from pipediag.rules.rule import Meta
from pipediag.rules.run_parts import THRESHOLDS, weigh
from pipediag.session.edits import Edit, PredictOnBatch
from pipediag.session.findings import Finding
from pipediag.session.model import Session

SMALL_PREDICT = Meta(
    id="small-predict",
    name="Small predict",
    title_failed="`predict` is called for one small batch after another",
    title_passed="No `predict` is called for small batches",
    why="`predict` makes a dataset and an iterator in each call: for 2,000 rows 99 ms on one "
    "machine, of which the model took 0.8 ms. `predict_on_batch` runs the model alone.",
    edit="Call `predict_on_batch(x)` instead of `predict(x)`; better still, predict all rows in "
    "one call.",
    cost="All rows go through the model at once, so they must fit in memory.",
    needs=("run",),
    thresholds=THRESHOLDS,
    severity="warn",
    effect_on_results="same results",
    untried="It is timed where `predict` is called, while changes are tried.",
)


def check_small_predict(session: Session) -> list[Finding]:
    """Return one finding for each line whose calls were timed and take a part of the run."""
    run = session.run
    assert run is not None
    found = []
    for seen in small_predictions(session):
        calls_s = sum(seen.prediction.predict_ms)
        batches_s = sum(seen.prediction.on_batch_ms)
        saved_s = seen.taken_s * max(0.0, 1.0 - batches_s / calls_s)
        weight = weigh(run, seen.rows, saved_s)
        if weight.status == "pass":
            continue
        name, line = Path(seen.prediction.file).name, seen.prediction.line
        count = len(seen.prediction.predict_ms)
        advice = (
            f"Call `predict_on_batch(x)` instead of `predict(x, ...)` at {name}:{line}: a call for "
            f"{seen.prediction.rows:,} rows takes {calls_s / count:.2g} ms, and "
            f"`predict_on_batch` {batches_s / count:.2g} ms with the same results. One call for "
            "all rows saves more."
        )
        found.append(
            SMALL_PREDICT.finding(
                weight.status,
                advice if weight.status == "fail" else f"{weight.sentence} {advice}",
                place=(seen.prediction.file, line),
                evidence={
                    **weight.evidence,
                    "predict_ms": calls_s / count,
                    "predict_on_batch_ms": batches_s / count,
                    "rows": seen.prediction.rows,
                },
                edit=Edit(
                    id=f"{SMALL_PREDICT.id}:{name}:{line}",
                    label=f"predict_on_batch in place of predict in line {line}",
                    changes=(PredictOnBatch(seen.prediction.file, line),),
                ),
                part="evaluation",
                for_run=weight.for_run,
                speedup_at_most=weight.speedup_at_most,
            )
        )
    return found or [SMALL_PREDICT.finding("pass", "", part="evaluation")]
