"""The report as one HTML file: nothing fetched, everything drawn here.

One script of ours is in it, which the page's policy lets run by its hash, and no other: a button
that copies a patch.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from pipediag.encoding.markup import html_value
from pipediag.facts.embeddings import plan_memory
from pipediag.facts.names import RUN_PART
from pipediag.facts.order import culprit_place, to_act_on
from pipediag.facts.python_callables import python_behind
from pipediag.facts.step import most_of_free_input, uneven
from pipediag.reporters.html import charts, contents, source_lines, trial_chart
from pipediag.reporters.html.inline_script import policy, script, style
from pipediag.reporters.words import (
    device_summary,
    embedding_rows,
    findings,
    first_advice,
    headline,
    idle_time,
    labels,
    memory_words,
    phases,
    pipeline_estimate,
    pipeline_rows,
    quantities,
    run_parts,
    self_checks,
    step_parts,
    step_words,
    verdict_words,
    ways_on,
)
from pipediag.reporters.words import trial_outcomes as trials
from pipediag.reporters.words.evidence import evidence
from pipediag.reporters.words.source_names import SourceNames
from pipediag.reporters.words.trial_words import TRIAL_WORDS
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.trials import WORTHWHILE

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST = 60


class Anchors:
    """The anchors of a session's findings and operations."""

    def __init__(self, session: Session) -> None:
        self._findings = session.findings
        taken: Counter[str] = Counter()
        self._names: list[str] = []
        for finding in session.findings:
            name = _name("finding", finding.rule, finding.op_id)
            taken[name] += 1
            self._names.append(name if taken[name] == 1 else f"{name}--{taken[name]}")
        ops = session.pipeline.ops if session.pipeline is not None else []
        self._operations: dict[str, str] = {}
        for op in ops:
            name = _name("operation", op.id)
            taken[name] += 1
            self._operations[op.id] = name if taken[name] == 1 else f"{name}--{taken[name]}"

    def finding(self, finding: Finding) -> str:
        """`finding-missing-cache-map_0`: its rule and the operation that it is about."""
        place = next(at for at, one in enumerate(self._findings) if one is finding)
        return self._names[place]

    def operation(self, op_id: str) -> str:
        """`operation-map_0`."""
        return self._operations[op_id]


def _name(*parts: str | None) -> str:
    words = (_NOT_IN_A_NAME.sub("-", part)[:_LONGEST] for part in parts if part)
    return "-".join(words)


_LONGEST_TEXT = 600
"""Characters of one text; arguments and framework messages can be endless."""
_CODE = re.compile(r"`([^`\n]+)`")


def files(session: Session) -> Iterator[tuple[str, str]]:
    """The one page."""
    yield "report.html", render(session)


def render(session: Session) -> str:
    """Return the whole page. A session in which nothing was measured gives a page of reasons."""
    templates = environment()
    context = _body_context(session)
    body = templates.get_template("body.html.j2").render(context)
    return templates.get_template("report.html.j2").render(
        session=session,
        command=labels.command_line(session.script),
        policy=policy(),
        script=script(),
        style=style(),
        verdict=templates.get_template("verdict.html.j2").render(context),
        contents=contents.of_page(body),
        body=body,
    )


def _body_context(session: Session) -> dict[str, Any]:
    places = SourceNames(session)
    pipeline = session.pipeline
    step_ms = session.steps.mean_ms if session.steps else None
    first = first_advice.first_advice(session)
    rows = pipeline_rows.pipeline_rows(pipeline, places, step_ms) if pipeline else []
    shown_rows = pipeline_rows.dearest(rows, pipeline_rows.MAX_ROWS)
    parts = run_parts.parts_of(session.run) if session.run else []
    culprit = source_lines.of_the_change(culprit_place(session), first, session.verdict.source)
    return {
        "session": session,
        "memory_plan": plan_memory(session),
        "sections": list(Session.model_fields),
        "tables_first": embedding_rows.come_first(session.embeddings),
        "places": places,
        "segments": charts.breakdown_segments(session.breakdown) if session.breakdown else [],
        "run_parts": parts,
        "run_segments": charts.run_segments(parts),
        "strip": charts.step_strip(session),
        "passed": charts.run_timeline(session.run),
        "rows": shown_rows,
        "row_count": len(rows),
        "bottleneck": session.operation(pipeline.bottleneck_op_id) if pipeline else None,
        "groups": findings.group(session),
        "headline": headline.headline(session),
        "anchors": Anchors(session),
        "lead": verdict_words.lead(session.verdict.summary),
        "culprit": culprit,
        "behind": python_behind(session),
        "first": first,
        "nothing_worth_doing": first_advice.nothing_worth_doing(session),
        "elsewhere": first is not None and source_lines.is_elsewhere(first.finding, culprit),
        "in_patch": first is not None and source_lines.is_in_patch(first.finding, culprit),
        "ways_on": ways_on.ways_on(session),
        "of_compute": step_parts.largest(session),
        "self_checks": self_checks.self_checks(session),
        "severity": verdict_words.shown(session),
        "phases": phases.phases(session),
        "agreement": phases.agreement(session),
    }


@cache
def environment() -> Environment:
    """What all templates are rendered in: every text of a session is escaped."""
    templates = Environment(
        loader=PackageLoader("pipediag.reporters.html"),
        autoescape=True,
        finalize=html_value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters.update(
        number=quantities.number,
        decimal=quantities.decimal,
        milliseconds=quantities.milliseconds,
        seconds=quantities.seconds,
        percent=quantities.percent,
        percent_interval=quantities.percent_interval,
        byte_count=quantities.byte_count,
        speedup=quantities.speedup,
        shorten=_shorten,
        prose=_prose,
        gap_cause=labels.gap_cause,
        measured=quantities.measured,
        microseconds=quantities.microseconds,
        duration=quantities.duration,
        shown_iterator=idle_time.shown_iterator,
        trusted=Markup,
    )
    templates.globals.update(
        labels=labels,
        embeddings=embedding_rows,
        step_parts=step_parts,
        memory=memory_words,
        interval=quantities.interval,
        evidence=evidence,
        whisker=charts.whisker,
        idle_parts=idle_time.idle_parts,
        counted=quantities.counted,
        device_summary=device_summary.summary,
        compute_percent=device_summary.compute_percent,
        gap_counts=device_summary.gap_counts,
        longest_gaps=idle_time.longest_gaps,
        outcome=trials.outcome,
        effect=trials.effect,
        caveats=trials.caveats,
        missed=trials.missed,
        advised=to_act_on,
        tried=trials.tried,
        not_tried=trials.not_tried,
        dropped=trials.dropped,
        made_of=pipeline_estimate.made_of,
        spent=headline.spent,
        trial_chart=trial_chart.trial_chart,
        marked_call=source_lines.marked,
        excerpt_lines=source_lines.excerpt_lines,
        patch_lines=source_lines.patch_lines,
        brief_lines=source_lines.brief_lines,
        lead_of=verdict_words.lead,
        verdict_label=verdict_words.label,
        patch_link=source_lines.patch_link,
        most_patch_lines=source_lines.MOST_LINES,
        trial_words=TRIAL_WORDS,
        confirmed_above=WORTHWHILE,
        pipeline_columns=pipeline_rows.COLUMNS,
        parallel_calls=pipeline_rows.parallel_calls,
        buffer_fill=pipeline_rows.buffer_fill,
        free_input=step_words.free_input,
        most_of_free_input=most_of_free_input,
        loop_time=step_words.loop_time,
        uneven=uneven,
        whole=run_parts.whole,
        row_title=run_parts.row_title,
        run_remarks=run_parts.remarks,
        run_labels=RUN_PART,
        run_meanings=run_parts.RUN_PART_MEANING,
        run_gain=run_parts.gain,
    )
    return templates


def _prose(text: str) -> Markup:
    """A sentence of ours as HTML: escaped, what stands between backticks set as code."""
    escaped = str(escape(_shorten(quantities.bind_units(text))))
    return Markup(_CODE.sub(r"<code>\1</code>", escaped))


def _shorten(text: str, limit: int = _LONGEST_TEXT) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
