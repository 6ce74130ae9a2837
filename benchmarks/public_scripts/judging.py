"""Whether a session says of a public script what probes that do not use pipediag found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.public_scripts.scripts import PublicScript
from pipediag.facts.order import to_act_on
from pipediag.session.ledger import RunGain
from pipediag.session.model import Session
from pipediag.trials.statistics import Estimate

NOTHING = "none"
VERDICTS_GOAL, ADVICE_GOAL, SCRIPTS_GOAL = 14, 13, 15


@dataclass(frozen=True)
class Applied:
    """What the patch of the confirmed edits promised and obtained for the run."""

    edits: tuple[str, ...]
    promised: RunGain | None
    obtained: Estimate | None
    error: str | None = None
    """Why there is nothing to compare."""

    @property
    def kept(self) -> bool | None:
        """Whether the two intervals overlap; None where one is missing."""
        if self.promised is None or self.obtained is None:
            return None
        low, high = self.promised.ci95 or (self.promised.speedup, self.promised.speedup)
        return low <= self.obtained.high and self.obtained.low <= high

    def as_record(self) -> dict[str, Any]:
        """For a file."""
        promised = self.promised and self.promised.model_dump(mode="json")
        return {**asdict(self), "edits": list(self.edits), "promised": promised}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Applied:
        """What `as_record` gave."""
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
    bottleneck: str
    where: str
    line: int | None
    advice: str
    """The rule that the report advises first, and its state; `none` where it advises nothing."""
    verdict_right: bool
    advice_right: bool
    applied: Applied | None
    """None where nothing was confirmed."""
    seconds: float
    error: str | None = None


def judged(
    script: PublicScript, session: Session, applied: Applied | None, seconds: float
) -> Outcome:
    """What the session is worth against the table's truth."""
    if session.steps is None:
        return failed(script, session.steps_missing or "no step was measured", seconds)
    verdict, truth = session.verdict, script.truth
    first = next((one for one in session.findings if to_act_on(one)), None)
    rule = first.rule if first else NOTHING
    state = first.trial.state if first and first.trial.state != "not_tried" else "not tried"
    own = verdict.file is not None and Path(verdict.file).name == f"{script.name}.py"
    line = verdict.line if own else None
    places = not truth.lines or line in truth.lines
    parts = not truth.where or verdict.where in truth.where
    return Outcome(
        script=script,
        bottleneck=verdict.bottleneck,
        where=verdict.where or "-",
        line=line,
        advice=rule if first is None else f"{rule} ({state})",
        verdict_right=verdict.bottleneck in truth.bottleneck and places and parts,
        advice_right=rule in truth.advice,
        applied=applied,
        seconds=seconds,
    )


def failed(script: PublicScript, error: str, seconds: float) -> Outcome:
    """A script of which there is no session."""
    return Outcome(script, "-", "-", None, "-", False, False, None, seconds, error)


def totals(outcomes: Sequence[Outcome]) -> str:
    """Counts against the goals, in one line."""
    count = len(outcomes)
    kept = [
        o.applied.kept for o in outcomes if o.applied is not None and o.applied.kept is not None
    ]
    return (
        f"Verdict right in {sum(o.verdict_right for o in outcomes)} of {count} (goal "
        f"{VERDICTS_GOAL} of {SCRIPTS_GOAL}), first advice an expert's in "
        f"{sum(o.advice_right for o in outcomes)} (goal {ADVICE_GOAL}); of {len(kept)} promises "
        f"for a run {sum(kept)} came true."
    )


def line(outcome: Outcome) -> str:
    """One script, for the terminal."""
    if outcome.error is not None:
        return f"fail {outcome.script.name}: {outcome.error}"
    word = "ok  " if outcome.verdict_right and outcome.advice_right else "MISS"
    return (
        f"{word} {outcome.script.name}: {_verdict(outcome)}; first {outcome.advice}; "
        f"{_gain(outcome)}; {outcome.seconds:.0f} s"
    )


def markdown(outcomes: Sequence[Outcome], machine: str, quiet: bool) -> str:
    """The tables to commit: what was found, then where each script comes from."""
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
        "Promised and obtained: of the whole run, all confirmed edits that a patch can hold.",
        "",
        "| script | truth | found | right | expert's first advice | first advice | right "
        "| promised | obtained | kept |",
        "|" + "---|" * 10,
        *map(_row, outcomes),
        "",
        "## Where they come from, what was changed, and how the truth was found",
        "",
        "Of probes: a step of the script as it is `written`, natively; on one batch `repeated`, as "
        "if input were free; and on `half` of that batch, which tells what is paid whatever a "
        "batch holds: starting the step, and updates of whole tables. `read`: from the source.",
        "",
        "| script | source | changed | truth found by |",
        "|" + "---|" * 4,
        *map(_source, outcomes),
    ]
    return "\n".join(rows) + "\n"


def _row(outcome: Outcome) -> str:
    truth, applied = outcome.script.truth, outcome.applied
    promised = obtained = kept = "-"
    if applied is not None:
        promised = _promise(applied.promised)
        obtained = str(applied.obtained or applied.error or "-")
        kept = {True: "yes", False: "no", None: "-"}[applied.kept]
    cells = [
        f"`{outcome.script.name}`",
        " or ".join(truth.bottleneck) + (f"; {' or '.join(truth.where)}" if truth.where else ""),
        outcome.error or _verdict(outcome),
        "yes" if outcome.verdict_right else "no",
        " or ".join(truth.advice),
        outcome.advice,
        "yes" if outcome.advice_right else "no",
        *(promised, obtained, kept),
    ]
    return "| " + " | ".join(cells) + " |"


def _source(outcome: Outcome) -> str:
    script = outcome.script
    place = f"{script.repository} {script.commit[:10]} `{script.path}`"
    return f"| `{script.name}` | {place} | {script.changed} | {script.truth.how} |"


def _verdict(outcome: Outcome) -> str:
    place = f", line {outcome.line}" if outcome.line else ""
    return f"{outcome.bottleneck}{place}; {outcome.where}"


def _gain(outcome: Outcome) -> str:
    applied = outcome.applied
    if applied is None:
        return "nothing confirmed"
    word = {True: "kept", False: "BROKEN", None: applied.error or "no promise"}[applied.kept]
    return f"promised {_promise(applied.promised)}, obtained {applied.obtained or '-'} ({word})"


def _promise(gain: RunGain | None) -> str:
    if gain is None:
        return "-"
    low, high = gain.ci95 or (gain.speedup, gain.speedup)
    return f"{gain.speedup:.2f} [{low:.2f}, {high:.2f}]"
