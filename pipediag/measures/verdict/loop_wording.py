"""The sentences on what a loop does beside its steps."""

from __future__ import annotations

from pipediag.measures.verdict.culprits import Culprit, ShuffleFill
from pipediag.measures.verdict.wording import costs_most, place
from pipediag.session.loops import LoopTime

_FOUR_DIGITS = 999.5
"""From here on three digits would be a power of ten."""


def length(seconds: float) -> str:
    """A duration, with two or three digits that mean something."""
    if seconds < _FOUR_DIGITS:
        return f"{seconds:.3g} s"
    minutes = seconds / 60
    return f"{minutes:.3g} min" if minutes < _FOUR_DIGITS else f"{minutes / 60:,.1f} h"


def elsewhere(time: LoopTime) -> str:
    """Where the loop's time went beside its steps, the largest part first."""
    parts = {
        "waiting for the first batch of each epoch": time.first_batches_s,
        "making the iterators of each epoch": time.making_s,
        "between epochs (validation, callbacks and other work)": time.between_epochs_s,
        "in slower steps and work that no measured step had": time.unexplained_s,
    }
    shares = {what: 100.0 * part / time.total_s for what, part in parts.items()}
    named = sorted((what for what in shares if shares[what] >= 1.0), key=lambda what: -shares[what])
    return ", ".join(f"{shares[what]:.0f} % is {what}" for what in named)


def first_batch_sentence(time: LoopTime, behind: ShuffleFill | Culprit | None) -> str:
    """Input-bound between the epochs: by how much, and behind which operation."""
    percent = 100.0 * time.first_batches_s / time.total_s
    each = f", {length(time.first_batch_ms / 1000)} each time" if time.first_batch_ms else ""
    text = (
        f"Highly input-bound: {percent:.0f} % of the loop's time ({length(time.first_batches_s)} "
        f"of {length(time.total_s)}) is spent waiting for the first batch of each epoch{each}"
    )
    text += behind_in_words(behind)
    left = time.total_s - time.first_batches_s
    if left > 0.001 * time.total_s:
        text += f". Without these waits the loop would be {time.total_s / left:.3g}x as fast"
    return text + "."


def behind_in_words(behind: ShuffleFill | Culprit | None) -> str:
    """What makes a first batch late, to be appended."""
    if isinstance(behind, ShuffleFill):
        maker = _named(behind.maker)
        return f"; {_named(behind.shuffle)} fills meanwhile with what {maker} makes"
    return "" if behind is None else f"; {costs_most(behind)}"


def epoch_ends_sentence(time: LoopTime) -> str:
    """What the waits for first batches rest on."""
    if not time.epoch_ends_seen:
        return (
            "No end of an epoch was seen: each later epoch is taken to wait for its first batch as "
            "long as the first one did, as its shuffle fills anew; that first wait may hold work "
            "that comes once."
        )
    ends = "end of an epoch was" if time.epoch_ends_seen == 1 else "ends of epochs were"
    counted = "counted for every epoch planned" if time.basis == "projected" else "as seen"
    return f"{time.epoch_ends_seen} {ends} seen; their waits are {counted}."


def _named(culprit: Culprit) -> str:
    return f"{culprit.what}{place(culprit.file, culprit.line)}"
