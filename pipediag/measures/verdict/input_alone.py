"""The verdict on a pipeline that nothing consumed: what it gives, and what costs most in it."""

from __future__ import annotations

from pipediag.facts.names import exact_time
from pipediag.measures.step.differential import FEWEST_STEPS
from pipediag.measures.verdict.culprits import input_culprit
from pipediag.measures.verdict.wording import costs_most
from pipediag.session.findings import Verdict
from pipediag.session.model import Session

NOTHING_TRAINED = (
    "Nothing was trained: whether a training waits for this pipeline depends on how long its step "
    "takes."
)


def decide_input_alone(session: Session) -> Verdict:
    """The session's verdict in the words of a pipeline by itself.

    It is `input` by construction, whatever its waits are, so its severity is `unknown`. Where too
    little was measured, the verdict stays what it is.
    """
    verdict, steps = session.verdict, session.steps
    if steps is None or steps.count < FEWEST_STEPS:
        return verdict
    text = f"The pipeline alone takes {exact_time(steps.mean_ms)} for a batch"
    if steps.examples_per_s is not None:
        text += f", {steps.examples_per_s:,.0f} examples per second"
    culprit = input_culprit(session.pipeline, session.diagnosed_loop(), session.host)
    if culprit is not None:
        text += f"; {costs_most(culprit)}"
    return verdict.model_copy(
        update={
            "bottleneck": "input",
            "severity": "unknown",
            "summary": f"{text}.",
            "reasons": [*verdict.reasons[:1], NOTHING_TRAINED],
            "where": None,
            "where_percent": None,
            "where_file": None,
            "where_line": None,
        }
    )
