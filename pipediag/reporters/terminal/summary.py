"""The summary on the terminal: what a person needs before opening the report."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pipediag.facts.embeddings import MemoryPlan, plan_memory
from pipediag.facts.names import as_typed
from pipediag.facts.order import to_act_on, worth_doing
from pipediag.reporters.terminal.encoded import Encoded, prose, shortened
from pipediag.reporters.terminal.limits import MAX_LINES, SPARING, UNLIMITED, Limits
from pipediag.reporters.terminal.next_command import next_command
from pipediag.reporters.terminal.share_bar import ShareBar
from pipediag.reporters.words import embedding_rows as words
from pipediag.reporters.words import (
    findings,
    headline,
    labels,
    memory_words,
    phases,
    run_parts,
    step_parts,
    verdict_words,
)
from pipediag.reporters.words import trial_outcomes as trials
from pipediag.reporters.words.first_advice import nothing_worth_doing
from pipediag.reporters.words.pipeline_rows import dearest, parallel_calls, pipeline_rows
from pipediag.reporters.words.quantities import (
    bind_units,
    byte_count,
    counted,
    decimal,
    milliseconds,
    number,
    percent,
    percent_interval,
)
from pipediag.reporters.words.source_names import SourceNames
from pipediag.reporters.words.step_words import free_input, loop_time, step_time
from pipediag.reporters.words.ways_on import ways_on
from pipediag.session.embeddings import Embedding, EmbeddingCost
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.vocabulary import BY_ITSELF


def embedding_table(tables: list[Embedding], shown: int) -> Iterator[RenderableType]:
    """The largest tables, a row each and what more is known of each; nothing where there are none
    or no room for them."""
    if not tables or not shown:
        return
    yield Text()
    more = f"; {len(tables) - shown} more in the report" if len(tables) > shown else ""
    yield Text(f"Embeddings: bytes with slots, what a step updates, rows of lookups{more}", "bold")
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, overflow="ellipsis", ratio=3)
    for table in tables[:shown]:
        grid.add_row(
            f"  {table.layer}",
            Text(f"{number(table.rows)} x {number(table.dim)}", justify="right"),
            Text(byte_count(table.table_bytes + (table.slot_bytes or 0)), justify="right"),
            words.update(table),
            Text(words.rows_touched(table), justify="right"),
        )
    yield grid
    for table in tables[:shown]:
        if known := words.details(table):
            yield Text(f"  {table.layer}: {known}", no_wrap=True, overflow="ellipsis")
        for said in words.wrong(table):
            yield Text(f"  {table.layer}: {said}", "red", no_wrap=True, overflow="ellipsis")
        if table.ids is not None and table.ids.incomplete:
            yield Text(f"  {table.layer}: {table.ids.incomplete}", "dim")


def memory_lines(plan: MemoryPlan | None, shown: int) -> Iterator[RenderableType]:
    """Yield what training takes of memory, and what changes of the largest table would save."""
    if plan is None or not shown:
        return
    yield Text()
    yield Text("Memory", "bold")
    yield Padding(Text(memory_words.needed(plan)), (0, 0, 0, 2))
    if not plan.alternatives:
        return
    table = plan.tables[0]
    yield Text(f"  {table.layer} takes {byte_count(table.peak_bytes)}; each change alone leaves:")
    grid = Table.grid(padding=(0, 2))
    for one in plan.alternatives:
        left = Text(byte_count(one.device_bytes), justify="right")
        grid.add_row(f"    {one.what}", left, Text(one.note, no_wrap=True, overflow="ellipsis"))
    yield grid


def cost_table(cost: EmbeddingCost | None, tables: int) -> Iterator[RenderableType]:
    """The largest parts of the step's compute; nothing without them, or with no room for tables."""
    if cost is None or not tables:
        return
    shown = cost.parts[: tables + 2]
    yield Text()
    left = len(cost.parts) - len(shown)
    more = f"; {left} smaller in the report" if left else ""
    yield Text(f"Compute of a step, {milliseconds(cost.compute_ms)}, by part{more}", "bold")
    grid = Table.grid(padding=(0, 2))
    for part in shown:
        grid.add_row(
            f"  {step_parts.name(part)}",
            Text(milliseconds(part.ms), justify="right"),
            Text(percent(part.percent), justify="right"),
            Text(part.layer or "", no_wrap=True, overflow="ellipsis"),
        )
    yield grid
    for said in step_parts.fused(cost):
        yield Text(f"  {said}", "dim", no_wrap=True, overflow="ellipsis")


_VERDICT_STYLE = {"ok": "green", "moderate": "yellow", "high": "red", "unknown": "cyan"}
_FINDING_STYLE = {"error": "red", "warn": "yellow", "info": "cyan"}
_TRIAL_STYLE = {"confirmed": "green", "refuted": "red", "inconclusive": "", "not_tried": "dim"}
_MAX_WIDTH = 120


def render(
    session: Session,
    console: Console,
    *,
    output_directory: Path | None,
    report_written: bool = True,
    verbose: bool = False,
) -> None:
    """Prints the summary of a session: under 40 lines, unless `verbose`.

    Args:
        output_directory: where the session is; None where it was not written.
        report_written: whether the page lies beside it.
        verbose: shows every reason, operation and finding, however many lines that takes.
    """
    options = console.options.update(width=min(console.width, _MAX_WIDTH))
    for limits in (UNLIMITED,) if verbose else SPARING:
        drawn = _Summary(session, output_directory, limits, report_written=report_written)
        summary = Encoded(Group(*drawn.sections()))
        if len(console.render_lines(summary, options, pad=False)) <= MAX_LINES:
            break
    console.print(summary, width=options.max_width, highlight=False)


class _Summary:
    """The parts of the summary, each drawn within the same limits."""

    def __init__(
        self,
        session: Session,
        output_directory: Path | None,
        limits: Limits,
        *,
        report_written: bool,
    ) -> None:
        self._session = session
        self._report_written = report_written
        self._directory = None if output_directory is None else as_typed(output_directory)
        self._limits = limits
        self._places = SourceNames(session)

    def sections(self) -> Iterator[RenderableType]:
        yield from self._verdict()
        yield Text()
        yield from self._run()
        yield from self._breakdown()
        yield from self._operations()
        yield from embedding_table(self._session.embeddings, self._limits.embeddings)
        yield from cost_table(self._session.embedding_cost, self._limits.embeddings)
        yield from memory_lines(plan_memory(self._session), self._limits.embeddings)
        yield from self._findings()
        yield Text()
        yield self._pointers()

    def _verdict(self) -> Iterator[RenderableType]:
        verdict = self._session.verdict
        shown = verdict_words.shown(self._session)
        style = _VERDICT_STYLE[shown.severity]
        head = Text.assemble(
            ("● ", style),
            (verdict_words.label(self._session).upper(), f"bold {style}"),
            f"  {shown.text}, {verdict.confidence} confidence  ",
            (labels.command_line(self._session.script), "dim"),
        )
        head.truncate(_MAX_WIDTH, overflow="ellipsis")
        head.no_wrap, head.overflow = True, "ellipsis"
        yield head
        yield self._paragraph(verdict.summary, "bold", self._limits.leading_characters)
        measured = headline.headline(self._session)
        if measured is not None:
            style = "bold green" if measured.number else ""
            yield self._paragraph(str(measured), style, self._limits.leading_characters)
        grid = _grid()
        for label, reason in trials.dropped(self._session)[: self._limits.dropped]:
            grid.add_row(Text("Left out", "dim"), self._paragraph(f"{label}: {reason}"))
        script = self._session.script
        if script.outcome not in BY_ITSELF and script.detail:
            grid.add_row(Text("Script", "dim"), self._paragraph(script.detail))
        for index, reason in enumerate(verdict.reasons[: self._limits.reasons]):
            grid.add_row(Text("Why" if index == 0 else "", "dim"), self._paragraph(reason))
        advised = any(map(worth_doing, self._session.findings))
        steps = verdict.next_steps if advised else []
        for index, step in enumerate(steps[: self._limits.next_steps]):
            leading = self._paragraph(step, limit=self._limits.leading_characters)
            grid.add_row(Text("Do first" if index == 0 else "", "dim"), leading)
        nothing = nothing_worth_doing(self._session)
        if nothing is not None:
            grid.add_row(Text("Do first", "dim"), self._paragraph(nothing))
        for index, way in enumerate(ways_on(self._session)[: self._limits.next_steps]):
            leading = self._paragraph(way, limit=self._limits.leading_characters)
            grid.add_row(Text("Try next" if index == 0 else "", "dim"), leading)
        for index, note in enumerate(self._session.notes[: self._limits.notes]):
            grid.add_row(Text("Note" if index == 0 else "", "dim"), self._paragraph(note))
        yield grid

    def _run(self) -> Iterator[RenderableType]:
        run = self._session.run
        if run is None:
            return
        yield Text(run_parts.whole(run), "bold")
        if self._limits.phases:
            limit = self._limits.leading_characters
            for line in (run_parts.in_one_line(run), run_parts.seen_in_one_line(run)):
                if line is not None:
                    yield _indented(self._paragraph(line, limit=limit))

    def _breakdown(self) -> Iterator[RenderableType]:
        session = self._session
        if session.steps is None:
            yield self._missing("Step time", session.steps_missing)
            return
        steps = session.steps
        title = (
            f"{step_time(steps)}; "
            f"{number(steps.count)} {self._unit()} after {number(steps.warmup_count)} of warm-up"
        )
        yield Text(title, "bold")
        if session.breakdown is None:
            yield self._missing("Breakdown", session.breakdown_missing)
            return
        table = Table.grid(padding=(0, 2))
        for no_wrap in (False, False, True, True, True):
            table.add_column(no_wrap=no_wrap)
        shown = sorted(session.breakdown.items(), key=lambda item: -item[1].percent)
        for name, share in shown[: self._limits.classes]:
            if share.percent < 0.05:
                continue
            table.add_row(
                _indented(Text(labels.STEP_CLASS[name])),
                ShareBar(share.percent),
                Text(percent(share.percent), justify="right"),
                Text(f"{decimal(share.ms)} ms", justify="right"),
                Text(f"({percent_interval(share.ci95_percent)})", "dim"),
            )
        yield table
        yield from self._ceiling()
        of_loop = loop_time(session.diagnosed_loop())
        if of_loop is not None and self._limits.phases:
            yield _indented(self._paragraph(of_loop))
        fit = phases.agreement(session)
        if fit and self._limits.phases:
            yield _indented(self._paragraph(fit, limit=self._limits.leading_characters))

    def _unit(self) -> str:
        """A loop inside a tf.function is timed in intervals of several steps."""
        loop = self._session.diagnosed_loop()
        return "intervals" if loop is not None and loop.kind == "in_graph" else "steps"

    def _ceiling(self) -> Iterator[RenderableType]:
        gain = free_input(self._session)
        if gain is not None:
            yield _indented(Text(f"With free input: {gain}"))

    def _operations(self) -> Iterator[RenderableType]:
        pipeline = self._session.pipeline
        if pipeline is None or not pipeline.ops:
            if self._session.steps is not None:
                reason = pipeline.missing if pipeline else self._session.pipeline_missing
                yield self._missing("Pipeline", reason)
            return
        yield Text()
        yield Text(
            "Input pipeline, what costs most: ms per step, share of the pipeline",
            "bold",
        )
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
        groups = findings.group(self._session)
        named = [
            finding
            for finding in groups.unsettled
            if finding.status == "error" or self._limits is UNLIMITED
        ]
        undecided = len(groups.unsettled) - len(named)
        shown = [*groups.to_do, *groups.to_know, *named]
        if not shown and not undecided:
            return
        yield Text()
        yield Text("Findings", "bold")
        grid = _grid(gap=1)
        said = self._session.verdict.next_steps[: self._limits.next_steps]
        for index, finding in enumerate(shown[: self._limits.findings]):
            advised = index < self._limits.advised and to_act_on(finding)
            advised = advised and finding.advice not in said
            grid.add_row(f"{index + 1:2}.", self._finding(finding, advised))
        if shown:
            yield grid
        if undecided:
            rules = counted(undecided, "rule")
            yield _indented(
                self._paragraph(f"{rules} could not decide; the report says why", "dim")
            )
        if len(shown) > self._limits.findings:
            rest = shown[self._limits.findings :]
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
        style = _FINDING_STYLE[finding.severity] if finding.status == "fail" else ""
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
        gain = run_parts.gain(finding.for_run)
        text = f"{known}; {gain}." if gain else f"{known}."
        if known.says and known.says != self._session.trials_missing:
            text += f" {known.says}"
        if finding.effect_on_results == "changes a hyper-parameter":
            text += f" It {trials.effect(finding)}."
        missed = trials.missed(finding)
        if missed and self._limits.advised:
            text += f" {missed}"
        caveats = trials.caveats(finding)
        if caveats and self._limits.advised:
            text += f" {caveats}"
        yield self._paragraph(text, _TRIAL_STYLE[known.state] if known.state else "")

    def _pointers(self) -> RenderableType:
        grid = _grid()
        if self._directory is not None and self._report_written:
            grid.add_row(Text("Report", "dim"), Text(str(self._directory / "report.html")))
        following = next_command(self._session, self._directory)
        if following is not None:
            typed = self._paragraph(following.command, "bold", self._limits.leading_characters)
            grid.add_row(Text(following.purpose, "dim"), typed)
        return grid

    def _missing(self, what: str, reason: str | None) -> RenderableType:
        return self._paragraph(f"{what}: {reason or labels.NO_REASON}", "dim")

    def _paragraph(self, text: str, style: str = "", limit: int | None = None) -> Text:
        limit = limit or self._limits.characters
        return Text(prose(bind_units(shortened(text, limit))), style)


def _grid(gap: int = 2) -> Table:
    grid = Table.grid(padding=(0, gap))
    grid.add_column(no_wrap=True)
    grid.add_column()
    return grid


def _indented(text: Text) -> RenderableType:
    return Padding(text, (0, 0, 0, 2))
