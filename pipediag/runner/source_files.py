"""The user's source: the lines around the one at fault, and patches."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from importlib.util import decode_source
from pathlib import Path

from pipediag.errors import PipediagError
from pipediag.facts.order import (
    LINES_AROUND,
    SourcePlace,
    costs_the_run,
    culprit_place,
    is_for_you_to_decide,
)
from pipediag.facts.python_callables import python_behind
from pipediag.patching.making import make_patch, measured_files
from pipediag.patching.source import NotPatchableError
from pipediag.patching.workspace import GONE, current_file
from pipediag.reporters.words.quantities import NO_BREAK
from pipediag.reporters.words.run import gain
from pipediag.session.edits import Change, Edit, contradiction
from pipediag.session.findings import Finding, LeftOut, Patch, SourceExcerpt
from pipediag.session.model import Session
from pipediag.session.pipeline import Pipeline
from pipediag.session.trials import REFUSED_TOGETHER

LONGEST_LINE = 200
"""Characters; what is longer is data or was written by a program."""


def with_excerpt(session: Session, began_s: float) -> Session:
    """Return the session with the lines around what its verdict names."""

    def text_of(file: str) -> str | None:
        try:
            return decode_source(as_measured(file, began_s))
        except (NotPatchableError, SyntaxError, ValueError):
            return None

    return session.but(verdict=session.verdict.but(**excerpts(session, text_of)))


def excerpts(
    session: Session, text_of: Callable[[str], str | None]
) -> dict[str, SourceExcerpt | None]:
    """Return the lines around what each field of the verdict names, and the Python behind it."""
    place, hot = culprit_place(session), python_behind(session)
    behind = SourcePlace(hot.file, hot.line) if hot is not None else None
    return {"source": _excerpt(place, text_of), "python_source": _excerpt(behind, text_of)}


def _excerpt(
    place: SourcePlace | None, text_of: Callable[[str], str | None]
) -> SourceExcerpt | None:
    if place is None or place.line is None or (text := text_of(place.file)) is None:
        return None
    lines = text.split("\n")
    if not 1 <= place.line <= len(lines):
        return None
    first = max(1, place.line - LINES_AROUND)
    return SourceExcerpt(
        file=place.file,
        line=place.line,
        first_line=first,
        lines=[line[:LONGEST_LINE] for line in lines[first - 1 : place.line + LINES_AROUND]],
    )


MOST_BYTES = 2_000_000
"""Largest source file; a larger one was written by a program, and takes minutes to parse."""


def with_patches(session: Session, began_s: float) -> Session:
    """Return the session with a patch for each edit not refuted, and one for the confirmed."""
    findings = [
        finding
        if finding.edit is None or finding.dropped
        else finding.but(patch=_patch(session, [finding.edit], began_s))
        for finding in session.findings
    ]
    session = session.but(findings=findings)
    found, named = confirmed_findings(session), left_to_name(session)
    confirmed = [one.edit for one in found if one.edit is not None and one not in named]
    reasons = _left_out_of_combination(session)
    by_name = [
        LeftOut(edit=edit.id, reason=_why_by_name(one) if only_by_name(one) else reasons[edit.id])
        for one in named
        if (edit := one.edit) is not None
    ]
    together = _patch(session, confirmed, began_s) if confirmed else Patch()
    together = together.but(left_out=[*together.left_out, *by_name])
    return session.but(patch=together if found else None)


def only_by_name(finding: Finding) -> bool:
    """Return True if a confirmed edit is written only where its rule is named: the user has to
    decide about it, or the run as a whole does not gain by it."""
    return is_for_you_to_decide(finding) or costs_the_run(finding)


def confirmed_findings(session: Session) -> list[Finding]:
    """Return findings whose edits were confirmed and help together, if they were tried so.

    Those that the user has to decide about were not tried together, and count all the same. Where
    only one of the others is left, it is the one that the report names first: their gains may be
    the same. Where none can be written into the source, it is the first that can. What is said of
    an edit holds for each with the same changes, which was tried with it.
    """
    dropped, found = _left_out_of_combination(session), _confirmed_alone(session)
    gone = [
        _changes(one)
        for one in found
        if one.edit is not None and one.edit.id in dropped and not is_for_you_to_decide(one)
    ]
    together = [one for one in found if _changes(one) not in gone]
    free = [one for one in together if not only_by_name(one)]
    alone = [one for one in found if not only_by_name(one)]
    if free and all(_changes(one) == _changes(free[0]) for one in free):
        free = [one for one in alone if _changes(one) == _changes(alone[0])]
    if free and not any(map(_is_written, free)):
        free = [*filter(_is_written, alone)][:1] or free
    # What was tried on top of others gains nothing where one of these is not written.
    written = {one.edit.id for one in free if one.edit is not None and _is_written(one)}
    free = [one for one in free if written.issuperset(one.trial.on_top_of)]
    return [one for one in found if one in free or (one in together and only_by_name(one))]


def _left_out_of_combination(session: Session) -> dict[str, str]:
    """Return why each confirmed edit is not in the combination, by its id."""
    return {one.edit: one.reason for one in session.combined.dropped} if session.combined else {}


def _confirmed_alone(session: Session) -> list[Finding]:
    return [
        finding
        for finding in session.findings
        if finding.edit is not None
        and finding.trial.state == "confirmed"
        and finding.effect_on_results != "not safe here"
    ]


def _changes(finding: Finding) -> tuple[Change, ...]:
    return finding.edit.changes if finding.edit is not None else ()


def _is_written(finding: Finding) -> bool:
    return finding.patch is not None and finding.patch.diff is not None


def _why_by_name(finding: Finding) -> str:
    if finding.condition is not None:
        return f"It is right only {finding.condition.strip().rstrip('.')}."
    if is_for_you_to_decide(finding):
        return "It changes how the model learns, which no trial of speed shows: tune it again."
    found = finding.for_run
    comes_to = (gain(found) or "").replace(NO_BREAK, " ")
    may_gain = found is not None and found.ci95 is not None and found.ci95[1] > 1.0
    whole = "; the whole run may not gain" if may_gain else ", but not the whole run"
    return f"It makes its part of the run faster{whole}: {comes_to}."


def _patch(session: Session, edits: list[Edit], began_s: float) -> Patch:
    try:
        return make_patch(session, edits, lambda path: as_measured(path, began_s))[0]
    except Exception as error:  # noqa: BLE001 - a session must not be lost for its patch
        reason = f"Pipediag itself failed here ({type(error).__name__}); please report it."
        return Patch(left_out=[LeftOut(edit=edit.id, reason=reason) for edit in edits])


def as_measured(path: str, began_s: float) -> bytes:
    """Return the bytes of a source file. Raises NotPatchableError where it was changed since."""
    file = Path(path)
    try:
        known = file.stat()
        if known.st_mtime > began_s:
            raise NotPatchableError(f"{file.name} was changed while it was measured.")
        if known.st_size > MOST_BYTES or not file.is_file():
            raise NotPatchableError(f"{file.name} is too large to be parsed.")
        return file.read_bytes()
    except OSError as error:
        raise NotPatchableError(GONE.format(name=file.name)) from error


def without_source(session: Session) -> Session:
    """Return the session without any of the script's code."""
    loops = [replace(loop, pipeline=_without_code(loop.pipeline)) for loop in session.loops]
    pipeline = _without_code(session.pipeline)
    host, run = session.host, session.run
    if host is not None:
        host = host.but(hot_python=[line.but(code=None) for line in host.hot_python])
    if run is not None:
        run = run.but(callback_lines=[line.but(code=None) for line in run.callback_lines])
    return session.but(pipeline=pipeline, loops=loops, host=host, run=run)


def _without_code(pipeline: Pipeline | None) -> Pipeline | None:
    if pipeline is None:
        return None
    return pipeline.but(ops=[replace(op, code=None) for op in pipeline.ops])


def left_to_name(session: Session) -> list[Finding]:
    """Return findings whose confirmed edits are in no patch unless their rules are named.

    Among them are those left out of the combination, except where it could not be made with them.
    """
    found, dropped = confirmed_findings(session), _left_out_of_combination(session)
    changes = [_changes(one) for one in found]
    return [
        one
        for one in _confirmed_alone(session)
        if one.edit is not None
        and (
            only_by_name(one)
            if one in found
            else _changes(one) not in changes
            and not dropped.get(one.edit.id, REFUSED_TOGETHER).startswith(REFUSED_TOGETHER)
        )
    ]


def suggested(session: Session) -> list[Finding]:
    """Return findings whose edits no trial has confirmed or refuted, and which are safe to make."""
    return [
        one
        for one in session.findings
        if one.edit is not None
        and one.trial.state in ("not_tried", "inconclusive")
        and one.effect_on_results != "not safe here"
    ]


def _replaces(finding: Finding, others: Collection[Finding]) -> bool:
    """Return True if a finding's edit can't be made together with one of the others' edits."""
    edit, edits = finding.edit, [one.edit for one in others if one.edit is not None]
    return edit is not None and any(
        one != edit and contradiction((*one.changes, *edit.changes), ()) for one in edits
    )


def with_rules(session: Session, rules: Collection[str]) -> Session:
    """Return the session whose patch holds the edits of these rules as well.

    An edit that no trial has decided counts only where its rule has no confirmed one, or where it
    stands for a decision of the user's that the confirmed one does without. Raises PipediagError: a
    rule has no edit that may be written, or a file is not what was measured.
    """
    if not rules:
        return session
    named, confirmed = left_to_name(session), confirmed_findings(session)
    confirmed += [one for one in named if one not in confirmed]
    known = {one.rule for one in confirmed}
    open_ones = [
        one
        for one in suggested(session)
        if one.rule not in known
        or (one.effect_on_results == "changes a hyper-parameter" and _replaces(one, confirmed))
    ]
    if unknown := sorted(set(rules) - known - {one.rule for one in open_ones}):
        possible = ", ".join(dict.fromkeys(one.rule for one in (*confirmed, *open_ones))) or "none"
        raise PipediagError(
            f"The session has no edit of {', '.join(unknown)} that may be written: the report says "
            f"why. Rules that can be named: {possible}."
        )
    chosen = [one for one in confirmed if one not in named or one.rule in rules]
    chosen += [one for one in open_ones if one.rule in rules]
    # What was asked for goes before what contradicts it.
    asked = [one for one in (*named, *open_ones) if one in chosen and one.rule in known]
    chosen = [one for one in chosen if one in asked or not _replaces(one, asked)]
    patch = session.patch or Patch()
    own = [one.patch for one in chosen if one.patch is not None]
    files = {file.path: file for each in (patch, *own) for file in each.files}
    contents = measured_files(Patch(files=list(files.values())))

    def read(path: str) -> bytes:
        return contents[path] if path in contents else current_file(path)

    wider, _ = make_patch(session, [one.edit for one in chosen if one.edit is not None], read)
    if unmeasured := [file.path for file in wider.files if file.path not in files]:
        raise PipediagError(
            f"The session has no checksum of {unmeasured[0]}, so it may not be as it was measured. "
            "Nothing was changed. Analyse the script again."
        )
    others = {one.edit.id for one in named if one.edit and one not in chosen}
    left = [one for one in patch.left_out if one.edit in others]
    return session.but(patch=wider.but(left_out=[*wider.left_out, *left]))
