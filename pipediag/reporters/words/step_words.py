"""What is said of the step and its ceiling, in the same words on the terminal and on the page.

The mean leads, as it is what the breakdown adds up to; the median stands beside it.
"""

from __future__ import annotations

from pipediag.facts.free_input import on_a_repeated_batch
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
    """What the training gains where input is free, by each measure where two contradict, or where
    the consumer alone gains more than it is seen to wait."""
    ceiling, wait = session.ceiling, session.input_wait
    best = ceiling.speedup_if_input_free if ceiling is not None else None
    if ceiling is None or best is None:
        return None
    bounds = f" ({interval(ceiling.ci95)})" if ceiling.ci95 else ""
    behind = ceiling.next_bottleneck
    then = f"; then {in_sentence(STEP_CLASS[behind])} limits" if behind else ""
    if wait is not None and wait.contested_by_percent is not None:
        return (
            f"{speedup(best)}{bounds} by tf.data's gap times, but on a repeated batch the step is "
            f"{percent(wait.contested_by_percent)} shorter{then}"
        )
    alone = on_a_repeated_batch(session)
    by_waits = f"{speedup(best)}{bounds}" if best >= WORTH_SAYING else NOTHING_TO_GAIN
    in_steps = by_waits
    if alone is not None:
        in_steps = f"{by_waits} by tf.data's gap times, {speedup(alone.steps)} by a repeated batch,"
    if gain_in_the_steps(ceiling) is not None:
        of_loop = _to(ceiling.loop_speedup_if_input_free, alone.loop if alone else None)
        return f"{in_steps} in the steps, {of_loop} in the whole loop{then}"
    if alone is not None:
        return f"{in_steps.removesuffix(',')}{then}"
    if best < WORTH_SAYING:
        return f"{NOTHING_TO_GAIN}{then}"
    return f"{speedup(best)}{bounds} at most{then}"


def free_input_figure(session: Session) -> str | None:
    """The same as one number, or the two that two measures give: the loop's where that is another
    one than the step's."""
    ceiling = session.ceiling
    best = ceiling.speedup_if_input_free if ceiling is not None else None
    if ceiling is None or best is None:
        return None
    alone = on_a_repeated_batch(session)
    most = alone.steps if alone is not None else None
    if gain_in_the_steps(ceiling) is not None:
        best = ceiling.loop_speedup_if_input_free or best
        most = alone.loop if alone is not None else None
    return _to(best, most) if max(best, most or 0.0) >= WORTH_SAYING else NOTHING_TO_GAIN


def _to(least: float | None, most: float | None) -> str:
    return speedup(least) if most is None else f"{speedup(least)} to {speedup(most)}"


def free_input_bounds(session: Session) -> str | None:
    """The interval of that number; None where it has none, as the whole loop's, or where there are
    two."""
    ceiling = session.ceiling
    best = ceiling.speedup_if_input_free if ceiling is not None else None
    if ceiling is None or best is None or ceiling.ci95 is None or best < WORTH_SAYING:
        return None
    if on_a_repeated_batch(session) is not None:
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
