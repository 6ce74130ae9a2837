"""Sessions at the edges of what a report must bear."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from pipediag.session.ledger import RunSpan
from pipediag.session.model import Script, Session
from pipediag.session.trials import Combined, DroppedEdit
from pipediag.vocabulary import RUN_PARTS
from tests import factories, records
from tests.reporters import devices, trial_sessions

TRIALS = (
    trial_sessions.UNTRIED,
    trial_sessions.CONFIRMED,
    trial_sessions.UNTRIED,
    trial_sessions.REFUTED,
)
HOSTILE = "</script><img src=x onerror=alert(1)>&\"'{{ 7 * 7 }}\u2028\x1b[31m"


def nothing_measured() -> Session:
    """Killed at its start: only reasons."""
    return factories.make_session(
        script=Script(
            path="train.py", args=[], status=-9, outcome="killed", detail="Killed by SIGKILL."
        ),
        environment=records.make_environment(
            tensorflow=None, keras=None, keras_backend=None, devices=[], cpu_model=None
        ),
        verdict=factories.make_verdict(
            bottleneck="inconclusive",
            severity="unknown",
            confidence="low",
            summary="No verdict: the script was killed before a step was seen.",
            reasons=[],
            file=None,
            line=None,
            op_id=None,
        ),
        steps=None,
        steps_missing="no-steps-reason",
        breakdown=None,
        breakdown_missing="no-breakdown-reason",
        input_wait=None,
        perturbation=None,
        differential=None,
        ceiling=None,
        pipeline=None,
        pipeline_missing="no-pipeline-reason",
        devices=[],
        host=None,
        host_missing="no-host-reason",
        findings=[],
        combined_missing=None,
        loops=[],
        step_rows=[],
        host_samples=[],
    )


def profiled(**overrides: object) -> Session:
    """Forty steps of the baseline and ten of the profile, with a gap in its second and third."""
    steps = factories.make_step_rows()
    row = steps[0].but(window="profile", duration_ms=12.0, input_wait_ms=None)
    profile = [row.but(index=40 + n, start_ms=4500.0 + 12.0 * n) for n in range(10)]
    gaps = [
        devices.make_gap(start_ms=13.0, duration_ms=2.0, step=1),
        devices.make_gap(start_ms=30.0, duration_ms=1.0, step=2),
    ]
    values = {
        "step_rows": [*steps, *profile],
        "devices": [devices.make_gpu(gaps=gaps)],
        **overrides,
    }
    return factories.make_session(**values)


def passed() -> Session:
    """Parts of a run on a timeline."""
    spans = [
        RunSpan(part="startup", start_ms=-500.0, duration_ms=3000.0, what="imports"),
        RunSpan(part=None, start_ms=2500.0, duration_ms=500.0),
        RunSpan(part="steps", start_ms=3000.0, duration_ms=1620.0),
    ]
    return factories.make_session(run=factories.make_run(spans=spans))


def enormous() -> Session:
    """Many of everything, and texts without an end."""
    endless = "word " * 4000
    unbroken = "/very" * 400
    operations = [
        records.make_operation(
            f"map_{index}",
            "map",
            file=f"{unbroken}/data.py",
            code="ds = " + "f(" * 2000,
            parent_ids=[f"map_{index - 1}"] if index else [],
            self_ms_per_step=float(index % 7),
        )
        for index in range(300)
    ]
    findings = [
        factories.make_finding(
            f"rule-{index}",
            title=endless,
            advice=endless,
            op_id=f"map_{index}",
            status="fail" if index % 2 else "pass",
            edit=dataclasses.replace(trial_sessions.PARALLEL, id=f"rule-{index}", label=endless),
            trial=TRIALS[index % len(TRIALS)].but(caveats=[endless]),
        )
        for index in range(120)
    ]
    parts = [
        factories.make_part(
            part, 1.0 + index, 9000.0, what=endless, line=index, file=f"{unbroken}/train.py"
        )
        for part in RUN_PARTS
        for index in range(40)
    ]
    kernels = [devices.make_gpu().kernels[0].but(name=unbroken)] * 20
    gaps = [devices.make_gap(start_ms=float(index), doing=unbroken) for index in range(500)]
    return factories.make_session(
        run=factories.make_run(parts=parts),
        devices=[
            devices.make_gpu(name=f"GPU:{index}", model=endless, gaps=gaps, kernels=kernels)
            for index in range(20)
        ],
        script=Script(path="train.py", args=[unbroken * 5] * 20, outcome="stopped"),
        verdict=factories.make_verdict(
            summary=endless, reasons=[endless] * 30, next_steps=[endless] * 30
        ),
        pipeline=records.make_pipeline(ops=operations, bottleneck_op_id="map_150"),
        findings=findings,
        trials=trial_sessions.make_run(
            notes=[endless] * 30,
            blocks=trial_sessions.make_blocks(*(f"rule-{n}" for n in range(120)), rounds=40),
        ),
        combined=Combined(
            findings=[f"rule-{index}" for index in range(1, 120, 4)],
            speedup=3.0,
            ci95=(2.9, 3.1),
            dropped=[DroppedEdit(edit=f"rule-{index}", reason=endless) for index in range(60)],
        ),
        loops=[
            factories.make_loop(id=f"loop_{index}", role_reason=endless, diagnosed=index == 0)
            for index in range(80)
        ],
        notes=[endless] * 60,
    )


SESSIONS: dict[str, Callable[[], Session]] = {
    "input-bound": factories.make_session,
    "compute-bound": factories.make_compute_bound_session,
    "on a GPU": lambda: factories.make_session(devices=[devices.make_gpu()]),
    "nothing measured": nothing_measured,
    "enormous": enormous,
    "everything tried": trial_sessions.everything_tried,
    "pipeline only": trial_sessions.pipeline_only,
}
