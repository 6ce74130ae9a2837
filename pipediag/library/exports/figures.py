"""The figures of a session that are worth following over a training, by their keys in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import get_args

from pipediag.session.model import Session
from pipediag.vocabulary import StepClass

_CLASSES: tuple[StepClass, ...] = get_args(StepClass)


@dataclass(frozen=True)
class Figure:
    """One number of a session."""

    key: str
    """Where it stands in session.json."""
    unit: str
    """As OpenTelemetry writes units."""
    what: str
    of: Callable[[Session], float | None]


def _share(name: StepClass, session: Session) -> float | None:
    share = None if session.breakdown is None else session.breakdown.get(name)
    return None if share is None else share.percent


FIGURES = (
    Figure(
        "steps.median_ms",
        "ms",
        "Median time of a step",
        lambda session: None if session.steps is None else session.steps.median_ms,
    ),
    Figure(
        "steps.p95_ms",
        "ms",
        "95th percentile of the time of a step",
        lambda session: None if session.steps is None else session.steps.p95_ms,
    ),
    Figure(
        "steps.examples_per_s",
        "{example}/s",
        "Examples per second",
        lambda session: None if session.steps is None else session.steps.examples_per_s,
    ),
    *(
        Figure(
            f"breakdown.{name}.percent",
            "%",
            f"Share of a step: {name.replace('_', ' ')}",
            partial(_share, name),
        )
        for name in _CLASSES
    ),
    Figure(
        "ceiling.speedup_if_input_free",
        "1",
        "How many times as fast steps would be if input cost nothing",
        lambda session: None if session.ceiling is None else session.ceiling.speedup_if_input_free,
    ),
    Figure(
        "host.cpu_percent",
        "%",
        "CPU time of the process",
        lambda session: None if session.host is None else session.host.cpu_percent,
    ),
    Figure(
        "host.rss_bytes",
        "By",
        "Memory of the process",
        lambda session: None if session.host is None else session.host.rss_bytes,
    ),
)


def figures_of(session: Session) -> Mapping[str, float]:
    """Those that were measured, by their keys."""
    values = {figure.key: figure.of(session) for figure in FIGURES}
    return {key: float(value) for key, value in values.items() if value is not None}
