"""A run with something in every lane, and one with more than a page can hold."""

from __future__ import annotations

from pipediag.session.ledger import RunSpan
from pipediag.session.model import Session
from tests import factories
from tests.reporters import trial_sessions
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
