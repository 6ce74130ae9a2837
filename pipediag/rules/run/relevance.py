"""Whether a part of the run matters: the test that the rules on parts share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pipediag.facts.bounds import bound
from pipediag.facts.limits import INPUT_FINE_PERCENT, Threshold
from pipediag.facts.run import whole_in_words
from pipediag.facts.run_gain import gain_at_most
from pipediag.session.ledger import Run, RunGain, RunPart
from pipediag.vocabulary import FindingStatus, Scalar

RELEVANT = Threshold(
    "what the advice could save at most, from which on it fails",
    10.0,
    "% of the run",
    "own choice: for less than a tenth of the run, few would change their script",
)
NOTABLE = Threshold(
    "what the advice could save at most, from which on it informs",
    INPUT_FINE_PERCENT,
    "% of the run",
    "own choice, equal to the limit on a step's input wait",
)
SHORT = Threshold(
    "all of it, under which it informs at most where the run is known to its end",
    2.0,
    "s",
    "own choice: a script that takes seconds is a try, and its shares are not those of a training",
)
THRESHOLDS = (RELEVANT, NOTABLE, SHORT)

AT_MOST = "The run over the run without what the advice could save."
"""How the rules on parts bound what they advise."""


@dataclass(frozen=True)
class Weight:
    """`fail` where it matters, `pass` where it is next to nothing, or what to say instead."""

    status: FindingStatus
    sentence: str
    evidence: dict[str, Scalar]
    for_run: RunGain | None
    """What the run gains at most."""
    speedup_at_most: float | None
    """Of these rows by themselves."""


def weigh(run: Run, rows: Iterable[RunPart], saved_s: float) -> Weight:
    """What rows of the ledger weigh, of which the advice could save so many seconds at most."""
    taken_s = sum(row.seconds for row in rows)
    whole_s = max(run.whole_s, taken_s, 1e-9)
    saved_s = min(saved_s, taken_s)
    percent = 100.0 * saved_s / whole_s
    evidence: dict[str, Scalar] = {
        "taken_s": taken_s,
        "taken_percent_of_run": 100.0 * taken_s / whole_s,
        "savable_percent_of_run": percent,
    }
    status: FindingStatus = "fail"
    sentence = ""
    if percent < NOTABLE.value:
        status = "pass"
    elif percent < RELEVANT.value:
        status = "informative"
        sentence = f"To change this could save {percent:.0f} % of {whole_in_words(run)} at most."
    elif run.scope == "run" and taken_s < SHORT.value:
        status = "informative"
        sentence = (
            f"All of it takes {taken_s:.1f} s: it matters only if longer runs do it more often."
        )
    at_most = bound(taken_s, saved_s)
    return Weight(status, sentence, evidence, gain_at_most(run, saved_s), at_most)
