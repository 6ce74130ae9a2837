"""The report as one HTML file: no script to run, nothing fetched, everything drawn here."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from pipediag.reporters import charts, findings, labels, pipeline_rows, quantities
from pipediag.reporters.embedded import embed
from pipediag.reporters.places import Places
from pipediag.session.model import Session

MAX_BYTES = 300_000
_LONGEST_TEXT = 600
"""Characters of one text; arguments and framework messages can be endless."""


def files(session: Session) -> Iterator[tuple[str, str]]:
    yield "report.html", render(session)


def render(session: Session) -> str:
    """The whole page. A session in which nothing was measured gives a page of reasons."""
    places = Places(session)
    pipeline = session.pipeline
    rows = pipeline_rows.pipeline_rows(pipeline, places) if pipeline else []
    return _environment().get_template("report.html.j2").render(
        session=session,
        places=places,
        command=labels.command_line(session.script),
        segments=charts.breakdown_segments(session.breakdown) if session.breakdown else [],
        strip=charts.step_strip(session),
        rows=pipeline_rows.dearest(rows, pipeline_rows.MAX_ROWS),
        row_count=len(rows),
        bottleneck=session.operation(pipeline.bottleneck_op_id) if pipeline else None,
        groups=findings.group(session),
        embedded=embed(session),
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("pipediag.reporters"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=quantities.number,
        decimal=quantities.decimal,
        milliseconds=quantities.milliseconds,
        seconds=quantities.seconds,
        percent=quantities.percent,
        percent_interval=quantities.percent_interval,
        byte_count=quantities.byte_count,
        speedup=quantities.speedup,
        shorten=_shorten,
    )
    environment.globals.update(
        labels=labels,
        interval=quantities.interval,
        evidence=quantities.evidence,
        whisker=charts.whisker,
        idle_causes=charts.idle_causes,
        gain=findings.gain,
        parallel_calls=pipeline_rows.parallel_calls,
        buffer_fill=pipeline_rows.buffer_fill,
    )
    return environment


def _shorten(text: str, limit: int = _LONGEST_TEXT) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
