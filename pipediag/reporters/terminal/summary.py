"""The summary of a session on the terminal: what a person needs before opening the report."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pipediag.facts.embeddings import MemoryPlan, plan_memory
from pipediag.facts.names import as_typed
from pipediag.facts.order import to_act_on, worth_doing
from pipediag.reporters.terminal import (
    FINDING_STYLE,
    MAX_WIDTH,
    ShareBar,
    facts,
    print_fitting,
    right,
    shortened,
)
from pipediag.reporters.words import advice, embeddings, labels, run, step, trials
from pipediag.reporters.words.pipeline import dearest, parallel_calls, pipeline_rows
from pipediag.reporters.words.quantities import (
    byte_count,
    counted,
    decimal,
    milliseconds,
    number,
    percent,
    percent_interval,
)
from pipediag.session.embeddings import Embedding, EmbeddingCost
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.vocabulary import BY_ITSELF

_VERDICT_STYLE = {"ok": "green", "moderate": "yellow", "high": "red", "unknown": "cyan"}
_TRIAL_STYLE = {"confirmed": "green", "refuted": "red", "inconclusive": "", "not_tried": "dim"}


class Limits(NamedTuple):
    """Amounts of a session that are shown."""

    reasons: int
    next_steps: int
    notes: int
    """Notes on what limits this run's diagnosis, or went otherwise than planned."""
    classes: int
    operations: int
    embeddings: int
    findings: int
    advised: int
    """Findings that show their advice."""
    dropped: int
    """Confirmed changes that the combination leaves out."""
    phases: bool
    """Shows whether consumer alone, pipeline alone and both agree."""
    characters: int
    """Characters of one paragraph."""
    leading_characters: int
    """Characters of the verdict and of each thing to do first, which matter more."""


UNLIMITED = Limits(100, 100, 100, 9, 1000, 1000, 1000, 1000, 1000, True, 10_000, 10_000)
SPARING = (
    Limits(3, 2, 2, 7, 5, 3, 5, 3, 2, True, 240, 400),
    Limits(2, 1, 1, 6, 4, 2, 4, 1, 1, True, 156, 400),
    Limits(2, 1, 1, 5, 4, 2, 4, 0, 1, False, 156, 400),
    Limits(1, 1, 1, 4, 3, 1, 4, 0, 0, False, 156, 300),
    Limits(1, 1, 0, 3, 2, 1, 2, 0, 0, False, 150, 300),
    Limits(1, 1, 0, 3, 2, 1, 2, 0, 0, False, 150, 150),
)
"""Less and less, tried in turn; the last one fits any session at 80 columns."""


def render(
    session: Session,
    console: Console,
    *,
    output_directory: Path | None,
    report_written: bool = True,
    verbose: bool = False,
) -> None:
    """Print the summary of a session: under 40 lines, unless `verbose`.

    Args:
        session: what is summarised.
        console: where to.
        output_directory: where the session is; None where it was not written.
        report_written: whether the page lies beside it.
        verbose: shows every reason, operation and finding, however many lines that takes.
    """
    directory = None if output_directory is None else as_typed(output_directory)
    report = directory / "report.html" if directory is not None and report_written else None
    print_fitting(
        console,
        (
            _Summary(session, limits).sections(directory, report)
            for limits in ((UNLIMITED,) if verbose else SPARING)
        ),
    )


class _Summary:
    """The parts of the summary, each drawn within the same limits."""

    def __init__(self, session: Session, limits: Limits) -> None:
        self._session = session
        self._limits = limits
        self._places = labels.SourceNames(session)

    def sections(self, directory: Path | None, report: Path | None) -> Iterator[RenderableType]:
        session, tables = self._session, self._limits.embeddings
        yield from self._verdict()
        yield Text()
        yield from self._run()
        yield from self._breakdown()
        yield from self._operations()
        if tables:
            yield from _embeddings(session.embeddings, tables)
            yield from _cost(session.embedding_cost, tables)
            yield from _memory(plan_memory(session))
        yield from self._findings()
        yield Text()
        grid = facts()
        if report is not None:
            grid.add_row(Text("Report", "dim"), Text(str(report)))
        following = advice.next_command(session, directory)
        if following is not None:
            typed = self._paragraph(following.command, "bold", self._limits.leading_characters)
            grid.add_row(Text(following.purpose, "dim"), typed)
        yield grid

    def _verdict(self) -> Iterator[RenderableType]:
        session, limits = self._session, self._limits
        verdict, leading = session.verdict, limits.leading_characters
        shown = advice.shown_severity(session)
        style = _VERDICT_STYLE[shown.severity]
        head = Text.assemble(
            ("● ", style),
            (advice.verdict_label(session).upper(), f"bold {style}"),
            f"  {shown.text}, {verdict.confidence} confidence  ",
            (labels.command_line(session.script), "dim"),
        )
        head.truncate(MAX_WIDTH, overflow="ellipsis")
        head.no_wrap, head.overflow = True, "ellipsis"
        yield head
        yield self._paragraph(verdict.summary, "bold", leading)
        measured = trials.headline(session)
        if measured is not None:
            yield self._paragraph(str(measured), "bold green" if measured.number else "", leading)
        advised = any(map(worth_doing, session.findings))
        nothing = advice.nothing_worth_doing(session)
        script = session.script
        broke_off = script.outcome not in BY_ITSELF and script.detail
        left_out = [f"{label}: {reason}" for label, reason in trials.dropped(session)]
        grid = facts()
        for name, texts, limit in (
            ("Left out", left_out[: limits.dropped], None),
            ("Script", [script.detail] if broke_off and script.detail else [], None),
            ("Why", verdict.reasons[: limits.reasons], None),
            ("Do first", verdict.next_steps[: limits.next_steps] if advised else [], leading),
            ("Do first", [nothing] if nothing is not None else [], None),
            ("Try next", advice.what_else(session)[: limits.next_steps], leading),
            ("Note", session.notes[: limits.notes], None),
        ):
            for index, text in enumerate(texts):
                title = Text("" if index else name, "dim")
                grid.add_row(title, self._paragraph(text, limit=limit))
        yield grid

    def _run(self) -> Iterator[RenderableType]:
        found = self._session.run
        if found is None:
            return
        yield Text(run.whole(found), "bold")
        if self._limits.phases:
            limit = self._limits.leading_characters
            for line in (run.in_one_line(found.parts), run.seen_in_one_line(found)):
                if line is not None:
                    yield _indented(self._paragraph(line, limit=limit))

    def _breakdown(self) -> Iterator[RenderableType]:
        session, steps = self._session, self._session.steps
        if steps is None:
            yield self._missing("Step time", session.steps_missing)
            return
        # A loop inside a tf.function is timed in intervals of several steps.
        loop = session.diagnosed_loop()
        unit = "intervals" if loop is not None and loop.kind == "in_graph" else "steps"
        seen = f"{number(steps.count)} {unit} after {number(steps.warmup_count)} of warm-up"
        yield Text(f"{step.step_time(steps)}; {seen}", "bold")
        if session.breakdown is None:
            yield self._missing("Breakdown", session.breakdown_missing)
            return
        table = Table.grid(padding=(0, 2))
        for no_wrap in (False, False, True, True, True):
            table.add_column(no_wrap=no_wrap)
        shown = sorted(session.breakdown.items(), key=lambda item: -item[1].percent)
        for name, share in shown[: self._limits.classes]:
            if share.percent >= 0.05:
                table.add_row(
                    _indented(Text(labels.STEP_CLASS[name])),
                    ShareBar(share.percent),
                    right(percent(share.percent)),
                    right(f"{decimal(share.ms)} ms"),
                    Text(f"({percent_interval(share.ci95_percent)})", "dim"),
                )
        yield table
        gain = step.free_input(session)
        if gain is not None:
            yield _indented(Text(f"With free input: {gain}"))
        if self._limits.phases:
            of_loop, fit = step.loop_time(loop), step.agreement(session)
            if of_loop is not None:
                yield _indented(self._paragraph(of_loop))
            if fit is not None:
                yield _indented(self._paragraph(fit, limit=self._limits.leading_characters))

    def _operations(self) -> Iterator[RenderableType]:
        pipeline = self._session.pipeline
        if pipeline is None or not pipeline.ops:
            if self._session.steps is not None:
                reason = pipeline.missing if pipeline else self._session.pipeline_missing
                yield self._missing("Pipeline", reason)
            return
        yield Text()
        yield Text("Input pipeline, what costs most: ms per step, share of the pipeline", "bold")
        table = Table.grid(padding=(0, 2))
        for narrowest in (12, 12, 6, 7, 0):
            table.add_column(no_wrap=True, overflow="ellipsis", min_width=narrowest)
        rows = pipeline_rows(pipeline, self._places)
        for row in dearest(rows, self._limits.operations):
            style = "bold" if row.bottleneck else ""
            table.add_row(
                Text(("▶ " if row.bottleneck else "  ") + row.title, style),
                Text(row.place or ", ".join(row.notes), style if row.place else "dim"),
                Text(decimal(row.op.self_ms_per_step), justify="right", style=style),
                Text(percent(row.share_percent), justify="right", style=style),
                Text(parallel_calls(row.op), "dim"),
            )
        yield table

    def _findings(self) -> Iterator[RenderableType]:
        groups = advice.group(self._session)
        named = [
            finding
            for finding in groups.unsettled
            if finding.status == "error" or self._limits is UNLIMITED
        ]
        undecided = len(groups.unsettled) - len(named)
        found = [*groups.to_do, *groups.to_know, *named]
        if not found and not undecided:
            return
        shown, rest = found[: self._limits.findings], found[self._limits.findings :]
        yield Text()
        yield Text("Findings", "bold")
        grid = facts(gap=1)
        above = self._session.verdict.next_steps[: self._limits.next_steps]
        for index, finding in enumerate(shown):
            advised = index < self._limits.advised and to_act_on(finding)
            advised = advised and finding.advice not in above
            grid.add_row(f"{index + 1:2}.", self._finding(finding, advised))
        if shown:
            yield grid
        if undecided:
            rules = counted(undecided, "rule")
            yield _indented(
                self._paragraph(f"{rules} could not decide; the report says why", "dim")
            )
        if rest:
            more = f"  and {len(rest)} more in the report"
            refuted = [
                finding.edit.label if finding.edit else finding.title
                for finding in rest
                if finding.dropped
            ]
            if refuted:
                more += f"; refuted, so leave it alone: {', '.join(refuted)}"
            yield _indented(self._paragraph(more, "dim"))

    def _finding(self, finding: Finding, advised: bool) -> RenderableType:
        style = FINDING_STYLE[finding.severity] if finding.status == "fail" else ""
        head = self._paragraph(finding.title, style)
        place = self._places.at(finding.file, finding.line)
        if place:
            head.append(f"  {place}", "default")
        lines = [head, *self._trial(finding)]
        return Group(*lines, self._paragraph(finding.advice, "dim")) if advised else Group(*lines)

    def _trial(self, finding: Finding) -> Iterator[RenderableType]:
        known = trials.outcome(finding)
        if known is None:
            return
        gain = run.gain(finding.for_run)
        retuned = finding.effect_on_results == "changes a hyper-parameter"
        sentences = [
            f"{known}; {gain}." if gain else f"{known}.",
            known.says if known.says != self._session.trials_missing else None,
            f"It {trials.effect(finding)}." if retuned else None,
        ]
        if self._limits.advised:
            sentences += [trials.missed(finding), trials.caveats(finding)]
        style = _TRIAL_STYLE[known.state] if known.state else ""
        yield self._paragraph(" ".join(filter(None, sentences)), style)

    def _missing(self, what: str, reason: str | None) -> RenderableType:
        return self._paragraph(f"{what}: {reason or labels.NO_REASON}", "dim")

    def _paragraph(self, text: str, style: str = "", limit: int | None = None) -> Text:
        return shortened(text, limit or self._limits.characters, style)


def _indented(text: Text) -> RenderableType:
    return Padding(text, (0, 0, 0, 2))


def _cut(text: str, style: str = "") -> Text:
    return Text(text, style, no_wrap=True, overflow="ellipsis")


def _embeddings(tables: list[Embedding], shown: int) -> Iterator[RenderableType]:
    """Yield the largest tables, a row each and what more is known of each."""
    if not tables:
        return
    yield Text()
    more = f"; {len(tables) - shown} more in the report" if len(tables) > shown else ""
    yield Text(f"Embeddings: bytes with slots, what a step updates, rows of lookups{more}", "bold")
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, overflow="ellipsis", ratio=3)
    for table in tables[:shown]:
        grid.add_row(
            f"  {table.layer}",
            right(f"{number(table.rows)} x {number(table.dim)}"),
            right(byte_count(table.table_bytes + (table.slot_bytes or 0))),
            embeddings.update(table),
            right(embeddings.rows_touched(table)),
        )
    yield grid
    for table in tables[:shown]:
        if known := embeddings.details(table):
            yield _cut(f"  {table.layer}: {known}")
        for text in embeddings.wrong(table):
            yield _cut(f"  {table.layer}: {text}", "red")
        if table.ids is not None and table.ids.incomplete:
            yield Text(f"  {table.layer}: {table.ids.incomplete}", "dim")


def _cost(cost: EmbeddingCost | None, tables: int) -> Iterator[RenderableType]:
    """Yield the largest parts of the step's compute."""
    if cost is None:
        return
    shown = cost.parts[: tables + 2]
    left = len(cost.parts) - len(shown)
    yield Text()
    more = f"; {left} smaller in the report" if left else ""
    yield Text(f"Compute of a step, {milliseconds(cost.compute_ms)}, by part{more}", "bold")
    grid = Table.grid(padding=(0, 2))
    for part in shown:
        name, layer = f"  {embeddings.part_name(part)}", _cut(part.layer or "")
        grid.add_row(name, right(milliseconds(part.ms)), right(percent(part.percent)), layer)
    yield grid
    for text in embeddings.fused_parts(cost):
        yield _cut(f"  {text}", "dim")


def _memory(plan: MemoryPlan | None) -> Iterator[RenderableType]:
    """Yield what training takes of memory, and what changes of the largest table would save."""
    if plan is None:
        return
    yield Text()
    yield Text("Memory", "bold")
    yield _indented(Text(embeddings.memory_needed(plan)))
    if not plan.alternatives:
        return
    table = plan.tables[0]
    yield Text(f"  {table.layer} takes {byte_count(table.peak_bytes)}; each change alone leaves:")
    grid = Table.grid(padding=(0, 2))
    for one in plan.alternatives:
        grid.add_row(f"    {one.what}", right(byte_count(one.device_bytes)), _cut(one.note))
    yield grid
