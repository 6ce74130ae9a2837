"""How much of a step its graph works on text: by the profile, in milliseconds of the clock."""

from __future__ import annotations

from pipediag.measures.missing import Missing
from pipediag.session.steps import Steps
from pipediag.session.text_work import TextWork
from pipediag.trace.summary import TraceSummary

NO_PROFILE = "There is no profile whose steps could be looked at."


def measure_text_work(
    steps: Steps | Missing, trace: TraceSummary | None, trace_missing: str | None
) -> TextWork | Missing:
    """The share of the step, and of which types of operations; zero where there are none."""
    if isinstance(steps, Missing):
        return steps
    if trace is None or trace.steps is None or trace.text is None:
        return Missing(trace_missing or NO_PROFILE)
    whole_ns = float(trace.steps.durations_ns.sum())
    if not whole_ns:
        return Missing(NO_PROFILE)
    percents = {kind: 100.0 * ns / whole_ns for kind, ns in trace.text.by_type.items()}
    percent = 100.0 * trace.text.total_ns / whole_ns
    return TextWork(
        percent=percent,
        ms=steps.mean_ms * percent / 100.0,
        operations=dict(sorted(percents.items(), key=lambda item: -item[1])),
    )
