"""The summary of a session on the terminal: what a person needs before opening the report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pipediag.encoding.text import clipped
from pipediag.facts.embeddings import MemoryPlan, plan_memory
from pipediag.facts.names import as_typed
from pipediag.facts.order import worth_doing
from pipediag.reporters.terminal import (
    FINDING_STYLE,
    MAX_WIDTH,
    Encoded,
    ShareBar,
    facts,
    right,
    shortened,
)
from pipediag.reporters.words import advice, devices, embeddings, labels, run, trials
from pipediag.reporters.words.pipeline import parallel_calls, pipeline_rows
from pipediag.reporters.words.quantities import (
    byte_count,
    decimal,
    milliseconds,
    number,
    percent,
    percent_interval,
)
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.vocabulary import BY_ITSELF

_VERDICT_STYLE = {"ok": "green", "moderate": "yellow", "high": "red", "unknown": "cyan"}
_TRIAL_STYLE = {"confirmed": "green", "refuted": "red", "inconclusive": "", "not_tried": "dim"}
_LONGEST = 600
"""Characters of a paragraph: all of any advice of ours; a text of the framework can be endless."""
_SHORT = 200
_MOST_OTHERS = 1
"""Further findings that are named."""
_MOST_PARTS = 3
_MOST_CHANGES = 6
_LEAST_PERCENT = 1.0


def render(
    session: Session,
    console: Console,
    *,
    output_directory: Path | None,
    report_written: bool = True,
    verbose: bool = False,
) -> None:
    """Print the summary of a session: ten to fifteen lines, unless `verbose`.

    Args:
        session: what is summarised.
        console: where to.
        output_directory: where the session is; None where it was not written.
        report_written: whether the page lies beside it.
        verbose: shows every reason, operation and finding, however many lines that takes.
    """
    directory = None if output_directory is None else as_typed(output_directory)
    report = directory / "report.html" if directory is not None and report_written else None
    width = min(console.width, MAX_WIDTH)
    heading = shortened(advice.heading(session), _LONGEST, "bold")
    shown: list[RenderableType] = [_title(session, width), heading]
    for rows in (_answer(session), _overview(session)):
        shown += _apart(rows)
    if verbose:
        shown += _everything(session)
    shown += _apart(_following(session, directory, report))
    console.print(Encoded(Group(*shown)), width=width, highlight=False)


def _title(session: Session, width: int) -> Text:
    severity = advice.shown_severity(session)
    style, label = _VERDICT_STYLE[severity.severity], advice.verdict_label(session)
    said = filter(None, (severity.text, advice.low_confidence(session)))
    beside = "" if advice.healthy(session) else f"  {', '.join(said)}"
    room = width - len(label) - len(beside) - 4
    command = labels.short_command(session.script, max(room, 12))
    return Text.assemble(
        ("● ", style), (label, f"bold {style}"), beside, f"  {command}", no_wrap=True
    )


_Row = tuple[str, str, str]
"""What a line is about, its text and its style."""


def _apart(rows: Iterable[_Row]) -> list[RenderableType]:
    """Return the rows below an empty line; nothing where there are none."""
    table = _rows(rows)
    return [Text(), table] if table.row_count else []


def _rows(rows: Iterable[_Row]) -> Table:
    grid, before = facts(), ""
    for name, text, style in rows:
        grid.add_row(Text("" if name == before else name, "dim"), shortened(text, _LONGEST, style))
        before = name
    return grid


def _answer(session: Session) -> Iterator[_Row]:
    script, found = session.script, advice.answer(session)
    if script.outcome not in BY_ITSELF and script.detail:
        yield "Script", clipped(script.detail, _SHORT), ""
    if found is None:
        nothing = advice.nothing_worth_doing(session)
        if nothing is not None:
            yield "Change", nothing, ""
        if session.trials is not None:
            yield "Trials", f"{trials.counted_outcomes(session)}.", ""
        for text in islice(advice.what_else(session), 2):
            yield "Try next", text, ""
        return
    yield "Change", found.finding.advice, ""
    if found.changes:
        changes = [clipped(one, _SHORT) for one in found.changes[:_MOST_CHANGES]]
        yield "Together", f"{'; '.join(changes)}.", ""
    if found.gain is not None:
        condition = f", {found.condition}" if found.condition else ""
        measured = found.gain.known_by == "measured"
        yield "Gain", f"{found.gain}{condition}.", "green" if measured else ""
    yield "Why", found.why, ""
    others = [one for one in session.findings if worth_doing(one) and not found.holds(one)]
    places = labels.SourceNames(session)
    for finding in others[:_MOST_OTHERS]:
        gain = advice.gain(finding)
        at = places.at(finding.file, finding.line)
        title = f"{clipped(finding.title, _SHORT)}{f' ({at})' if at else ''}"
        yield "Also", f"{title}: {gain}" if gain else title, ""
    if len(others) > _MOST_OTHERS:
        yield "Also", f"{len(others) - _MOST_OTHERS} more in the report", "dim"


def _overview(session: Session) -> Iterator[_Row]:
    """Yield where run and step go, a line each, and what limits the diagnosis."""
    if session.run is not None:
        parts = run.in_one_line(session.run.parts, _MOST_PARTS)
        unseen = run.unseen(session.run)
        yield "Run", f"{run.whole(session.run)}: {parts}.{f' {unseen}' if unseen else ''}", ""
    steps = session.steps
    if steps is None:
        yield "Step", clipped(session.steps_missing or labels.NO_REASON, _SHORT), ""
    else:
        largest = sorted((session.breakdown or {}).items(), key=lambda item: -item[1].percent)
        named = [
            f"{labels.in_sentence(labels.STEP_CLASS[name])} {percent(share.percent)}"
            for name, share in largest[:_MOST_PARTS]
            if share.percent >= _LEAST_PERCENT
        ]
        divided = ", ".join(named) or session.breakdown_missing or labels.NO_REASON
        yield "Step", f"{milliseconds(steps.mean_ms)}: {divided}", ""
    for device in session.devices[:1]:
        if device.kind != "cpu":
            said = devices.summary(device, device.name)
            yield "Device", f"{said.lead}{said.rest}", ""
    plan = plan_memory(session)
    if plan is not None and (plan.lacking_bytes or plan.given):
        yield "Memory", embeddings.memory_needed(plan), "red" if plan.lacking_bytes else ""
    for note in session.notes[:1]:
        yield "Note", clipped(note, _SHORT), ""


def _following(session: Session, directory: Path | None, report: Path | None) -> Iterator[_Row]:
    if report is not None:
        yield "Report", str(report), "bold"
    following = advice.next_command(session, directory)
    if following is not None:
        yield following.purpose, following.command, "bold"


def _everything(session: Session) -> Iterator[RenderableType]:
    """Yield what the page unfolds: reasons, the step, the pipeline, tables and findings."""
    yield Text()
    reasons = [lead for lead in (advice.lead(session.verdict.summary)[1],) if lead]
    reasons += session.verdict.reasons
    agreement = [text for text in (run.loop_time(session.diagnosed_loop()),) if text]
    rows = [("Why", text, "") for text in (*reasons, *agreement)]
    left_out = [f"{label}: {reason}" for label, reason in trials.dropped(session)]
    rows += [("Left out", text, "") for text in left_out]
    rows += [("Note", text, "") for text in session.notes[1:]]
    yield _rows(rows)
    if session.breakdown is not None:
        yield Text("\nA step", "bold")
        yield _breakdown(session)
    if session.pipeline is not None and session.pipeline.ops:
        yield Text("\nInput pipeline: ms per step, share of the pipeline, parallel calls", "bold")
        yield _operations(session)
    yield from _embeddings(session, plan_memory(session))
    groups = advice.group(session)
    found = [*groups.to_do, *groups.to_know, *groups.unsettled]
    if found:
        yield Text("\nFindings", "bold")
        grid = facts(gap=1)
        places = labels.SourceNames(session)
        for index, finding in enumerate(found, 1):
            grid.add_row(f"{index:2}.", Group(*_finding(finding, places)))
        yield grid


def _breakdown(session: Session) -> Table:
    table = Table.grid(padding=(0, 2))
    for no_wrap in (False, False, True, True, True):
        table.add_column(no_wrap=no_wrap)
    shares = sorted((session.breakdown or {}).items(), key=lambda item: -item[1].percent)
    for name, share in shares:
        if share.percent >= 0.05:
            table.add_row(
                Padding(Text(labels.STEP_CLASS[name]), (0, 0, 0, 2)),
                ShareBar(share.percent),
                right(percent(share.percent)),
                right(f"{decimal(share.ms)} ms"),
                Text(f"({percent_interval(share.ci95_percent)})", "dim"),
            )
    return table


def _operations(session: Session) -> Table:
    assert session.pipeline is not None
    table = Table.grid(padding=(0, 2))
    for narrowest in (12, 12, 6, 7, 0):
        table.add_column(no_wrap=True, overflow="ellipsis", min_width=narrowest)
    for row in pipeline_rows(session.pipeline, labels.SourceNames(session)):
        style = "bold" if row.bottleneck else ""
        table.add_row(
            Text(("▶ " if row.bottleneck else "  ") + row.title, style),
            Text(row.place or ", ".join(row.notes), style if row.place else "dim"),
            Text(decimal(row.op.self_ms_per_step), justify="right", style=style),
            Text(percent(row.share_percent), justify="right", style=style),
            Text(parallel_calls(row.op), "dim"),
        )
    return table


def _embeddings(session: Session, plan: MemoryPlan | None) -> Iterator[RenderableType]:
    """Yield a line for each table, what each costs in a step, and what would save memory."""
    if session.embeddings:
        yield Text("\nEmbeddings", "bold")
    for table in session.embeddings:
        known = (
            f"{number(table.rows)} x {number(table.dim)}",
            f"{byte_count(table.table_bytes + (table.slot_bytes or 0))} with slots",
            f"{embeddings.update(table)} updated",
            f"rows of lookups {embeddings.rows_touched(table)}",
            embeddings.details(table),
            *embeddings.wrong(table),
        )
        yield shortened(f"  {table.layer}: {'; '.join(filter(None, known))}", _LONGEST)
    if session.embedding_cost is not None:
        named = ", ".join(
            f"{embeddings.part_name(part)}{f' of {part.layer}' if part.layer else ''} "
            f"{percent(part.percent)}"
            for part in session.embedding_cost.parts
        )
        yield shortened(f"  Compute of a step: {named}", _LONGEST)
    if plan is not None:
        yield shortened(f"  {embeddings.memory_needed(plan)}", _LONGEST)
        for one in plan.alternatives:
            left = f"{one.what}: {byte_count(one.device_bytes)} left on the device; {one.note}"
            yield shortened(f"  {left}", _LONGEST)


def _finding(finding: Finding, places: labels.SourceNames) -> Iterator[Text]:
    head = shortened(
        finding.title, _LONGEST, FINDING_STYLE[finding.severity] if finding.status == "fail" else ""
    )
    place = places.at(finding.file, finding.line)
    if place:
        head.append(f"  {place}", "default")
    yield head
    known = trials.outcome(finding)
    if known is not None:
        gain = run.gain(finding.for_run)
        retuned = finding.effect_on_results == "changes a hyper-parameter"
        sentences = (
            f"{known}; {gain}." if gain else f"{known}.",
            known.says,
            f"It {trials.effect(finding)}." if retuned else None,
            trials.missed(finding),
            trials.caveats(finding),
        )
        style = _TRIAL_STYLE[known.state] if known.state else ""
        yield shortened(" ".join(filter(None, sentences)), _LONGEST, style)
    yield shortened(finding.advice, _LONGEST, "dim")
