"""The parts of a session that the terminal and Markdown show alike: lines, then tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from pipediag.encoding import clipped
from pipediag.facts.embeddings import plan_memory
from pipediag.facts.names import RUN_PART, STEP_CLASS, in_sentence
from pipediag.facts.order import known_gain, to_act_on, worth_doing
from pipediag.facts.promise import promised
from pipediag.facts.run_gain import limit_of_run
from pipediag.reporters.words import advice, devices, embeddings, labels, run, trials
from pipediag.reporters.words.pipeline import parallel_calls, pipeline_rows
from pipediag.reporters.words.quantities import (
    milliseconds,
    percent,
    percent_interval,
    seconds,
)
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.vocabulary import BY_ITSELF

_SHORT = 200
WORTH_NAMING = 1.05
"""Own choice: a change that gains less is left to the report."""
_MOST_PARTS = 3
_MOST_CHANGES = 6
_LEAST_PERCENT = 5.0
"""Own choice, as for input wait: the tables have the rest."""

Row = tuple[str, str, str]
"""Subject of a line, its text, and its tone: `good`, `bad`, `aside` or nothing."""


def answer(session: Session) -> Iterator[Row]:
    """Yield what to change first, what it gains, and why to believe it; or what to try next."""
    script, found = session.script, advice.answer(session)
    if script.outcome not in BY_ITSELF and script.detail:
        yield "Script", clipped(script.detail, _SHORT), ""
    if found is None:
        if why := _why_no_loop(session):
            yield "Why", why, ""
        nothing = advice.nothing_worth_doing(session)
        if nothing is not None:
            yield "Change", nothing, ""
        if any(one.trial.state != "inconclusive" for one in trials.tried(session)):
            yield "Trials", f"{trials.counted_outcomes(session)}.", ""
        for text in islice(advice.what_else(session), 2):
            yield "Try next", advice.brief(text), ""
        return
    changes = "; ".join(clipped(one, _SHORT) for one in found.changes[:_MOST_CHANGES])
    yield "Change", f"{changes}." if changes else advice.brief(found.finding.advice), ""
    if found.gain is not None:
        condition = f", {found.condition}" if found.condition else ""
        measured = found.gain.known_by == "measured"
        yield "Gain", f"{found.gain}{condition}.", "good" if measured else ""
    yield "Why", advice.brief(found.why), ""
    others = [
        one
        for one in session.findings
        if worth_doing(one)
        and not found.holds(one)
        and (known_gain(one) or WORTH_NAMING) >= WORTH_NAMING
    ]
    places = labels.SourceNames(session)
    for finding in others[:1]:
        gain = advice.gain(finding)
        at = places.at(finding.file, finding.line)
        name = f"{clipped(finding.title, _SHORT)}{f' ({at})' if at else ''}"
        condition = f", {finding.condition}" if gain and finding.condition else ""
        yield "Also", f"{name}: {gain.brief}{condition}" if gain else name, ""
    held = set(session.patch.edits) if session.patch is not None else set[str]()
    together = promised(session) if len(held) > max(1, len(found.changes)) else None
    if together is not None and together.basis == "measured":
        all_of_it = advice.gain_of_run(together, "measured")
        yield "Patch", f"Its {len(held)} changes: {all_of_it}.", "good"


def _why_no_loop(session: Session) -> str:
    """Return what follows the heading of a session without a loop; empty for all others."""
    loop = session.diagnosed_loop()
    return advice.lead(session.verdict.summary)[1] if loop is None else ""


_THE_MODELS = "imports, compiling and the computations of the training"


def overview(session: Session) -> Iterator[Row]:
    """Yield where run and step go, a line each, and what limits the diagnosis."""
    if session.run is not None:
        parts = run.in_one_line(session.run.parts, _MOST_PARTS, _LEAST_PERCENT)
        yield "Run", f"{run.whole(session.run)}: {parts}", ""
        limit = limit_of_run(session)
        if limit is not None and limit.speedup >= WORTH_NAMING:
            yield "Limit", f"{run.gain(limit)}, with {_THE_MODELS} alone", ""
    steps = session.steps
    if steps is None:
        reason = session.steps_missing or labels.NO_REASON
        if reason != advice.heading(session):
            yield "Step", clipped(reason, _SHORT), ""
    else:
        largest = sorted((session.breakdown or {}).items(), key=lambda item: -item[1].percent)
        named = [
            f"{in_sentence(STEP_CLASS[name])} {percent(share.percent)}"
            for name, share in largest[:_MOST_PARTS]
            if share.percent >= _LEAST_PERCENT
        ]
        divided = ", ".join(named) or session.breakdown_missing or labels.NO_REASON
        yield "Step", f"{milliseconds(steps.mean_ms)}: {divided}", ""
    for device in session.devices[:1]:
        if device.kind != "cpu":
            yield "Device", "".join(devices.summary(device, device.name)), ""
    plan = plan_memory(session)
    if plan is not None and (plan.lacking_bytes or plan.given):
        yield "Memory", embeddings.memory_needed(plan), "bad" if plan.lacking_bytes else ""
    for note in session.notes[:1]:
        yield "Note", clipped(note, _SHORT), ""


def reasons(session: Session) -> list[str]:
    """Return what the verdict rests on, and what was left out, a sentence each."""
    verdict, loop = session.verdict, run.time_of_loop(session)
    # `answer` has it where there is nothing else to answer.
    told = advice.answer(session) is None and _why_no_loop(session)
    found = ["" if told else advice.lead(verdict.summary)[1], *verdict.reasons, loop]
    found += [f"Left out: {label}: {why}" for label, why in trials.dropped(session)]
    return [text for text in (*found, *session.notes[1:]) if text]


@dataclass(frozen=True)
class Section:
    """A table with a heading."""

    title: str
    lead: str
    """Sentences above the table."""
    head: tuple[str, ...]
    numbers: range
    """Columns of numbers."""
    rows: Sequence[tuple[str, ...]]


def sections(session: Session) -> Iterator[Section]:
    """Yield the tables: run, step, pipeline and findings, those that there are."""
    if session.run is not None:
        yield _run(session)
    if session.breakdown is not None and session.steps is not None:
        yield _step(session)
    if session.pipeline is not None and session.pipeline.ops:
        rows = pipeline_rows(session.pipeline, labels.SourceNames(session))
        yield Section(
            "Input pipeline",
            "Own time per step, summed over parallel calls; ▶ marks the bottleneck.",
            ("Operation", "Where", "Own time", "Share", "Parallel calls"),
            range(2, 4),
            [
                (
                    ("▶ " if row.bottleneck else "") + row.title,
                    row.place or ", ".join(row.notes),
                    milliseconds(row.op.self_ms_per_step),
                    percent(row.share_percent),
                    parallel_calls(row.op),
                )
                for row in rows
            ],
        )
    groups = advice.group(session)
    found = [*groups.to_do, *groups.to_know, *groups.unsettled]
    if found:
        head = ("Rule", "Finding", "Where", "Trial", "Advice")
        places = labels.SourceNames(session)
        yield Section("Findings", "", head, range(0), [_finding(one, places) for one in found])


def _run(session: Session) -> Section:
    assert session.run is not None
    return Section(
        "Where the run's time goes",
        " ".join(filter(None, (f"{run.title(session.run)}.", run.unseen(session.run)))),
        ("Part", "Time", "Share", "Known by"),
        range(1, 3),
        [
            (RUN_PART[part.name], seconds(part.seconds), percent(part.percent), part.basis)
            for part in run.parts_of(session.run.parts)
        ],
    )


def _step(session: Session) -> Section:
    assert session.steps is not None
    mean, median = (milliseconds(ms) for ms in (session.steps.mean_ms, session.steps.median_ms))
    bound = run.free_input(session)
    return Section(
        "Where a step's time goes",
        f"Mean {mean}, median {median}.{f' With free input: {bound}.' if bound else ''}",
        ("Class", "Per step", "Share", "95 % interval"),
        range(1, 4),
        [
            (
                STEP_CLASS[name],
                milliseconds(share.ms),
                percent(share.percent),
                percent_interval(share.ci95_percent),
            )
            for name, share in (session.breakdown or {}).items()
            if share.percent > 0
        ],
    )


def _finding(finding: Finding, places: labels.SourceNames) -> tuple[str, ...]:
    known, gain = trials.outcome(finding), run.gain(finding.for_run)
    trial = ""
    if known is not None:
        outcome = f"{known}; {gain}." if gain else f"{known}."
        trial = " ".join(filter(None, (outcome, known.says, trials.caveats(finding))))
    where = places.at(finding.file, finding.line)
    # What its trial left open or refuted is not advised.
    advised = finding.advice if to_act_on(finding) else ""
    return finding.rule, finding.title, where, trial, advised
