"""Reads what is expected of a sample, and says where a session differs from it.

An expectation lies beside its script as `<name>.expect.toml`. Lines are given by marker: the
comment `# pipediag: culprit` in the script marks the line, or the lines, that the expectation
calls `culprit`.
"""

from __future__ import annotations

import re
import tomllib
from importlib.util import find_spec
from pathlib import Path

import msgspec

from pipediag.facts.order import to_act_on
from pipediag.session.model import Session
from pipediag.vocabulary import RunPartName

SAMPLES = Path(__file__).resolve().parents[2] / "sample_pipelines"
MARKER = re.compile(r"#\s*pipediag:\s*([a-z][a-z-]*)\s*$")
SHOWN = frozenset({"fail", "informative"})
_TRUE_ANYWHERE = ("iterator-pauses",)
"""TensorFlow's own pauses come with every pipeline that it tunes, whatever a script shows."""


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of the file; whatever it leaves out is not judged."""


class Verdict(Table):
    bottleneck: tuple[str, ...]
    """Any of these is right."""
    line: str | None = None
    """Marker of the line that the verdict must name."""
    where: tuple[RunPartName, ...] = ()
    """Parts of the run of which the verdict must name one."""
    where_line: str | None = None
    """Marker of the line that the verdict must name for that part."""


class DiagnosedLoop(Table):
    kind: tuple[str, ...]
    line: str
    other_roles: tuple[str, ...] = ()
    """Roles that other loops of the script must have been given."""


class Rules(Table):
    fail: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    """Rules of which one must give the first advice."""
    shown: tuple[str, ...] = ()
    """Rules that must fail or inform."""
    not_fail: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    """Rules that must neither fail nor inform."""
    lines: dict[str, str] = {}
    """Marker of the line that a rule's finding must name."""


class Trials(Table):
    """What trials must find, where that is beyond doubt."""

    confirmed: tuple[str, ...] = ()
    """The first confirmed finding must be of one of these rules."""
    not_confirmed: tuple[str, ...] = ()
    """Rules of which nothing may be confirmed."""
    none: bool = False
    """Nothing at all may be confirmed, but what `unless` names."""
    unless: tuple[str, ...] = ()
    """Rules whose gain hangs on the machine: on a fast one, launching is more of a step."""

    def forbids(self, rule: str) -> bool:
        if rule in _TRUE_ANYWHERE:
            return False
        return rule in self.not_confirmed or (self.none and rule not in self.unless)


class Expectation(Table):
    """What is true of one sample."""

    script: Path
    measured: str
    """Figures taken without pipediag, for readers."""
    verdict: Verdict
    loop: DiagnosedLoop | None = None
    """None where there is no training loop."""
    rules: Rules = Rules()
    trials: Trials = Trials()
    exit_status: tuple[int, ...] = (0,)
    """Statuses of `pipediag analyze` that are right."""
    needs: tuple[str, ...] = ()
    """Modules other than TensorFlow without which the script cannot run."""
    in_every_run: bool = False
    """`make test` runs the sample; others are left to `make test-samples`."""
    looks_ahead: bool = False
    """The truth shows only where what follows the measured windows is waited for."""
    profiler_conflict: bool = False
    """The session must report that the script profiles itself."""

    @property
    def name(self) -> str:
        return self.script.stem

    @property
    def missing_modules(self) -> list[str]:
        return [name for name in ("tensorflow", *self.needs) if find_spec(name) is None]

    @property
    def marks(self) -> dict[str, set[int]]:
        """Line numbers (from 1) by marker."""
        lines: dict[str, set[int]] = {}
        for number, text in enumerate(self.script.read_text("utf-8").splitlines(), start=1):
            if match := MARKER.search(text):
                lines.setdefault(match.group(1), set()).add(number)
        return lines

    def is_marked(self, marker: str, file: str | None, line: int | None) -> bool:
        in_script = file is not None and Path(file).name == self.script.name
        return in_script and line in self.marks[marker]


def read_expectation(path: Path) -> Expectation:
    """Read `<name>.expect.toml`; unknown and missing keys raise msgspec.ValidationError."""
    script = path.with_name(path.name.removesuffix(".expect.toml") + ".py")
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    return msgspec.convert({"script": script, **table}, Expectation)


def all_expectations(folder: Path = SAMPLES) -> list[Expectation]:
    return [read_expectation(path) for path in sorted(folder.glob("*.expect.toml"))]


def confirmed_rules(session: Session) -> list[str]:
    """Rules whose edit a trial confirmed, in the order of the session's findings."""
    return [found.rule for found in session.findings if found.trial.state == "confirmed"]


def false_confirmations(expected: Expectation, session: Session) -> list[str]:
    """Rules that were confirmed although the expectation forbids it, in the session's order."""
    return [rule for rule in confirmed_rules(session) if expected.trials.forbids(rule)]


def discrepancies(expected: Expectation, session: Session) -> list[str]:
    """Sentences on where the session differs from what is expected; empty when it does not."""
    verdict, wanted = session.verdict, expected.verdict
    found = []
    if verdict.bottleneck not in wanted.bottleneck:
        found.append(f"verdict {verdict.bottleneck}, expected one of {wanted.bottleneck}")
    if wanted.line and not expected.is_marked(wanted.line, verdict.file, verdict.line):
        found.append(f"verdict names {verdict.file}:{verdict.line}, expected {wanted.line}")
    own = any("profiler itself" in note for note in session.notes)
    if expected.profiler_conflict and not own:
        found.append("the script's own profiler is not reported")
    found += where_discrepancies(expected, session)
    found += _loop_discrepancies(expected, session)
    found += _rule_discrepancies(expected, session)
    if found:  # A failure seen once, on another machine, has to be understood from this alone.
        found.append(" ".join(["The session says:", verdict.summary, *verdict.reasons]))
    return found


def where_discrepancies(expected: Expectation, session: Session) -> list[str]:
    """What the verdict says of the run's parts, against what is expected."""
    verdict, wanted, found = session.verdict, expected.verdict, []
    if wanted.where and verdict.where not in wanted.where:
        found.append(f"most of the run is {verdict.where}, expected one of {wanted.where}")
    place = (verdict.where_file, verdict.where_line)
    if wanted.where_line and not expected.is_marked(wanted.where_line, *place):
        found.append(f"the run's part is at {place}, expected {wanted.where_line}")
    return found


def _loop_discrepancies(expected: Expectation, session: Session) -> list[str]:
    loop, wanted = session.diagnosed_loop(), expected.loop
    if wanted is None:
        return [] if loop is None else [f"a loop in line {loop.line} was diagnosed; there is none"]
    if loop is None:
        return [f"no loop was diagnosed, expected one of kind {wanted.kind}"]
    found = []
    if loop.role != "training":
        found.append(f"the diagnosed loop has role {loop.role}")
    if loop.kind not in wanted.kind:
        found.append(f"the loop is of kind {loop.kind}, expected one of {wanted.kind}")
    if not expected.is_marked(wanted.line, loop.file, loop.line):
        found.append(f"the loop is at {loop.file}:{loop.line}, expected {wanted.line}")
    seen = {other.role for other in session.loops if other is not loop}
    return found + [f"no loop of role {role}" for role in wanted.other_roles if role not in seen]


def _rule_discrepancies(expected: Expectation, session: Session) -> list[str]:
    wanted = expected.rules
    seen: dict[str, set[str]] = {}
    for finding in session.findings:
        seen.setdefault(finding.rule, set()).add(finding.status)
    fails = {rule for rule, statuses in seen.items() if "fail" in statuses}
    shown = {rule for rule, statuses in seen.items() if statuses & SHOWN}
    wrong = [
        (set(wanted.fail) - fails, "to fail"),
        (set(wanted.shown) - shown, "to fail or inform"),
        (set(wanted.not_fail) & fails, "not to fail"),
        (set(wanted.silent) & shown, "to be silent"),
    ]
    found = [
        f"rule {rule} is {sorted(seen.get(rule, ()))}, expected {wish}"
        for rules, wish in wrong
        for rule in sorted(rules)
    ]
    first = next((one.rule for one in session.findings if to_act_on(one)), None)
    if wanted.first and first not in wanted.first:
        found.append(f"the first advice is of {first}, expected one of {wanted.first}")
    for rule, marker in wanted.lines.items():
        of_rule = [f for f in session.findings if f.rule == rule and f.status in SHOWN]
        places = [(finding.file, finding.line) for finding in of_rule]
        if not any(expected.is_marked(marker, *place) for place in places):
            found.append(f"rule {rule} names {places}, expected {marker}")
    return found
