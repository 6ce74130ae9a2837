"""What free input would buy by the consumer alone, where that is more than waits tell."""

from __future__ import annotations

from dataclasses import dataclass

from pipediag.session.model import Session

APART = 1.1
"""Two gains that differ by less tell a reader the same. Own choice."""


@dataclass(frozen=True)
class FreeInput:
    """Times as fast, on a repeated batch."""

    steps: float
    loop: float | None
    """Of the whole loop; None where its time is not known, or next to nothing would be left."""


def on_a_repeated_batch(session: Session) -> FreeInput | None:
    """The upper of two measures, where the pipeline takes CPUs or the lock from the consumer.

    Gap times tell what the loop waits, and free input ends what it is slowed by, too. None where
    the two tell the same, where the consumer alone is what the breakdown rests on already, and
    where they contradict each other, which `contested_by_percent` says.
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
    return FreeInput(gain, _of_the_loop(session, gain))


def _of_the_loop(session: Session, gain: float) -> float | None:
    """The loop without what its steps lose beyond their waits as well."""
    loop, ceiling = session.diagnosed_loop(), session.ceiling
    time = loop.time if loop is not None else None
    if time is None or ceiling is None:
        return None
    steps, of_loop = ceiling.speedup_if_input_free, ceiling.loop_speedup_if_input_free
    if steps is None or of_loop is None:
        return None
    left = time.total_s / of_loop - time.steps_s * (1.0 / steps - 1.0 / gain)
    return time.total_s / left if left > 0 else None
