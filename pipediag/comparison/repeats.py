"""What several runs of one version come to: medians, with the value of each run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from pipediag.comparison import values
from pipediag.comparison.values import Value
from pipediag.comparison.wording import number
from pipediag.session.model import Session

_QUANTITIES: tuple[tuple[str, str, Value], ...] = (
    ("Mean step", "ms", values.step_ms),
    ("Run", "s", values.run_s),
    ("Input wait", "% of the step", values.step_percent(values.INPUT)),
    ("Overhead", "% of the step", values.step_percent(values.OVERHEAD)),
)


def medians(runs: Sequence[Session]) -> Iterator[str]:
    """A line for each quantity: `Run: 13.1 s, the median of 10.6, 13.1 and 13.6`."""
    for label, unit, value in _QUANTITIES:
        found = [value(run) for run in runs]
        known = [one for one in found if not isinstance(one, str)]
        missing = next((one for one in found if isinstance(one, str)), None)
        if missing is not None:
            yield f"{label}: not known of {len(runs) - len(known)} of {len(runs)} runs: {missing}"
            continue
        *first, last = map(number, known)
        middle = f"{number(median(known))} {unit}"
        yield f"{label}: {middle}, the median of {', '.join(first)} and {last}"
