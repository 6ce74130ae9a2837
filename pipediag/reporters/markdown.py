"""The session as Markdown, for an issue or a message: what one would be asked for there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pipediag.encoding.markup import markdown_code, markdown_heading, markdown_row, markdown_text
from pipediag.encoding.text import applicable, clipped
from pipediag.facts.names import RUN_PART
from pipediag.facts.order import culprit_place
from pipediag.reporters.words import advice, embeddings, labels, run, trials
from pipediag.reporters.words.quantities import milliseconds, percent, percent_interval, seconds
from pipediag.session.model import Session

REPORT_FILE = "report.md"
MOST_FINDINGS = 10
"""An issue is read by people; findings.csv has all."""
_MOST_LINES = 60
_LONGEST_CELL = 300
_LONGEST_TEXT = 1_500
"""Characters: an issue on GitHub holds 65,536 in all."""


def files(session: Session) -> Iterator[tuple[str, str]]:
    """Yield the one page."""
    yield REPORT_FILE, render(session)


def render(session: Session) -> str:
    """Return verdict, first advice, where run and step go, findings, and what it ran on."""
    blocks = (_verdict, _first, _run, _step, _findings, _where_it_ran)
    return "\n\n".join("\n".join(lines) for block in blocks if (lines := block(session))) + "\n"


def _verdict(session: Session) -> list[str]:
    verdict = session.verdict
    said = (advice.shown_severity(session).text, advice.low_confidence(session))
    title = ", ".join(filter(None, (advice.verdict_label(session), *said)))
    summary = " ".join(filter(None, (verdict.summary, embeddings.largest_part(session))))
    lines = [markdown_heading(2, "pipediag", title), "", _text(summary)]
    if verdict.reasons:
        lines += ["", *(f"- {_text(reason)}" for reason in verdict.reasons)]
    return lines


def _first(session: Session) -> list[str]:
    found = advice.answer(session)
    title = markdown_heading(3, "What to change first")
    if found is None:
        nothing = advice.nothing_worth_doing(session)
        tried = f"{trials.counted_outcomes(session)}." if session.trials is not None else None
        said = [text for text in (nothing, tried) if text is not None]
        return [title, "", *map(_text, said)] if said else []
    lines = [title, "", _text(found.finding.advice)]
    if found.changes:
        lines += [
            "",
            *(f"- {_text(clipped(one, _LONGEST_CELL))}" for one in found.changes[:MOST_FINDINGS]),
        ]
    if found.gain is not None:
        condition = f", {found.condition}" if found.condition else ""
        lines += ["", f"**{_text(str(found.gain))}**{_text(condition)}"]
    lines += ["", _text(found.why)]
    diff = found.patch.diff if found.patch is not None else None
    if not diff:
        return lines
    shown = [clipped(one.expandtabs(4), _LONGEST_CELL) for one in applicable(diff).split("\n")]
    return [*lines, "", *markdown_code("diff", shown[:_MOST_LINES])]


def _run(session: Session) -> list[str]:
    if session.run is None:
        return []
    rows = [
        [RUN_PART[part.name], seconds(part.seconds), percent(part.percent), part.basis]
        for part in run.parts_of(session.run.parts)
    ]
    head = ("| Part | Time | Share | Known by |", "|---|--:|--:|---|")
    lead = " ".join(filter(None, (f"{run.title(session.run)}.", run.unseen(session.run))))
    return _table("Where the run's time goes", lead, head, rows)


def _step(session: Session) -> list[str]:
    steps = session.steps
    if session.breakdown is None or steps is None:
        return []
    rows = [
        [
            labels.STEP_CLASS[name],
            milliseconds(share.ms),
            percent(share.percent),
            percent_interval(share.ci95_percent),
        ]
        for name, share in session.breakdown.items()
        if share.percent > 0
    ]
    lead = f"Mean {milliseconds(steps.mean_ms)}, median {milliseconds(steps.median_ms)}."
    bound = run.free_input(session)
    if bound is not None:
        lead += f" With free input: {bound}."
    head = ("| Class | Per step | Share | 95 % interval |", "|---|--:|--:|--:|")
    return _table("Where a step's time goes", lead, head, rows)


def _findings(session: Session) -> list[str]:
    groups = advice.group(session)
    shown = [*groups.to_do, *groups.to_know, *groups.unsettled]
    if not shown:
        return []
    places = labels.SourceNames(session)
    rows = []
    for finding in shown[:MOST_FINDINGS]:
        known = trials.outcome(finding)
        parts = (known.word, known.numbers, known.condition) if known else ()
        where = places.at(finding.file, finding.line)
        rows.append([finding.rule, finding.title, where, " ".join(filter(None, parts))])
    head = ("| Rule | Finding | Where | Trial |", "|---|---|---|---|")
    more = len(shown) - MOST_FINDINGS
    rest = ["", f"And {more} more in findings.csv."] if more > 0 else []
    return [*_table("Findings", "", head, rows), *rest]


def _where_it_ran(session: Session) -> list[str]:
    environment = session.environment
    culprit = culprit_place(session)
    facts = {
        "Command": labels.command_line(session.script),
        "Line": labels.SourceNames(session).at(culprit.file, culprit.line) if culprit else None,
        "Processor": environment.cpu_model,
        "Cores": str(environment.cores),
        "Devices": ", ".join(device.name for device in environment.devices) or "none",
        "TensorFlow": environment.tensorflow,
        "Keras": environment.keras,
        "Python": environment.python,
        "pipediag": session.pipediag_version,
    }
    rows = [f"- {name}: {_text(value)}" for name, value in facts.items() if value]
    return [markdown_heading(3, "Where it ran"), "", *rows]


def _table(title: str, lead: str, head: Iterable[str], rows: Sequence[Sequence[str]]) -> list[str]:
    cells = ([clipped(cell, _LONGEST_CELL) for cell in row] for row in rows)
    above = [markdown_text(lead), ""] if lead else []
    return [markdown_heading(3, title), "", *above, *head, *map(markdown_row, cells)]


def _text(value: str) -> str:
    return markdown_text(clipped(value, _LONGEST_TEXT))
