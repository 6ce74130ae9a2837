"""Comparison of a session with what probes that do not use pipediag found of a public script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.public_scripts.scripts import PublicScript
from pipediag.facts.order import to_act_on
from pipediag.runner.native_runs import kept
from pipediag.session.ledger import RunGain
from pipediag.session.model import Session
from pipediag.trials.statistics import Estimate

NOTHING = "none"


@dataclass(frozen=True)
class Applied:
    """Promise and result of the patch of the confirmed edits, for the run."""

    edits: tuple[str, ...]
    promised: RunGain | None
    obtained: Estimate | None
    error: str | None = None
    """Why there is nothing to compare."""

    @property
    def kept(self) -> bool | None:
        """Return whether the two intervals overlap; None where one is missing."""
        if self.promised is None or self.obtained is None:
            return None
        return kept(self.promised, self.obtained)

    def as_record(self) -> dict[str, Any]:
        """Return the fields for a file."""
        promised = self.promised and self.promised.model_dump(mode="json")
        return {**asdict(self), "edits": list(self.edits), "promised": promised}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Applied:
        """Return what `as_record` was called on."""
        promised, obtained = record["promised"], record["obtained"]
        return cls(
            tuple(record["edits"]),
            promised and RunGain.model_validate(promised),
            obtained and Estimate(**obtained),
            record["error"],
        )


@dataclass(frozen=True)
class Outcome:
    """One script under pipediag."""

    script: PublicScript
    seconds: float
    bottleneck: str = "-"
    where: str = "-"
    line: int | None = None
    advice: str = "-"
    """The rule that the report advises first, and its state; `none` where it advises nothing."""
    verdict_right: bool = False
    advice_right: bool = False
    applied: Applied | None = None
    """None where nothing was confirmed."""
    error: str | None = None
    """Why there is no session."""

    @property
    def verdict(self) -> str:
        place = f", line {self.line}" if self.line else ""
        return f"{self.bottleneck}{place}; {self.where}"


def judged(
    script: PublicScript, session: Session, applied: Applied | None, seconds: float
) -> Outcome:
    """Compare the session with the table's truth."""
    if session.steps is None:
        return Outcome(script, seconds, error=session.steps_missing or "no step was measured")
    verdict, truth = session.verdict, script.truth
    first = next((one for one in session.findings if to_act_on(one)), None)
    rule = first.rule if first else NOTHING
    state = first.trial.state if first and first.trial.state != "not_tried" else "not tried"
    in_script = verdict.file is not None and Path(verdict.file).name == f"{script.name}.py"
    line = verdict.line if in_script else None
    places = not truth.lines or line in truth.lines
    parts = not truth.where or verdict.where in truth.where
    return Outcome(
        script,
        seconds,
        bottleneck=verdict.bottleneck,
        where=verdict.where or "-",
        line=line,
        advice=rule if first is None else f"{rule} ({state})",
        verdict_right=verdict.bottleneck in truth.bottleneck and places and parts,
        advice_right=rule in truth.advice,
        applied=applied,
    )


def totals(outcomes: Sequence[Outcome]) -> str:
    """Return the counts in one line."""
    known = [o.applied.kept for o in outcomes if o.applied and o.applied.kept is not None]
    return (
        f"Verdict right in {sum(o.verdict_right for o in outcomes)} of {len(outcomes)}, first "
        f"advice an expert's in {sum(o.advice_right for o in outcomes)}; of {len(known)} promises "
        f"for a run {sum(known)} were kept."
    )


def line(outcome: Outcome) -> str:
    """Return one script for the terminal."""
    name = outcome.script.name
    if outcome.error is not None:
        return f"fail {name}: {outcome.error}"
    word = "ok  " if outcome.verdict_right and outcome.advice_right else "MISS"
    gain, applied = "nothing confirmed", outcome.applied
    if applied is not None:
        kept = {True: "kept", False: "BROKEN", None: applied.error or "no promise"}[applied.kept]
        gain = f"promised {_promise(applied)}, obtained {applied.obtained or '-'} ({kept})"
    said = f"{word} {name}: {outcome.verdict}; first {outcome.advice}; {gain}"
    return f"{said}; {outcome.seconds:.0f} s"


def markdown(outcomes: Sequence[Outcome], machine: str, quiet: bool) -> str:
    """Return two tables: what was found, and where each script comes from."""
    noise = (
        "Nothing else ran on the machine."
        if quiet
        else "**Other work ran on the machine: its figures are noisy, its verdicts count.**"
    )
    rows = [
        "# Scripts that nobody here wrote",
        "",
        f"`python -m benchmarks.public --mirrors DIR`. {machine}. {noise}",
        "",
        totals(outcomes),
        "",
        "Promised and obtained: for the whole run, all confirmed edits that a patch can contain.",
        "",
        "| script | truth | found | right | expert's first advice | first advice | right "
        "| promised | obtained | kept |",
        "|" + "---|" * 10,
        *map(_row, outcomes),
        "",
        "## Where they come from, what was changed, and how the truth was found",
        "",
        "By probes: a step of the script as it is `written`, natively; on one batch `repeated`, as "
        "if input were free; and on `half` of that batch, which shows what does not depend on the "
        "batch: starting the step, and updates of whole tables. `read`: from the source.",
        "",
        "| script | source | changed | truth found by |",
        "|" + "---|" * 4,
        *map(_source, outcomes),
    ]
    return "\n".join(rows) + "\n"


def _row(outcome: Outcome) -> str:
    truth, applied = outcome.script.truth, outcome.applied
    gain = ("-", "-", "-")
    if applied is not None:
        kept = {True: "yes", False: "no", None: "-"}[applied.kept]
        gain = (_promise(applied), str(applied.obtained or applied.error or "-"), kept)
    cells = [
        f"`{outcome.script.name}`",
        " or ".join(truth.bottleneck) + (f"; {' or '.join(truth.where)}" if truth.where else ""),
        outcome.error or outcome.verdict,
        "yes" if outcome.verdict_right else "no",
        " or ".join(truth.advice),
        outcome.advice,
        "yes" if outcome.advice_right else "no",
        *gain,
    ]
    return "| " + " | ".join(cells) + " |"


def _source(outcome: Outcome) -> str:
    script = outcome.script
    place = f"{script.repository} {script.commit[:10]} `{script.path}`"
    return f"| `{script.name}` | {place} | {script.changed} | {script.truth.how} |"


def _promise(applied: Applied) -> str:
    gain = applied.promised
    if gain is None:
        return "-"
    low, high = gain.ci95 or (gain.speedup, gain.speedup)
    return f"{gain.speedup:.2f} [{low:.2f}, {high:.2f}]"
