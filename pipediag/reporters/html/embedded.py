"""The session inside the report: small enough for the page, safe inside a script element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pipediag.encoding.json import in_script_element
from pipediag.session.model import Session
from pipediag.session.record import to_json


@dataclass(frozen=True)
class Embedded:
    text: str
    left_out: list[str]
    """What was too large for the page, and which file has it, in words."""


def embed(session: Session, budget_bytes: int) -> Embedded:
    """JSON that no HTML parser can mistake for markup.

    Rows are left out, most bulky kind first, until the rest fits `budget_bytes`; the result is a
    valid session all the same. Where even that does not fit, it is `null`.
    """
    left_out: list[str] = []
    text = _escaped(session)
    for description, change in _thinner(session):
        if len(text.encode()) <= budget_bytes:
            break
        session = session.model_copy(update=change)
        left_out.append(description)
        text = _escaped(session)
    return Embedded(text if len(text.encode()) <= budget_bytes else "null", left_out)


def _thinner(session: Session) -> list[tuple[str, dict[str, Any]]]:
    steps = session.steps.model_copy(update={"samples_ms": []}) if session.steps else None
    trials = session.trials.model_copy(update={"blocks": []}) if session.trials else None
    devices = [device.model_copy(update={"gaps": []}) for device in session.devices]
    findings = [finding.model_copy(update={"patch": None}) for finding in session.findings]
    return [
        ("single steps (in steps.csv)", {"step_rows": []}),
        ("host samples (in host.csv)", {"host_samples": []}),
        ("step times (in steps.csv)", {"steps": steps}),
        ("blocks of the trials (in trials.csv)", {"trials": trials, "evaluation_trials": []}),
        ("idle gaps (in gaps.csv)", {"devices": devices}),
        ("patches (in session.json)", {"patch": None, "findings": findings}),
        (
            "the pipeline (in pipeline.csv)",
            {"pipeline": None, "pipeline_missing": "See pipeline.csv."},
        ),
        ("findings (in findings.csv)", {"findings": []}),
        (
            "loops, windows and notes (in session.json)",
            {"loops": [], "windows": [], "notes": [], "other_uses": []},
        ),
    ]


def _escaped(session: Session) -> str:
    return in_script_element(to_json(session))
