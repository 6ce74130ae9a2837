"""Whether a session says of a script what is true of it: one outcome a run, and their totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pipediag.session.model import Session
from tests.samples.expectation import (
    Expectation,
    confirmed_rules,
    discrepancies,
    false_confirmations,
    marked_lines,
    where_discrepancies,
)

NOTHING = "-"


@dataclass(frozen=True)
class Outcome:
    """One run of one script against its expectation."""

    name: str
    expected_bottleneck: str
    expected_line: str
    found_bottleneck: str
    found_operation: str
    found_line: str
    verdict_right: bool
    line_right: bool | None
    """None where no line is expected."""
    tried: int
    """Edits that were measured."""
    expected_where: str
    """Parts of the run of which the verdict must name one."""
    found_where: str
    where_right: bool | None
    """None where nothing is expected of the run's parts."""
    expected_confirmed: str
    first_confirmed: str | None
    confirmed_right: bool | None
    """None where nothing is expected to be confirmed first, or nothing was to be tried."""
    false: tuple[str, ...]
    """Rules that were confirmed although they must not be."""
    misses: tuple[str, ...] = ()
    """Sentences on all that differs, rules that should speak or be silent among it."""

    @property
    def right_at_first_place(self) -> bool:
        """Whether the verdict, its places and the first confirmed finding are what they should."""
        first = self.confirmed_right is not False and self.first_confirmed not in self.false
        placed = self.line_right is not False and self.where_right is not False
        return self.verdict_right and placed and first


def judge(expected: Expectation, session: Session, *, trials: bool) -> Outcome:
    """What a session is worth; without `trials`, confirmed findings are not asked for."""
    confirmed = confirmed_rules(session)
    first = confirmed[0] if confirmed else None
    wanted = expected.trials.confirmed
    false = tuple(false_confirmations(expected, session))
    misses = discrepancies(expected, session)
    right = first in wanted if wanted and trials else None
    if right is False:
        misses.append(f"first confirmed is {first}, expected one of {wanted}")
    misses += [f"{rule} was confirmed and must not be" for rule in false]
    found = session.operation(session.verdict.op_id)
    lines = _expected_lines(expected)
    return Outcome(
        name=expected.name,
        expected_bottleneck=" or ".join(expected.bottleneck),
        expected_line=", ".join(map(str, sorted(lines))) or NOTHING,
        found_bottleneck=session.verdict.bottleneck,
        found_operation=found.kind if found else NOTHING,
        found_line=str(session.verdict.line or NOTHING),
        verdict_right=session.verdict.bottleneck in expected.bottleneck,
        line_right=_line_right(expected, session, lines),
        expected_where=" or ".join(expected.where) or NOTHING,
        found_where=session.verdict.where or NOTHING,
        where_right=not where_discrepancies(expected, session) if expected.where else None,
        tried=sum(finding.trial.speedup is not None for finding in session.findings),
        expected_confirmed=_wish(expected),
        first_confirmed=first,
        confirmed_right=right,
        false=false,
        misses=tuple(misses),
    )


def failed(expected: Expectation, reason: str) -> Outcome:
    """A run that left no session to judge: everything that was expected of it is missing."""
    return Outcome(
        name=expected.name,
        expected_bottleneck=" or ".join(expected.bottleneck),
        expected_line=", ".join(map(str, sorted(_expected_lines(expected)))) or NOTHING,
        found_bottleneck="none",
        found_operation=NOTHING,
        found_line=NOTHING,
        verdict_right=False,
        line_right=False if expected.verdict_line else None,
        expected_where=" or ".join(expected.where) or NOTHING,
        found_where=NOTHING,
        where_right=False if expected.where else None,
        tried=0,
        expected_confirmed=_wish(expected),
        first_confirmed=None,
        confirmed_right=False if expected.trials.confirmed else None,
        false=(),
        misses=(reason,),
    )


@dataclass
class Totals:
    """Counts over all runs: how many were right of how many that could be."""

    runs: int = 0
    verdicts: int = 0
    lines: Counter[bool] = field(default_factory=Counter)
    parts: Counter[bool] = field(default_factory=Counter)
    confirmed: Counter[bool] = field(default_factory=Counter)
    as_expected: int = 0
    first_place: int = 0
    false_confirmations: int = 0
    tried: int = 0

    def add(self, outcome: Outcome) -> None:
        self.runs += 1
        self.verdicts += outcome.verdict_right
        if outcome.line_right is not None:
            self.lines[outcome.line_right] += 1
        if outcome.where_right is not None:
            self.parts[outcome.where_right] += 1
        if outcome.confirmed_right is not None:
            self.confirmed[outcome.confirmed_right] += 1
        self.as_expected += not outcome.misses
        self.first_place += outcome.right_at_first_place
        self.false_confirmations += len(outcome.false)
        self.tried += outcome.tried

    def sentences(self) -> list[str]:
        """The totals, one sentence each."""
        return [
            f"Right at first place: {self.first_place} of {self.runs} runs.",
            f"False confirmations: {self.false_confirmations} ({self.tried} edits were measured).",
            f"Bottleneck right: {self.verdicts} of {self.runs}; line right: "
            f"{self.lines[True]} of {self.lines.total()}; part of the run right: "
            f"{self.parts[True]} of {self.parts.total()}; first confirmed finding right: "
            f"{self.confirmed[True]} of {self.confirmed.total()}.",
            f"As the whole expectation says: {self.as_expected} of {self.runs}.",
        ]


def totals(outcomes: Sequence[Outcome]) -> Totals:
    """All runs together."""
    sums = Totals()
    for outcome in outcomes:
        sums.add(outcome)
    return sums


def markdown(outcomes: Sequence[Outcome], machine: str) -> str:
    """The machine, the totals, and a row for each script with all its runs."""
    head = (
        "| script | expected | found | operation | expected confirmed | first confirmed | "
        "false confirmations | right at first place |"
    )
    rows = [_row(name, outcomes) for name in dict.fromkeys(o.name for o in outcomes)]
    parts = [machine, "", *totals(outcomes).sentences(), "", head, "|" + "---|" * 8, *rows]
    return "\n".join(parts) + "\n"


def _row(name: str, outcomes: Sequence[Outcome]) -> str:
    runs = [outcome for outcome in outcomes if outcome.name == name]
    first = runs[0]
    cells = [
        f"`{name}`",
        _place(first.expected_bottleneck, first.expected_line, first.expected_where),
        _counted([_found_place(run) for run in runs]),
        _counted([run.found_operation for run in runs]),
        first.expected_confirmed,
        _counted([run.first_confirmed or NOTHING for run in runs]),
        _counted([rule for run in runs for rule in run.false]) or NOTHING,
        f"{sum(run.right_at_first_place for run in runs)} of {len(runs)}",
    ]
    return "| " + " | ".join(cells) + " |"


def _found_place(run: Outcome) -> str:
    where = NOTHING if run.where_right is None else run.found_where
    return _place(run.found_bottleneck, run.found_line, where)


def _place(bottleneck: str, line: str, where: str) -> str:
    place = bottleneck if line == NOTHING else f"{bottleneck}, line {line}"
    return place if where == NOTHING else f"{place}; most of the run: {where}"


def _counted(values: Sequence[str]) -> str:
    counts = Counter(values)
    if len(counts) == 1:
        return next(iter(counts))
    return "; ".join(f"{value} ({count})" for value, count in counts.most_common())


def _wish(expected: Expectation) -> str:
    if expected.trials.none:
        return " or ".join(["none", *expected.trials.unless])
    forbidden = [f"not {rule}" for rule in expected.trials.not_confirmed]
    return ", ".join([" or ".join(expected.trials.confirmed), *forbidden]).strip(", ") or NOTHING


def _expected_lines(expected: Expectation) -> set[int]:
    if expected.verdict_line is None:
        return set()
    return marked_lines(expected.script)[expected.verdict_line]


def _line_right(expected: Expectation, session: Session, lines: set[int]) -> bool | None:
    if expected.verdict_line is None:
        return None
    file, line = session.verdict.file, session.verdict.line
    return file is not None and Path(file).name == expected.script.name and line in lines
