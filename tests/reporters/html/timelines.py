"""A run with something in every lane, and one with more than a page can hold."""

from __future__ import annotations

import random

from pipediag.session.ledger import RunSpan
from pipediag.session.model import Session
from pipediag.session.steps import StepRow
from tests import factories, records
from tests.reporters import devices, trial_sessions
from tests.reporters.tables.test_joined import profiled


def passed() -> Session:
    """Parts, windows, steps, gaps, trials, CPU and memory."""
    session = profiled()
    spans = [
        RunSpan(part="startup", start_ms=-500.0, duration_ms=3000.0, what="imports"),
        RunSpan(part=None, start_ms=2500.0, duration_ms=500.0),
        RunSpan(part="steps", start_ms=3000.0, duration_ms=1620.0),
    ]
    blocks = [
        block.model_copy(update={"since_began_ms": 500.0 * n, "duration_ms": 400.0})
        for n, block in enumerate(trial_sessions.make_run().blocks[:6])
    ]
    trials = trial_sessions.make_run(start_ms=4700.0, blocks=blocks)
    return session.model_copy(
        update={
            "run": factories.make_run(spans=spans),
            "trials": trials,
            "findings": trial_sessions.make_findings(),
        }
    )


def long_run(steps: int = 50_000, gaps: int = 20_000, operations: int = 5_000) -> Session:
    """Steps of about 10 ms, the last thousand profiled; gaps in those, of three causes.

    The operations stand in a row, each a map.
    """
    rng = random.Random(7)
    rows: list[StepRow] = []
    at_ms = 1000.0
    for index in range(steps):
        duration = round(rng.uniform(8.0, 14.0), 6)
        rows.append(
            StepRow(
                index=index,
                window="baseline" if index < steps - 1000 else "profile",
                block=0,
                start_ms=at_ms,
                duration_ms=duration,
                input_wait_ms=round(rng.uniform(0.0, duration), 6),
                batches=1,
            )
        )
        at_ms += duration
    profile = rows[-1000:]
    each = max(1, gaps // len(profile))
    found = [
        devices.make_gap(
            start_ms=row.start_ms - profile[0].start_ms + n * row.duration_ms / each,
            duration_ms=row.duration_ms / each * rng.uniform(0.1, 0.9),
            cause=rng.choice(("input", "launch", "python")),
            step=step,
        )
        for step, row in enumerate(profile)
        for n in range(each)
    ]
    ops = [
        records.make_operation(
            f"map_{n}",
            file=factories.SCRIPT,
            line=n + 1,
            code=f"dataset = dataset.map(stage_{n})",
            parent_ids=[f"map_{n - 1}"] if n else [],
            self_ms_per_step=rng.uniform(0.0, 0.01),
        )
        for n in range(operations)
    ]
    return factories.make_session(
        step_rows=rows,
        devices=[devices.make_gpu(gaps=found)],
        run=factories.make_run(),
        pipeline=records.make_pipeline(ops=ops, bottleneck_op_id="map_0"),
    )
