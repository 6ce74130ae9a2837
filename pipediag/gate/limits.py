"""What is measured, held against a limit: by its whole interval."""

from __future__ import annotations

from dataclasses import dataclass

from pipediag.gate.result import Check, CheckOutcome

Place = tuple[str | None, int | None]


@dataclass(frozen=True)
class Limit:
    """One that the configuration sets, in percent."""

    name: str
    """Its key."""
    label: str
    percent: float


@dataclass(frozen=True)
class Measured:
    """A share with its 95 % interval, in percent."""

    percent: float
    interval: tuple[float, float]
    of: str
    """What it is a share of: `the step`."""


def judged(limit: Limit, measured: Measured | str, place: Place, *, narrower: str) -> Check:
    """The check of one limit; a text in place of what was measured says why nothing was.

    `narrower` says how an interval that holds the limit can be made narrower, as a sentence.
    """
    if isinstance(measured, str):
        return Check(
            name=limit.name,
            outcome="inconclusive",
            severity="error",
            sentence=f"{limit.label} was not measured: {measured}",
            limit=limit.percent,
        )
    outcome, ending = _compare(measured.interval, limit.percent, narrower)
    low, high = measured.interval
    return Check(
        name=limit.name,
        outcome=outcome,
        severity="error",
        sentence=(
            f"{limit.label}: {measured.percent:.1f} % of {measured.of} "
            f"(95 % interval {low:.1f} to {high:.1f} %), {ending}"
        ),
        value=measured.percent,
        interval=measured.interval,
        limit=limit.percent,
        file=place[0],
        line=place[1],
    )


def _compare(
    interval: tuple[float, float], limit: float, narrower: str
) -> tuple[CheckOutcome, str]:
    low, high = interval
    if low > limit:
        return "fail", f"over the limit of {limit:g} %."
    if high <= limit:
        return "pass", f"within the limit of {limit:g} %."
    return "inconclusive", (
        f"and the limit of {limit:g} % lies inside the interval: too close to call. {narrower}"
    )
