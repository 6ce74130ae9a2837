"""Reads what is expected of a sample, and says where a session differs from it.

An expectation lies beside its script as `<name>.expect.toml`. Lines are given by marker: the
comment `# pipediag: culprit` in the script marks the line, or the lines, that the expectation
calls `culprit`.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pipediag.facts.order import to_act_on
from pipediag.session.loops import Loop
from pipediag.session.model import Session
from pipediag.vocabulary import RUN_PARTS

SAMPLES = Path(__file__).resolve().parents[2] / "sample_pipelines"
MARKER = re.compile(r"#\s*pipediag:\s*([a-z][a-z-]*)\s*$")
SHOWN = frozenset({"fail", "informative"})
KEYS = {
    "": {
        "shows",
        "origin",
        "exit_status",
        "needs",
        "profiler_conflict",
        "in_every_run",
        "looks_ahead",
        "measured",
        "verdict",
        "loop",
        "rules",
        "trials",
    },
    "verdict": {"bottleneck", "line", "words", "where", "where_line"},
    "loop": {"kind", "line", "other_roles"},
    "rules": {"fail", "first", "shown", "not_fail", "silent", "lines"},
    "trials": {"confirmed", "not_confirmed", "none", "unless"},
}


@dataclass(frozen=True)
class TrialsExpectation:
    """What trials must find, where that is beyond doubt; empty where nothing is said of them."""

    confirmed: tuple[str, ...] = ()
    """The first confirmed finding must be of one of these rules."""
    not_confirmed: tuple[str, ...] = ()
    """Rules of which nothing may be confirmed."""
    none: bool = False
    """Whether nothing at all may be confirmed, but what `unless` names."""
    unless: tuple[str, ...] = ()
    """Rules whose gain hangs on the machine: on a fast one, launching is more of a step."""

    def forbids(self, rule: str) -> bool:
        if rule in _TRUE_ANYWHERE:
            return False
        return rule in self.not_confirmed or (self.none and rule not in self.unless)


_TRUE_ANYWHERE = ("iterator-pauses",)
"""TensorFlow's own pauses come with every pipeline that it tunes, whatever a script shows."""


@dataclass(frozen=True)
class Expectation:
    """What is true of one sample."""

    script: Path
    shows: str
    origin: str
    exit_status: tuple[int, ...]
    """Statuses of `pipediag analyze` that are right."""
    needs: tuple[str, ...]
    """Modules without which the script cannot run."""
    bottleneck: tuple[str, ...]
    verdict_line: str | None
    """Marker of the line that the verdict must name."""
    words: tuple[str, ...]
    """Words of the verdict's sentence and its reasons, in any case of letters."""
    where: tuple[str, ...]
    """Parts of the run of which the verdict must name one; empty where nothing is said of them."""
    where_line: str | None
    """Marker of the line that the verdict must name for that part."""
    in_every_run: bool
    """Whether `make test` runs the sample; others are left to `make test-samples`."""
    looks_ahead: bool
    """Whether the truth shows only where what follows the measured windows is waited for."""
    profiler_conflict: bool
    """Whether the session must report that the script profiles itself."""
    loop_kind: tuple[str, ...] | None
    """None where there is no training loop."""
    loop_line: str | None
    other_roles: tuple[str, ...]
    """Roles that other loops of the script must have been given."""
    must_fail: tuple[str, ...]
    first: tuple[str, ...]
    """Rules of which one must give the first advice; empty where nothing is said of it."""
    must_show: tuple[str, ...]
    """Rules that must fail or inform."""
    must_not_fail: tuple[str, ...]
    must_be_silent: tuple[str, ...]
    """Rules that must neither fail nor inform."""
    rule_lines: dict[str, str]
    """Marker of the line that a rule's finding must name."""
    trials: TrialsExpectation
    measured: str
    """Figures taken without pipediag, for readers."""

    @property
    def name(self) -> str:
        return self.script.stem

    @property
    def missing_modules(self) -> list[str]:
        return [module for module in self.needs if find_spec(module) is None]


def read_expectation(path: Path) -> Expectation:
    """Read `<name>.expect.toml`; unknown keys raise ValueError, missing ones KeyError."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    verdict, loop, rules = table["verdict"], table.get("loop"), table.get("rules", {})
    trials = table.get("trials", {})
    sections = {"": table, "verdict": verdict, "loop": loop or {}, "rules": rules, "trials": trials}
    for section, keys in sections.items():
        if unknown := set(keys) - KEYS[section]:
            raise ValueError(f"{path.name}: unknown keys {sorted(unknown)} in [{section}]")
    return Expectation(
        script=path.with_name(path.name.removesuffix(".expect.toml") + ".py"),
        shows=table["shows"],
        origin=table["origin"],
        exit_status=tuple(table.get("exit_status", [0])),
        needs=("tensorflow", *table.get("needs", [])),
        bottleneck=tuple(verdict["bottleneck"]),
        verdict_line=verdict.get("line"),
        words=tuple(verdict.get("words", [])),
        where=_parts(path, verdict.get("where", [])),
        where_line=verdict.get("where_line"),
        in_every_run=table.get("in_every_run", True),
        looks_ahead=table.get("looks_ahead", "training" in (loop or {}).get("other_roles", [])),
        profiler_conflict=table.get("profiler_conflict", False),
        loop_kind=tuple(loop["kind"]) if loop is not None else None,
        loop_line=loop["line"] if loop is not None else None,
        other_roles=tuple((loop or {}).get("other_roles", [])),
        must_fail=tuple(rules.get("fail", [])),
        first=tuple(rules.get("first", [])),
        must_show=tuple(rules.get("shown", [])),
        must_not_fail=tuple(rules.get("not_fail", [])),
        must_be_silent=tuple(rules.get("silent", [])),
        rule_lines=rules.get("lines", {}),
        trials=_trials(path, trials),
        measured=table["measured"],
    )


def _parts(path: Path, names: str | list[str]) -> tuple[str, ...]:
    """One part of a run, or several that are right."""
    parts = (names,) if isinstance(names, str) else tuple(names)
    if unknown := set(parts) - set(RUN_PARTS):
        raise ValueError(f"{path.name}: no parts of a run: {sorted(unknown)}")
    return parts


def _trials(path: Path, table: dict[str, Any]) -> TrialsExpectation:
    confirmed, not_confirmed = table.get("confirmed", []), table.get("not_confirmed", [])
    none = table.get("none", False)
    if confirmed and (none or set(confirmed) & set(not_confirmed)):
        raise ValueError(f"{path.name}: [trials] wants and forbids the same")
    unless = table.get("unless", [])
    if unless and not none:
        raise ValueError(f"{path.name}: [trials] has exceptions from nothing")
    return TrialsExpectation(tuple(confirmed), tuple(not_confirmed), none, tuple(unless))


def all_expectations(folder: Path = SAMPLES) -> list[Expectation]:
    return [read_expectation(path) for path in sorted(folder.glob("*.expect.toml"))]


def marked_lines(script: Path) -> dict[str, set[int]]:
    """Line numbers (from 1) by marker name."""
    lines: dict[str, set[int]] = {}
    for number, text in enumerate(script.read_text(encoding="utf-8").splitlines(), start=1):
        if match := MARKER.search(text):
            lines.setdefault(match.group(1), set()).add(number)
    return lines


def discrepancies(expected: Expectation, session: Session) -> list[str]:
    """Sentences on where the session differs from what is expected; empty when it does not."""
    marks = marked_lines(expected.script)
    return [
        *_verdict_discrepancies(expected, session, marks),
        *where_discrepancies(expected, session),
        *_loop_discrepancies(expected, session, marks),
        *_rule_discrepancies(expected, session, marks),
    ]


def confirmed_rules(session: Session) -> list[str]:
    """Rules whose edit a trial confirmed, in the order of the session's findings."""
    return [found.rule for found in session.findings if found.trial.state == "confirmed"]


def false_confirmations(expected: Expectation, session: Session) -> list[str]:
    """Rules that were confirmed although the expectation forbids it, in the session's order."""
    return [rule for rule in confirmed_rules(session) if expected.trials.forbids(rule)]


def _verdict_discrepancies(
    expected: Expectation, session: Session, marks: dict[str, set[int]]
) -> list[str]:
    verdict, found = session.verdict, []
    if verdict.bottleneck not in expected.bottleneck:
        found.append(f"verdict {verdict.bottleneck}, expected one of {expected.bottleneck}")
    if expected.verdict_line is not None:
        place = (verdict.file, verdict.line)
        if not _is_marked(expected.script, place, marks[expected.verdict_line]):
            found.append(f"verdict names {place}, expected {expected.verdict_line}")
    text = " ".join([verdict.summary, *verdict.reasons]).lower()
    found += [f"the verdict does not say {word!r}" for word in expected.words if word not in text]
    if expected.profiler_conflict and not session.profiler_conflicts:
        found.append("the script's own profiler is not reported")
    return found


def where_discrepancies(expected: Expectation, session: Session) -> list[str]:
    """What the verdict says of the run's parts, against what is expected."""
    verdict, found = session.verdict, []
    marks = marked_lines(expected.script)
    if expected.where and verdict.where not in expected.where:
        found.append(
            f"most of the run is {verdict.where} ({verdict.where_percent} %), expected one of "
            f"{expected.where}"
        )
    if expected.where_line is not None:
        place = (verdict.where_file, verdict.where_line)
        if not _is_marked(expected.script, place, marks[expected.where_line]):
            found.append(f"the run's part is at {place}, expected {expected.where_line}")
    return found


def _loop_discrepancies(
    expected: Expectation, session: Session, marks: dict[str, set[int]]
) -> list[str]:
    loop = session.diagnosed_loop()
    if expected.loop_kind is None or expected.loop_line is None:
        return [] if loop is None else [f"a loop in line {loop.line} was diagnosed; there is none"]
    if loop is None:
        return [f"no loop was diagnosed, expected one of kind {expected.loop_kind}"]
    found = _diagnosed_loop_discrepancies(expected, loop, marks[expected.loop_line])
    seen = {other.role for other in session.loops if other is not loop}
    found += [f"no loop of role {role}" for role in expected.other_roles if role not in seen]
    return found


def _diagnosed_loop_discrepancies(expected: Expectation, loop: Loop, lines: set[int]) -> list[str]:
    found = []
    if loop.role != "training":
        found.append(f"the diagnosed loop has role {loop.role}")
    if loop.kind not in (expected.loop_kind or ()):
        found.append(f"the loop is of kind {loop.kind}, expected one of {expected.loop_kind}")
    if not _is_marked(expected.script, (loop.file, loop.line), lines):
        found.append(f"the loop is at {loop.file}:{loop.line}, expected line {sorted(lines)}")
    return found


def _rule_discrepancies(
    expected: Expectation, session: Session, marks: dict[str, set[int]]
) -> list[str]:
    seen: dict[str, set[str]] = {}
    for finding in session.findings:
        seen.setdefault(finding.rule, set()).add(finding.status)
    none: set[str] = set()
    fails = {rule for rule, statuses in seen.items() if "fail" in statuses}
    shown = {rule for rule, statuses in seen.items() if statuses & SHOWN}
    wrong = [
        (set(expected.must_fail) - fails, "to fail"),
        (set(expected.must_show) - shown, "to fail or inform"),
        (set(expected.must_not_fail) & fails, "not to fail"),
        (set(expected.must_be_silent) & shown, "to be silent"),
    ]
    found = [
        f"rule {rule} is {sorted(seen.get(rule, none))}, expected {wish}"
        for rules, wish in wrong
        for rule in sorted(rules)
    ]
    first = next((one.rule for one in session.findings if to_act_on(one)), None)
    if expected.first and first not in expected.first:
        found.append(f"the first advice is of {first}, expected one of {expected.first}")
    return found + _place_discrepancies(expected, session, marks)


def _place_discrepancies(
    expected: Expectation, session: Session, marks: dict[str, set[int]]
) -> list[str]:
    found = []
    for rule, marker in expected.rule_lines.items():
        shown = [f for f in session.findings if f.rule == rule and f.status in SHOWN]
        places = [(finding.file, finding.line) for finding in shown]
        if not any(_is_marked(expected.script, place, marks[marker]) for place in places):
            found.append(f"rule {rule} names {places}, expected {marker} {sorted(marks[marker])}")
    return found


def _is_marked(script: Path, place: tuple[str | None, int | None], lines: set[int]) -> bool:
    file, line = place
    return file is not None and Path(file).name == script.name and line in lines
