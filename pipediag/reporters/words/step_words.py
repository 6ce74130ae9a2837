"""What is said of the step and its ceiling, in the same words on the terminal and on the page.

The mean leads, as it is what the breakdown adds up to; the median stands beside it.
"""

from __future__ import annotations

from pipediag.measures.verdict.loop_wording import elsewhere, length
from pipediag.measures.verdict.wording import WORTH_SAYING, gain_in_the_steps
from pipediag.reporters.words.labels import STEP_CLASS, in_sentence
from pipediag.reporters.words.quantities import interval, milliseconds, percent, speedup
from pipediag.session.loops import Loop
from pipediag.session.model import Session
from pipediag.session.steps import Steps

NOTHING_TO_GAIN = "nothing to gain"


def step_time(steps: Steps) -> str:
    """`Mean step 20.7 ms (median 4.87 ms)`."""
    return f"Mean step {milliseconds(steps.mean_ms)} (median {milliseconds(steps.median_ms)})"


def free_input(session: Session) -> str | None:
    """What the training gains where input is free, by each measure where two contradict."""
    ceiling, wait = session.ceiling, session.input_wait
    best = ceiling.speedup_if_input_free if ceiling is not None else None
    if ceiling is None or best is None:
        return None
    bounds = f" ({interval(ceiling.ci95)})" if ceiling.ci95 else ""
    behind = ceiling.next_bottleneck
    then = f"; then {in_sentence(STEP_CLASS[behind])} limits" if behind else ""
    if wait is not None and wait.contested_by_percent is not None:
        alone = wait.contested_by_percent
        return (
            f"{speedup(best)}{bounds} by tf.data's gap times, but on a repeated batch the step is "
            f"{percent(alone)} shorter{then}"
        )
    if gain_in_the_steps(ceiling) is not None:
        of_loop = speedup(ceiling.loop_speedup_if_input_free)
        in_steps = f"{speedup(best)}{bounds}" if best >= WORTH_SAYING else NOTHING_TO_GAIN
        return f"{in_steps} in the steps, {of_loop} in the whole loop{then}"
    if best < WORTH_SAYING:
        return f"{NOTHING_TO_GAIN}{then}"
    return f"{speedup(best)}{bounds} at most{then}"


def free_input_figure(session: Session) -> str | None:
    """The same as one number: the loop's where that is another one than the step's."""
    ceiling = session.ceiling
    best = ceiling.speedup_if_input_free if ceiling is not None else None
    if ceiling is None or best is None:
        return None
    if gain_in_the_steps(ceiling) is not None:
        best = ceiling.loop_speedup_if_input_free or best
    return speedup(best) if best >= WORTH_SAYING else NOTHING_TO_GAIN


def free_input_bounds(session: Session) -> str | None:
    """The interval of that number; None where it has none, as that of the whole loop."""
    ceiling = session.ceiling
    best = ceiling.speedup_if_input_free if ceiling is not None else None
    if ceiling is None or best is None or ceiling.ci95 is None or best < WORTH_SAYING:
        return None
    return None if gain_in_the_steps(ceiling) is not None else interval(ceiling.ci95)


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
