"""What a trial on the pipeline alone says of a whole step: an estimate, and what it is made of."""

from __future__ import annotations

from pipediag.reporters.words.quantities import speedup, speedup_interval
from pipediag.session.record import Interval
from pipediag.session.trials import Combined, Trial

_NOTICEABLE = 1.01
"""How much faster the pipeline must be than the step before the rest of the step is named."""
_NOTHING_GAINED = 1.005


def is_estimate(figures: Trial | Combined) -> bool:
    """Whether the speed-up is one of a step that was never run."""
    if isinstance(figures, Trial) and figures.consumer == "pipeline alone":
        return True
    return figures.basis == "pipeline"


def word(figures: Trial | Combined) -> str:
    """`measured` or `estimated`."""
    return "estimated" if is_estimate(figures) else "measured"


def bounds(figures: Trial | Combined) -> str | None:
    """The interval; None where there is none, or the rest of the step alone sets the estimate."""
    interval = figures.ci95
    if interval is None or (is_estimate(figures) and _without_width(interval)):
        return None
    return speedup_interval(interval)


def made_of(figures: Trial | Combined) -> str | None:
    """How much faster the pipeline alone became and what the step leaves of it, as a sentence."""
    if not is_estimate(figures):
        return None
    if figures.pipeline_speedup is None or figures.speedup is None:
        return "Training was not run for this."
    if figures.pipeline_speedup < 1.0:
        return f"The pipeline alone took {_longer(figures)} as long; training was not run for this."
    alone = f"The pipeline alone became {_times(figures)} as fast"
    if figures.pipeline_speedup < _NOTICEABLE * figures.speedup:
        return f"{alone}; training was not run for this, and may gain less."
    if figures.speedup < _NOTHING_GAINED:
        return f"{alone}; the rest of the training step, which is longer, leaves nothing of that."
    return f"{alone}, and the rest of the training step then leaves no more."


def _times(figures: Trial | Combined) -> str:
    return _ratio(figures.pipeline_speedup or 1.0, figures.pipeline_ci95)


def _longer(figures: Trial | Combined) -> str:
    """The same of what got slower: `250 to 294 times`, where as fast it is 0.00 times."""
    interval = figures.pipeline_ci95
    inverse = (1 / interval[1], 1 / interval[0]) if interval and interval[0] > 0 else None
    return _ratio(1 / (figures.pipeline_speedup or 1.0), inverse)


def _ratio(value: float, interval: Interval | None) -> str:
    if interval is None or _without_width(interval):
        return f"{_plain(value)} times"
    return f"{_plain(interval[0])} to {_plain(interval[1])} times"


def _plain(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 10 else speedup(ratio).removesuffix("x")


def _without_width(interval: Interval) -> bool:
    return f"{interval[0]:.2f}" == f"{interval[1]:.2f}"
