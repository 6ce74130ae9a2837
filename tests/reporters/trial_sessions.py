"""Sessions in which something was tried, or was not for a reason."""

from __future__ import annotations

from typing import Any

from pipediag.facts.order import in_order
from pipediag.session.edits import Edit, Insert, SetModel, SetParameters
from pipediag.session.findings import Finding, LeftOut, Patch
from pipediag.session.model import Session
from pipediag.session.trials import (
    Combined,
    DroppedEdit,
    PipelineAlone,
    Trial,
    TrialBlock,
    TrialRun,
)
from pipediag.vocabulary import BASE, TrialState
from tests import factories

PARALLEL = Edit(
    "parallel-map:map_0",
    "16 parallel calls on the map in line 12",
    (SetParameters("map_0", {"num_parallel_calls": 16}),),
    check="equal",
)
BATCH = Edit(
    "small-batch:batch_0",
    "batch(128) in line 13",
    (SetParameters("batch_0", {"batch_size": 128}),),
    check="shape",
)
PREFETCH = Edit(
    "tf-data-defaults:batch_0",
    "prefetch(AUTOTUNE) after the batch in line 13",
    (Insert("batch_0", "prefetch", {"buffer_size": -1}),),
    check="equal",
)
CACHE = Edit(
    "missing-cache:map_0",
    "cache() after the map in line 12",
    (Insert("map_0", "cache"),),
    caveat="Measured once the cache is filled.",
)
JIT = Edit("host-overhead", "jit_compile=True", (SetModel({"jit_compile": True}),))


def made(state: TrialState, speedup: float, ci95: tuple[float, float], **more: Any) -> Trial:
    values = {"reason": None, "blocks": 8, "consumer": "training", **more}
    return Trial(state=state, speedup=speedup, ci95=ci95, **values)


SHUFFLED = "The shuffle starts anew in each block."
CONFIRMED = made("confirmed", 1.94, (1.88, 2.01), caveats=[SHUFFLED])
BIGGER_BATCH = made("confirmed", 1.62, (1.55, 1.7))
CACHED = made("confirmed", 1.9, (1.8, 2.0), blocks=6)
REFUTED = made("refuted", 1.0, (0.98, 1.02))
USED_UP = "The time for trials was used up before it was decided."
UNDECIDED = made("inconclusive", 1.05, (0.97, 1.14), blocks=4, reason=USED_UP)
UNTRIED = Trial(
    state="not_tried", reason="The map calls a random function, which can't be replayed."
)


def make_blocks(*arms: str, rounds: int = 2) -> list[TrialBlock]:
    return [
        TrialBlock(arm=arm, round=index, examples_per_s=3200.0, batches=100, duration_ms=1000.0)
        for index in range(rounds)
        for arm in (BASE, *arms)
    ]


def make_run(**overrides: Any) -> TrialRun:
    values: dict[str, Any] = {
        "loop_id": "loop_0",
        "consumer": "training",
        "budget_s": 60.0,
        "used_s": 52.4,
        "blocks": make_blocks(PARALLEL.id, BATCH.id, CACHE.id, PREFETCH.id, JIT.id),
    }
    return TrialRun(**{**values, **overrides})


def make_findings() -> list[Finding]:
    """Three confirmed, one refuted, one inconclusive, one not tried; none in that order."""
    return [
        factories.make_finding(
            "tf-data-defaults", title="Nothing is prefetched", edit=PREFETCH, trial=REFUTED
        ),
        factories.make_finding(
            "random-map",
            title="A random map runs one element at a time",
            speedup_at_most=1.3,
            trial=UNTRIED,
        ),
        factories.make_finding(
            "host-overhead",
            severity="warn",
            title="Launching costs as much as computing",
            effect_on_results="same up to order or rounding",
            speedup_at_most=1.2,
            edit=JIT,
            trial=UNDECIDED,
        ),
        factories.make_finding(
            "small-batch",
            severity="warn",
            title="The batch is small",
            line=13,
            effect_on_results="changes a hyper-parameter",
            speedup_at_most=1.8,
            edit=BATCH,
            trial=BIGGER_BATCH,
        ),
        factories.make_finding(
            "missing-cache", severity="warn", title="The data would fit", edit=CACHE, trial=CACHED
        ),
        factories.make_finding(
            edit=PARALLEL, trial=CONFIRMED, advice="Pass num_parallel_calls=16."
        ),
    ]


def everything_tried() -> Session:
    """Confirmed, refuted, inconclusive and not tried; two of three confirmed go together."""
    return factories.make_session(
        findings=in_order(make_findings()),
        trials=make_run(),
        combined=Combined(
            findings=[PARALLEL.id, BATCH.id],
            speedup=3.1,
            ci95=(2.9, 3.3),
            blocks=6,
            dropped=[DroppedEdit(edit=CACHE.id, reason="With the parallel map it gains nothing.")],
        ),
        combined_missing=None,
        pipeline_alone=PipelineAlone(step_ms=9.8, ci95_ms=(9.6, 10.0), blocks=4),
    )


def pipeline_only() -> Session:
    """The loop could not be kept, so only the pipeline was measured with and without the edit."""
    trial = CONFIRMED.but(
        consumer="pipeline alone",
        speedup=4.16,
        ci95=(4.16, 4.16),
        basis="pipeline",
        pipeline_speedup=14.0,
        pipeline_ci95=(11.2, 18.9),
    )
    return factories.make_session(
        findings=[factories.make_finding(edit=PARALLEL, trial=trial)],
        trials=make_run(
            consumer="pipeline alone",
            blocks=make_blocks(PARALLEL.id),
            notes=[
                "The training loop runs inside a tf.function, whose iterator can't be switched."
            ],
        ),
        combined=Combined(
            findings=[PARALLEL.id],
            speedup=4.16,
            ci95=(4.16, 4.16),
            blocks=8,
            basis="pipeline",
            pipeline_speedup=14.0,
            pipeline_ci95=(11.2, 18.9),
        ),
        combined_missing=None,
        pipeline_alone=PipelineAlone(step_ms=9.8, ci95_ms=(9.6, 10.0), blocks=4),
        differential=None,
    )


DIFF = """--- a/train.py
+++ b/train.py
@@ -10,4 +10,5 @@
 dataset = tf.data.Dataset.from_tensor_slices((features, labels))
-dataset = dataset.map(augment)  # a line that is longer than a narrow window, as many are there
+dataset = dataset.map(augment, num_parallel_calls=16)  # a line that is longer than a window
+dataset = dataset.cache()
 dataset = dataset.batch(32)
"""


def patched() -> Session:
    """Findings with a patch, with code to paste, and a patch of all."""
    session = everything_tried()
    by_hand = Patch(
        left_out=[LeftOut(edit="e", reason="The call stands in a loop.", snippet=".cache()")]
    )
    patches = [Patch(edits=[PARALLEL.id], diff=DIFF), by_hand]
    findings = [
        finding.but(patch=patches[index]) if index < len(patches) else finding
        for index, finding in enumerate(session.findings)
    ]
    together = Patch(edits=[PARALLEL.id, CACHE.id], diff=DIFF)
    return session.but(findings=findings, patch=together)
