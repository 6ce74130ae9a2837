"""Input wait where tf.data keeps no clock of its own: the repeated batch against the profile.

A repeated batch shows what the step costs without its input, but its rows also stay in the caches.
The profile shows when the loop stood in GetNext, but the profiler slows the loop down, which hides
some of the wait. Where nothing is fought for and the two fall on different sides of a limit, the
repeated batch is believed only as far as warm rows can't explain it, and either way that is said.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pipediag.facts.limits import INPUT_BOUND_PERCENT, INPUT_FINE_PERCENT
from pipediag.measures.step.differential import ConsumerAlone
from pipediag.measures.step.input_share import Measured, clearly_apart
from pipediag.vocabulary import Contention

_LIMITS = (INPUT_FINE_PERCENT, INPUT_BOUND_PERCENT)

WARM_ROWS_PERCENT = 28.0
"""How much shorter the step may be on a repeated batch because its rows stay in the caches, as
measured on this project's labelled scripts where the threads that make the input are all but
idle."""


@dataclass(frozen=True)
class Believed:
    """The share to use, and why it is doubtful, if it is."""

    share: Measured
    method: Literal["trace", "differential"]
    doubt: str | None = None


def believed_share(
    alone: ConsumerAlone, trace: Measured | None, contention: Contention | None
) -> Believed:
    """Choose between the two; the repeated batch where there is no profile or they agree."""
    share = Measured(alone.differential.input_share_percent, alone.share_draws)
    if trace is None or contention is not None or not _decides(share, trace):
        return Believed(share, "differential")
    if trace.percent < share.percent <= WARM_ROWS_PERCENT:
        return Believed(
            trace,
            "trace",
            f"{_apart(share, trace)}: repeated rows stay in the caches, which alone makes steps up "
            f"to {WARM_ROWS_PERCENT:.0f} % shorter, so the profile is believed.",
        )
    return Believed(
        share, "differential", f"{_apart(share, trace)}: the repeated batch is believed."
    )


def _apart(share: Measured, trace: Measured) -> str:
    return (
        f"On a repeated batch the step is {share.percent:.0f} % shorter, but in the profile the "
        f"loop waits for input {trace.percent:.0f} % of the time, and this TensorFlow has no clock "
        "of its own to settle it"
    )


def _decides(share: Measured, trace: Measured) -> bool:
    """Whether they are clearly apart, and on different sides of a limit."""
    if not clearly_apart(share, trace):
        return False
    return any((share.percent < limit) != (trace.percent < limit) for limit in _LIMITS)
