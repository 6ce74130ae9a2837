"""What most runs say of a rule or of the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from pipediag.gate.result import Check, CheckOutcome

_Key = tuple[str, str | None, int | None, int]
"""Name, place, and which of those of that name and place in its run."""


def majority(runs: Sequence[Sequence[Check]]) -> list[Check]:
    """One check for each that any run has, with the outcome that more than half of the runs have.

    A run that lacks it has passed it: there was nothing to find. Without such an outcome nothing is
    decided.
    """
    if len(runs) == 1:
        return list(runs[0])
    found = [_keyed(checks) for checks in runs]
    keys = dict.fromkeys(key for checks in found for key in checks)
    return [merged([checks.get(key) for checks in found]) for key in keys]


def _keyed(checks: Sequence[Check]) -> dict[_Key, Check]:
    seen: Counter[tuple[str, str | None, int | None]] = Counter()
    keyed: dict[_Key, Check] = {}
    for check in checks:
        what = (check.name, check.file, check.line)
        keyed[(*what, seen[what])] = check
        seen[what] += 1
    return keyed


def merged(runs: Sequence[Check | None]) -> Check:
    """One check of what each run says of the same; None where a run has nothing to say, and passes.

    It has the words of the first run with that outcome.
    """
    present = [check for check in runs if check is not None]
    outcomes: Counter[CheckOutcome] = Counter(
        "pass" if check is None else check.outcome for check in runs
    )
    outcome, count = outcomes.most_common(1)[0]
    told = next((one for one in present if one.outcome == outcome), present[0])
    if count == len(runs):
        return told
    if 2 * count > len(runs) and told.outcome != outcome:
        said = f"Found in {len(present)} of {len(runs)} runs only. {told.sentence}"
        return replace(told, outcome=outcome, sentence=said)
    if 2 * count > len(runs):
        said = f"{told.sentence} ({count} of {len(runs)} runs: {outcome}.)"
        return replace(told, outcome=outcome, sentence=said)
    counted = ", ".join(f"{one} in {times}" for one, times in outcomes.most_common())
    return replace(
        told,
        outcome="inconclusive",
        sentence=f"The runs do not agree: {counted}. {told.sentence}",
    )
