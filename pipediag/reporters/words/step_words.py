"""What is said of the step and its ceiling, in the same words on the terminal and on the page.

The mean leads, as it is what the breakdown adds up to; the median stands beside it.
"""

from __future__ import annotations

from pipediag.facts.names import length
from pipediag.facts.step import most_of_free_input
from pipediag.measures.verdict.sentences import elsewhere
from pipediag.reporters.words.labels import STEP_CLASS, in_sentence
from pipediag.reporters.words.quantities import milliseconds, percent, speedup
from pipediag.session.loops import Loop, Steps
from pipediag.session.model import Session


def step_time(steps: Steps) -> str:
    """`Mean step 20.7 ms (median 4.87 ms)`."""
    return f"Mean step {milliseconds(steps.mean_ms)} (median {milliseconds(steps.median_ms)})"


def free_input(session: Session) -> str | None:
    """Return `at most 3.1x; then device compute limits`; None where no bound is known."""
    most = most_of_free_input(session)
    if most is None:
        return None
    behind = session.ceiling.next_bottleneck if session.ceiling is not None else None
    then = f"; then {in_sentence(STEP_CLASS[behind])} limits" if behind else ""
    return f"at most {speedup(most)}{then}"


def loop_time(loop: Loop | None) -> str | None:
    """Where the loop's time goes, as one sentence; None where that is not known."""
    time = loop.time if loop is not None else None
    if time is None or not time.total_s:
        return None
    steps = percent(100.0 * time.steps_s / time.total_s)
    rest = elsewhere(time)
    takes = "would take" if time.basis == "projected" else "took"
    return (
        f"The loop {takes} {length(time.total_s)} from its first step on: {steps} in steps"
        f"{'; ' + rest if rest else ''}."
    )
