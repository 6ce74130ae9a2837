"""What a gain of an epoch, or of 1,000 steps, comes to in a whole run that was timed by itself."""

from __future__ import annotations

from pipediag.session.ledger import Run, RunGain
from pipediag.vocabulary import RunPartName

_ONCE: tuple[RunPartName, ...] = (
    "startup",
    "before_training",
    "compile",
    "between_loops",
    "after_training",
)


def gain_of_whole(gain: RunGain | None, run: Run | None, whole_s: float) -> RunGain | None:
    """The same gain, of all that the script takes from start to exit; as it is where it is of that.

    What was seen to come once takes what it took, and all the rest gets as much faster as the gain
    says (Amdahl's law). What the change takes once more is added.

    Args:
        gain: of `run`.
        run: the ledger, which may not know how long the script would train.
        whole_s: what the script takes without pipediag, in seconds.

    Returns:
        None where there is none, or what comes once took longer than all of the script does.
    """
    if gain is None or run is None or gain.scope == "run":
        return gain
    once_s = sum(span.duration_ms for span in run.spans if span.part in _ONCE) / 1000.0
    if once_s >= whole_s:
        return None

    more_s = gain.once_s or 0.0
    least_s, most_s = gain.once_ci95_s or (more_s, more_s)

    def after_s(speedup: float, more_s: float) -> float:
        return max(once_s + (whole_s - once_s) / speedup + more_s, 1e-9)

    after = after_s(gain.speedup, more_s)
    ends = gain.ci95 and (
        whole_s / after_s(gain.ci95[0], most_s),
        whole_s / after_s(gain.ci95[1], least_s),
    )
    return gain.model_copy(
        update={
            "speedup": whole_s / after,
            "ci95": ends,
            "before_s": whole_s,
            "after_s": after,
            "scope": "run",
        }
    )
