"""The report as one HTML file: nothing is fetched or run."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from pipediag.encoding import clipped, html_value
from pipediag.facts.embeddings import plan_memory
from pipediag.facts.names import RUN_PART, STEP_CLASS
from pipediag.facts.order import culprit_place, to_act_on, worth_doing
from pipediag.facts.step import uneven
from pipediag.reporters.html import source_lines
from pipediag.reporters.words import (
    advice,
    devices,
    embeddings,
    labels,
    pipeline,
    quantities,
    run,
    trials,
)
from pipediag.reporters.words.labels import evidence
from pipediag.reporters.words.quantities import milliseconds, seconds
from pipediag.session.ledger import Run
from pipediag.session.model import Session
from pipediag.vocabulary import RunPartName

_LONGEST_TEXT = 600
"""Characters of one text; arguments and framework messages can be endless."""
_NARROWEST = 0.1
"""Percent of the timeline's width that is about a pixel."""
_CODE = re.compile(r"`([^`\n]+)`")
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)
"""Content-Security-Policy: nothing is fetched, and no script runs."""


def render(session: Session) -> str:
    """Return the whole page. A session in which nothing was measured gives a page of reasons."""
    report = environment().get_template("report.html.j2")
    return report.render(_context(session), policy=_POLICY)


def _context(session: Session) -> dict[str, Any]:
    places = labels.SourceNames(session)
    parts = run.parts_of(session.run.parts) if session.run else []
    found = session.pipeline
    groups = advice.group(session)
    leading = [finding for finding in groups.to_do if worth_doing(finding)]
    return {
        "session": session,
        "command": labels.command_line(session.script),
        "title": advice.title(session),
        "answer": advice.answer(session),
        "step_bar": bar(
            (name, STEP_CLASS[name], share.percent, milliseconds(share.ms))
            for name, share in (session.breakdown or {}).items()
        ),
        "run_parts": parts,
        "run_bar": bar(
            (f"part-{part.name}", RUN_PART[part.name], part.percent, seconds(part.seconds))
            for part in parts
        ),
        "memory_plan": plan_memory(session),
        "places": places,
        "passed": run_timeline(session.run),
        "rows": pipeline.pipeline_rows(found, places) if found else [],
        "bottleneck": session.operation(found.bottleneck_op_id) if found else None,
        "groups": groups,
        "leading": leading,
        "others": [finding for finding in groups.to_do if finding not in leading],
        "blocks": source_lines.annotated(session, culprit_place(session)),
        "nothing_worth_doing": advice.nothing_worth_doing(session),
        "what_else": advice.what_else(session),
    }


Piece = tuple[str, str, float, str]
"""A piece of a bar: its class in the style sheet, its name, its width in percent, its amount."""


def bar(pieces: Iterable[Piece]) -> list[Piece]:
    """Return the pieces that take any time, as parts of a whole of 100 percent."""
    shown = [piece for piece in pieces if piece[2] > 0]
    total = sum(percent for _, _, percent, _ in shown)
    return [(kind, name, 100.0 * part / total, amount) for kind, name, part, amount in shown]


@dataclass(frozen=True)
class Passed:
    """A stretch of the run in one part, on the clock of the run, in percent of its length."""

    start: float
    width: float
    part: RunPartName | None
    """None: pipediag's own work."""


def run_timeline(run: Run | None) -> list[Passed]:
    """Return the run as it passed: stretches of one part, those too short to be seen joined."""
    spans = sorted(run.spans, key=lambda one: one.start_ms) if run is not None else []
    if not spans:
        return []
    begin = spans[0].start_ms
    whole = max(one.start_ms + one.duration_ms for one in spans) - begin or 1.0
    found: list[Passed] = []
    for span in spans:
        start, width = (100.0 * part / whole for part in (span.start_ms - begin, span.duration_ms))
        last = found[-1] if found else None
        end = start + width
        if last and (last.part == span.part or end - last.start < _NARROWEST):
            # The longer of two stretches that share a pixel gives its colour.
            longer = last.part if last.width >= width else span.part
            found[-1] = Passed(last.start, end - last.start, longer)
        else:
            found.append(Passed(start, width, span.part))
    return found


@cache
def environment() -> Environment:
    """Return what all templates are rendered in: every text of a session is escaped."""
    templates = Environment(
        loader=PackageLoader("pipediag.reporters.html"),
        autoescape=True,
        finalize=html_value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    amounts = "number milliseconds seconds percent percent_interval byte_count speedup"
    amounts += " measured microseconds duration millisecond_interval"
    templates.filters |= {name: getattr(quantities, name) for name in amounts.split()}
    templates.filters |= {
        "prose": _prose,
        "shorten": lambda text, limit=_LONGEST_TEXT: clipped(text, limit),
        "shown_iterator": devices.shown_iterator,
        "within": lambda percent: min(100.0, max(0.0, percent)),
    }
    # The modules of words by their names, so that a template says where a sentence comes from.
    for module in (advice, devices, embeddings, labels, pipeline, run, trials):
        templates.globals[module.__name__.rpartition(".")[2]] = module
    templates.globals |= {
        "counted": quantities.counted,
        "evidence": evidence,
        "run_labels": RUN_PART,
        "source": source_lines,
        "step_labels": STEP_CLASS,
        "to_act_on": to_act_on,
        "uneven": uneven,
    }
    return templates


def _prose(text: str) -> Markup:
    """Return a sentence of ours as HTML: escaped, what stands between backticks set as code."""
    escaped = str(escape(clipped(quantities.bind_units(text), _LONGEST_TEXT)))
    return Markup(_CODE.sub(r"<code>\1</code>", escaped))
