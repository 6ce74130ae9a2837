"""Sessions of two versions in, a comparison out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from pipediag.comparison.findings import only_in
from pipediag.comparison.machines import refuse_other_machines
from pipediag.comparison.operations import grown
from pipediag.comparison.quantities import Sides, quantities
from pipediag.comparison.result import Comparison
from pipediag.facts.ending import script_failure
from pipediag.session.model import Session


def compare(
    base: Sequence[Session],
    head: Sequence[Session],
    *,
    labels: tuple[str, str] = ("base", "head"),
    ratios_only: bool = False,
    floor_percent: float | None = None,
) -> Comparison:
    """Head against base, each by one session or more of it.

    Args:
        base: sessions of the version before, one for each run.
        head: sessions of the version after.
        labels: what the two are called.
        ratios_only: compare shares of the step and of the run alone, whatever the machines.
        floor_percent: the smallest slow-down that counts; None for the built-in one. Between single
            runs one below the built-in one is not taken.

    Raises:
        PipediagError: the sessions are of different machines, and more than shares is compared.
    """
    sides = Sides(tuple(base), tuple(head), ratios_only, floor_percent)
    failure = next(filter(None, map(script_failure, (*base, *head))), None)
    if failure is not None:
        return Comparison(*labels, quantities=(), script_failure=failure)
    if not ratios_only:
        refuse_other_machines(base, head)
    return Comparison(
        *labels,
        quantities=quantities(sides),
        new=only_in(head, base),
        gone=only_in(base, head),
        grown=grown(sides),
        bottlenecks=(_bottleneck(base), _bottleneck(head)),
        notes=tuple(_notes(sides)),
    )


def _bottleneck(sessions: Sequence[Session]) -> str:
    """What most of the runs say."""
    return Counter(session.verdict.bottleneck for session in sessions).most_common(1)[0][0]


def _notes(sides: Sides) -> Iterator[str]:
    if not sides.repeated:
        yield (
            "There are not three runs of each, so that the spread from run to run is not known: "
            "only a large change counts. `pipediag analyze --repeats 3` makes three."
        )
    scripts = [{session.script.path for session in side} for side in (sides.base, sides.head)]
    if scripts[0] != scripts[1]:
        yield "The sessions are of scripts that are called differently."
