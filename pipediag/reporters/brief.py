"""Briefs for a rewrite by hand or by a coding agent: one for each finding that no patch holds."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pipediag.encoding import harmless_json
from pipediag.facts.pipeline import call_name, following_batch, reshuffles
from pipediag.reporters.words import advice, trials
from pipediag.reporters.words.labels import evidence
from pipediag.reporters.words.quantities import NO_BREAK
from pipediag.session.findings import Finding
from pipediag.session.model import HotLine, Session
from pipediag.session.pipeline import Operation
from pipediag.session.trials import NOT_TRIED

_AROUND = 12
"""Lines on either side of one that stands in no function."""
_MOST_LINES = 120
"""Most lines of a function that are shown; of a longer one, those around the line in question."""


@dataclass(frozen=True)
class Line:
    """A line of the function in question."""

    number: int
    code: str
    percent_of_samples: float | None
    """Share of the stack samples in which it was running, of all threads in steps or of a callback
    at the end of an epoch; None where it was in none of them."""


@dataclass(frozen=True)
class Brief:
    """All that somebody needs who rewrites the code of one finding and has seen nothing else."""

    rule: str
    title: str
    file: str | None
    line: int | None
    measured: dict[str, str]
    """The numbers that the finding rests on, in words."""
    at_most: str | None
    """Upper bound on the gain, with the part of the run that it is of; None where none is known."""
    obtained: str | None
    """Gain of its own change in a trial; None without a decision."""
    advice: str
    no_patch: str
    code: list[Line]
    keep: list[str]
    """Things that the rewrite must leave as they are."""
    verify: list[str]
    """Commands, in their order."""


def briefs(session: Session) -> list[Brief]:
    """Return a brief for each finding that could make the run faster and is in no patch."""
    written = session.patch.edits if session.patch is not None and session.patch.diff else []
    return [
        _brief(session, finding)
        for finding in session.findings
        if finding.status == "fail"
        and not finding.about_results
        and not finding.dropped
        and (finding.edit is None or finding.edit.id not in written)
    ]


def _brief(session: Session, finding: Finding) -> Brief:
    named = dict(evidence(session, *item) for item in finding.evidence.items())
    gain, outcome = advice.gain(finding), trials.outcome(finding)
    bound = str(gain).removeprefix("at most ") if gain and gain.known_by == "at most" else None
    obtained = str(outcome) if outcome and finding.trial.speedup is not None else None
    return Brief(
        rule=finding.rule,
        title=finding.title,
        file=finding.file,
        line=finding.line,
        measured={label: value.replace(NO_BREAK, " ") for label, value in named.items()},
        at_most=bound and bound.replace(NO_BREAK, " "),
        obtained=obtained and obtained.replace(NO_BREAK, " "),
        advice=finding.advice,
        no_patch=_why_no_patch(session, finding),
        code=_code(session, finding),
        keep=_keep(session, finding),
        verify=_verify(session),
    )


def _why_no_patch(session: Session, finding: Finding) -> str:
    if finding.edit is None:
        return "No change that pipediag can make by itself is known."
    trial, own = finding.trial, finding.patch
    to_name = session.patch.left_out if session.patch is not None else []
    left = [*(own.left_out if own is not None else []), *to_name]
    reasons = [one.reason for one in left if one.edit == finding.edit.id]
    dropped = session.combined.dropped if session.combined is not None else []
    reasons += [one.reason for one in dropped if one.edit == finding.edit.id]
    if trial.state == "inconclusive":
        reasons.insert(0, f"A trial was inconclusive. {trial.reason or ''}".strip())
    if trial.state == "not_tried":
        why = session.trials_missing if trial == NOT_TRIED else trial.reason
        reasons.insert(0, f"No trial has confirmed it. {why or ''}".strip())
    may_be_named = finding.effect_on_results != "not safe here" and (
        trial.state != "confirmed" or any(one.edit == finding.edit.id for one in to_name)
    )
    if own is not None and own.diff is not None and may_be_named:
        reasons.append(f"`pipediag fix --with {finding.rule}` writes it.")
    if finding.condition is not None:
        reasons.append(f"It is right only {finding.condition}.")
    return " ".join(dict.fromkeys(reasons)) or "The run as a whole gains nothing by it."


def _code(session: Session, finding: Finding) -> list[Line]:
    """Return the function around a finding's line with its samples, in steps or in callbacks.

    Nothing where the file can't be read, or was changed since it was measured.
    """
    file, line = finding.file, finding.line
    if file is None or line is None:
        return []
    try:
        content = Path(file).read_bytes()
        text = content.decode("utf-8")
        first, last = _function(ast.parse(text), line)
    except (OSError, SyntaxError, ValueError):
        return []
    lines = text.splitlines()
    if _was_changed(session, file, content, lines):
        return []
    if last - first > _MOST_LINES or first == 0:
        first, last = line - _AROUND, line + _AROUND
    samples: dict[int, float] = {}
    in_steps = session.host.hot_python if session.host is not None else []
    between = session.run.callback_lines if session.run is not None else []
    evaluates = finding.part == "evaluation"
    between = [one for one in between if (one.loop_line is not None) is evaluates]
    for hot in between if evaluates or finding.part == "epoch_end" else in_steps:
        if hot.file == file:
            samples[hot.line] = samples.get(hot.line, 0.0) + hot.percent
    numbers = range(max(1, first), min(last, len(lines)) + 1)
    return [Line(number, lines[number - 1], samples.get(number)) for number in numbers]


def _was_changed(session: Session, file: str, content: bytes, lines: Sequence[str]) -> bool:
    """Return True if the file, or a line of it that was measured, is another one now."""
    patches = [session.patch, *(one.patch for one in session.findings)]
    known = {one.path: one.sha256 for patch in patches if patch for one in patch.files}
    if file in known:
        return hashlib.sha256(content).hexdigest() != known[file]
    measured: list[HotLine | Operation] = [*session.ops]
    measured += session.host.hot_python if session.host is not None else []
    return any(
        # One that is blank now is another one, too.
        one.line > len(lines) or not one.code.startswith(lines[one.line - 1].strip() or "\n")
        for one in measured
        if one.file == file and one.line is not None and one.code is not None
    )


def _function(module: ast.Module, line: int) -> tuple[int, int]:
    """Return the first and last line of the innermost function around a line; 0 for none."""
    around = [
        (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(module)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    return max(around, default=(0, 0))


def _keep(session: Session, finding: Finding) -> list[str]:
    loop, kept = session.diagnosed_loop(), []
    resized = finding.effect_on_results == "changes a hyper-parameter"
    if loop is not None and loop.element_spec is not None and not resized:
        kept.append(f"A step takes {loop.element_spec}: structure, types and shapes stay.")
    op = session.operation(finding.op_id)
    batch = following_batch(session, op) if op is not None else None
    if op is not None and batch is not None and batch.parent_ids == [op.id]:
        kept.append(
            f"Its elements are batched by {call_name(batch)}: whole batches may be made instead, "
            "of the same rows in the same order."
        )
    if any(map(reshuffles, session.ops)):
        kept.append("Each epoch shuffles the elements anew; keep that.")
    else:
        kept.append("The order of the elements stays.")
    kept.append("What is drawn at random may be other numbers, of the same distribution.")
    return kept


def _verify(session: Session) -> list[str]:
    """Return commands to run in the directory in which the script was run."""
    script, directory = session.script, session.script.directory
    path = script.path
    if directory is not None and Path(path).is_absolute() and Path(path).is_relative_to(directory):
        # Each version has to run its own file.
        path = str(Path(path).relative_to(directory))
    ran = [*(["-m"] if script.module else []), path]
    there = [f"cd {shlex.quote(directory)}"] if directory is not None else []
    if Path(path).is_absolute() or Path(os.path.normpath(path)).parts[:1] == ("..",):
        # Both versions of the directory would run the same file.
        return [*there, shlex.join(["pipediag", "analyze", path, *script.args])]
    compared = ["pipediag", "compare", *ran[:-1], ".", "../new", "--", path, *script.args]
    return [
        *there,
        "cp -r . ../new  # rewrite the code in this copy",
        shlex.join(compared),
        f"cd ../new && {shlex.join(['pipediag', 'analyze', *ran, *script.args])}",
    ]


def as_json(found: Iterable[Brief]) -> str:
    """Return the briefs as a JSON list of objects with the fields of `Brief`."""
    text = json.dumps([asdict(one) for one in found], indent=2, ensure_ascii=False)
    return harmless_json(text) + "\n"


def as_markdown(found: Sequence[Brief]) -> str:
    """Return the briefs as one Markdown text, each with a heading of its own."""
    return "\n".join(_markdown(one, number) for number, one in enumerate(found, 1))


def _markdown(brief: Brief, number: int) -> str:
    place = f"{brief.file}:{brief.line}" if brief.file is not None else "no line is known"
    parts = [
        f"# {number}. {brief.title}\n",
        f"- Where: `{place}`",
        *(f"- Measured: {label}: {value}" for label, value in brief.measured.items()),
        *([f"- Trial of a change: {brief.obtained}"] if brief.obtained else []),
        *([f"- Upper bound: {brief.at_most}"] if brief.at_most else []),
        f"- Why there is no patch: {brief.no_patch}\n",
        f"{brief.advice}\n",
    ]
    if brief.code:
        parts += ["Share of the stack samples, line, code:\n", "```"]
        for line in brief.code:
            known = line.percent_of_samples
            share = "" if known is None else f"{known:.1f} %"
            parts.append(f"{share:>7} {line.number:5d}  {line.code}".rstrip())
        parts += ["```\n"]
    parts += ["Keep:\n", *(f"- {one}" for one in brief.keep), "", "Verify:\n", "```sh"]
    parts += [*brief.verify, "```\n"]
    return "\n".join(parts)
