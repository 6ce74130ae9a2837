"""The step, split into nine classes that add up to it, and the bound if input were free.

Input wait comes from the unprofiled clock. The rest of the step is split in the proportions of the
profile's own consumer time: the profiler lengthens steps, so its milliseconds are no measure, but
the proportions are the best that there is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from pipediag.estimates import Floats, Measured, interval, resampled_means
from pipediag.session.loops import Ceiling, Share
from pipediag.trace.steps import StepSplit
from pipediag.vocabulary import StepClass

CLASSES: tuple[StepClass, ...] = get_args(StepClass)
CONSUMER_CLASSES: tuple[StepClass, ...] = tuple(c for c in CLASSES if c != "input_wait")

_HUNDREDTHS = 10_000
_PROFILE_SEED = 7


def break_down(
    step_ms: float,
    input_wait: Measured,
    split: StepSplit | None,
    compiled: Measured | None = None,
) -> dict[StepClass, Share]:
    """Return milliseconds and percent of the mean step for each class, with 95 % intervals.

    Without profiled steps all consumer time is `unattributed`. `compiled` is what the clock shows
    of steps that are compiled for new lengths. Percents are whole hundredths that add up to 100.
    """
    proportions, drawn = consumer_proportions(split)
    consumer = 100.0 - input_wait.percent
    percents = dict(zip(CONSUMER_CLASSES, consumer * proportions, strict=True))
    draws = dict(
        zip(CONSUMER_CLASSES, ((100.0 - input_wait.draws)[:, None] * drawn).T, strict=True)
    )
    if compiled is not None:
        percents, draws = _with_compiling(percents, draws, compiled, input_wait)
    percents["input_wait"], draws["input_wait"] = input_wait.percent, input_wait.draws
    rounded = round_to_hundred(np.array([percents[name] for name in CLASSES]))
    return {
        name: Share(
            ms=step_ms * percent / 100.0, percent=percent, ci95_percent=interval(draws[name])
        )
        for name, percent in zip(CLASSES, rounded, strict=True)
    }


def _with_compiling(
    percents: Mapping[StepClass, float],
    draws: Mapping[StepClass, Floats],
    compiled: Measured,
    input_wait: Measured,
) -> tuple[dict[StepClass, float], dict[StepClass, Floats]]:
    """The rest of consumer time in the profile's proportions without its compiling."""
    rest = max(0.0, 100.0 - input_wait.percent - compiled.percent)
    others = {name: percent for name, percent in percents.items() if name != "compile"}
    known = sum(others.values())
    factor = rest / known if known else 0.0
    scaled: dict[StepClass, float] = {"compile": compiled.percent}
    scaled.update({name: percent * factor for name, percent in others.items()})
    drawn: dict[StepClass, Floats] = {"compile": compiled.draws}
    drawn.update({name: draws[name] * factor for name in others})
    if not known:
        scaled["unattributed"] = rest
        drawn["unattributed"] = (100.0 - input_wait.draws - compiled.draws).clip(0.0)
    return scaled, drawn


def consumer_proportions(split: StepSplit | None) -> tuple[Floats, Floats]:
    """Each consumer class's share of consumer time, shape (8,), and its resamples, (draws, 8)."""
    if split is None or not len(split.ns) or not _consumer_ns(split).sum():
        only = np.array([float(name == "unattributed") for name in CONSUMER_CLASSES])
        return only, only[None, :]
    ns = _consumer_ns(split)
    drawn = resampled_means(ns, seed=_PROFILE_SEED)
    totals = drawn.sum(axis=1, keepdims=True)
    mean = ns.mean(axis=0)
    return mean / mean.sum(), drawn / np.where(totals > 0, totals, 1.0)


def round_to_hundred(percents: Floats) -> list[float]:
    """Percents as whole hundredths that add up to 100, by largest remainder."""
    exact = np.clip(percents, 0.0, None) / percents.clip(min=0.0).sum() * _HUNDREDTHS
    whole: NDArray[np.int64] = np.floor(exact).astype(np.int64)
    short = _HUNDREDTHS - int(whole.sum())
    whole[np.argsort(whole - exact, kind="stable")[:short]] += 1
    return [int(hundredths) / 100.0 for hundredths in whole]


def _consumer_ns(split: StepSplit) -> Floats:
    columns = [split.column(name) for name in CONSUMER_CLASSES]
    return np.column_stack(columns).astype(float)


_LEAST_CONSUMER_PERCENT = 0.1
"""Below it the ceiling is a division by noise: a thousandfold gain would be claimed."""


def measure_ceiling(input_wait: Measured, breakdown: Mapping[StepClass, Share]) -> Ceiling:
    """Return step over consumer time, as the breakdown has them, with a 95 % interval, and the
    largest class of the rest; `unattributed` names no bottleneck."""
    consumer = 100.0 - breakdown["input_wait"].percent
    if consumer < _LEAST_CONSUMER_PERCENT:
        return Ceiling(
            speedup_if_input_free=None,
            next_bottleneck=None,
            missing="The step consists of input wait only, so the speed of the consumer is not "
            "known.",
        )
    named = {
        name: share.percent
        for name, share in breakdown.items()
        if name not in ("input_wait", "unattributed") and share.percent > 0
    }
    draws = 100.0 / np.clip(100.0 - input_wait.draws, _LEAST_CONSUMER_PERCENT, None)
    return Ceiling(
        speedup_if_input_free=100.0 / consumer,
        ci95=interval(draws),
        next_bottleneck=max(named, key=lambda name: named[name], default=None),
    )
