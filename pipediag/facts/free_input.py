"""The most that an input pipeline without any cost would gain."""

from __future__ import annotations

from pipediag.session.model import Session

APART = 1.1
"""Two gains that differ by less tell a reader the same. Own choice."""


def most_of_free_input(session: Session) -> float | None:
    """Return how many times as fast training is at most where input takes no time.

    Of the whole loop where its time is known, else of the steps. Each measure of the input wait
    gives a gain by Amdahl's law: tf.data's gap times with their 95 % interval, and the step on a
    repeated batch. The largest is the bound. None where the step is input wait alone.
    """
    ceiling, wait = session.ceiling, session.input_wait
    best = ceiling.speedup_if_input_free if ceiling is not None else None
    if ceiling is None or best is None:
        return None
    alone = on_a_repeated_batch(session)
    contested = wait.contested_by_percent if wait is not None else None
    found = [best, ceiling.ci95[1] if ceiling.ci95 is not None else best]
    found += [alone] if alone is not None else []
    found += [100.0 / (100.0 - contested)] if contested is not None and contested < 100 else []
    most = max(found)
    return _of_the_loop(session, most) or ceiling.loop_speedup_if_input_free or most


def on_a_repeated_batch(session: Session) -> float | None:
    """Return the steps' gain by a repeated batch, where it is more than gap times tell.

    Gap times tell what the loop waits; free input also ends what the pipeline takes from the step
    by computing on the same CPUs. None where the two agree, where the breakdown rests on the
    repeated batch already, and where they contradict each other (`contested_by_percent`).
    """
    wait, alone, ceiling = session.input_wait, session.differential, session.ceiling
    if wait is None or wait.method != "native" or wait.contention is None:
        return None
    if wait.contested_by_percent is not None or ceiling is None or alone is None:
        return None
    by_waits, share = ceiling.speedup_if_input_free, alone.input_share_percent
    if by_waits is None or share >= 100.0:
        return None
    gain = 100.0 / (100.0 - share)
    highest = ceiling.ci95[1] if ceiling.ci95 is not None else by_waits
    if gain <= max(highest, APART * by_waits):
        return None
    return gain


def _of_the_loop(session: Session, gain: float) -> float | None:
    """Return the gain of the whole loop where its steps gain so much; None where not known."""
    loop, ceiling = session.diagnosed_loop(), session.ceiling
    time = loop.time if loop is not None else None
    if time is None or ceiling is None:
        return None
    steps, of_loop = ceiling.speedup_if_input_free, ceiling.loop_speedup_if_input_free
    if not steps or not of_loop:
        return None
    left = time.total_s / of_loop - time.steps_s * (1.0 / steps - 1.0 / gain)
    return time.total_s / left if left > 0 else None
