"""Parts of the run that are no steps: rows of the ledger that belong together, and their weight."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pipediag.facts.limits import INPUT_FINE_PERCENT, Threshold, bound
from pipediag.facts.run import whole_in_words
from pipediag.facts.run_gain import gain_at_most
from pipediag.rules.rule import Meta
from pipediag.session.findings import Finding
from pipediag.session.ledger import EXITING, IN_FRAMEWORK, OWN_LINE, READING, Run, RunGain, RunPart
from pipediag.vocabulary import FindingStatus, RunPartName, Scalar

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


def seen_or_not(meta: Meta, run: Run, part: RunPartName, lacking: str) -> Finding:
    """What a rule says of a part of the run that has nothing notable: that it is fine, or that it
    was not seen.

    Args:
        lacking: which of `Run.not_seen` would have had this part.
    """
    has_it = any(row.part == part and row.what != EXITING for row in run.parts)
    if has_it or lacking not in run.not_seen:
        return meta.finding("pass", "", part=part)
    reason = f"Not seen: {lacking}, as the script was stopped before that."
    return meta.finding("not-applicable", reason, part=part)


NEIGHBOURS = 3
"""Lines of a file that lie no further apart are taken for one loop of it. Own choice: between two
of them lies a blank line or a comment."""

_COMPREHENSION = re.compile(r"(\.<locals>\.)?<(listcomp|setcomp|dictcomp|genexpr)>")


@dataclass(frozen=True)
class Block:
    """Rows that one change of the script would shorten together."""

    rows: tuple[RunPart, ...]

    @property
    def hottest(self) -> RunPart:
        return max(self.rows, key=lambda row: row.seconds)

    @property
    def seconds(self) -> float:
        return sum(row.seconds for row in self.rows)

    @property
    def count(self) -> int | None:
        """How often it came, where a row says so."""
        return max((row.count for row in self.rows if row.count is not None), default=None)

    @property
    def in_framework_s(self) -> float:
        """Of its seconds, those in which a framework's own code ran."""
        return sum(row.seconds for row in self.rows if (row.what or "").endswith(IN_FRAMEWORK))

    @property
    def what(self) -> str:
        """What it is, whosever code ran."""
        return _own(self.hottest.what or "")


def blocks_of(rows: Iterable[RunPart]) -> list[Block]:
    """The blocks of these rows, the costliest first; what has neither place nor name is in none."""
    named: dict[tuple[str | None, str, int | None], list[RunPart]] = {}
    lines: list[RunPart] = []
    for row in rows:
        if row.what is None:
            continue
        what = _own(row.what)
        if what == OWN_LINE:
            lines.append(row)
        else:
            line = row.line if what == READING else None
            named.setdefault((row.file, what, line), []).append(row)
    blocks = [Block(tuple(group)) for group in (*named.values(), *_neighbours(lines))]
    return sorted(blocks, key=lambda block: -block.seconds)


def _own(what: str) -> str:
    """Without whose code ran; what a comprehension does is done by the code that holds it."""
    words = _COMPREHENSION.sub("", what.removesuffix(IN_FRAMEWORK))
    return OWN_LINE if words == "in ``" else words


def _neighbours(lines: Iterable[RunPart]) -> list[list[RunPart]]:
    groups: list[list[RunPart]] = []
    for row in sorted(lines, key=lambda row: (row.file or "", row.line or 0)):
        last = groups[-1][-1] if groups else None
        near = last is not None and last.file == row.file
        if near and last is not None and (row.line or 0) - (last.line or 0) <= NEIGHBOURS:
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups
