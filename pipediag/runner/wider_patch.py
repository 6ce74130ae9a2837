"""The patch of a session with edits that are written only where their rules are named."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pipediag.errors import PipediagError
from pipediag.patching.applying import current_file, measured_files
from pipediag.patching.making import make_patch
from pipediag.runner.source_patches import confirmed_findings, only_by_name
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.patches import Patch


def left_to_name(session: Session) -> list[Finding]:
    """Findings whose edits were confirmed, and are in no patch unless their rules are named."""
    return [one for one in confirmed_findings(session) if only_by_name(one)]


def suggested(session: Session) -> list[Finding]:
    """Findings whose edits no trial has confirmed or refuted, and which are safe to make."""
    return [
        one
        for one in session.findings
        if one.edit is not None
        and one.trial.state in ("not_tried", "inconclusive")
        and one.effect_on_results != "not safe here"
    ]


def with_rules(session: Session, rules: Collection[str]) -> Session:
    """The session whose patch holds the edits of these rules as well.

    An edit that no trial has decided counts only where its rule has no confirmed one.

    Raises:
        PipediagError: a rule has no edit that may be written, or a file is not what was measured.
    """
    if not rules:
        return session
    confirmed = confirmed_findings(session)
    known = {one.rule for one in confirmed}
    open_ones = [one for one in suggested(session) if one.rule not in known]
    if unknown := sorted(set(rules) - known - {one.rule for one in open_ones}):
        _refuse(session, unknown, [*confirmed, *open_ones])
    chosen = [one for one in confirmed if not only_by_name(one) or one.rule in rules]
    chosen += [one for one in open_ones if one.rule in rules]
    patch = session.patch or Patch()
    own = [one.patch for one in chosen if one.patch is not None]
    files = {file.path: file for each in (patch, *own) for file in each.files}
    contents = measured_files(Patch(files=list(files.values())))

    def read(path: str) -> bytes:
        return contents[path] if path in contents else current_file(path)

    wider, _ = make_patch(session, [one.edit for one in chosen if one.edit is not None], read)
    if unmeasured := [file.path for file in wider.files if file.path not in files]:
        raise PipediagError(
            f"{unmeasured[0]} was changed while it was measured, so its patch can't be trusted. "
            "Nothing was changed. Analyse the script again."
        )
    others = {one.edit.id for one in left_to_name(session) if one.edit and one not in chosen}
    left = [one for one in patch.left_out if one.edit in others]
    wider = wider.model_copy(update={"left_out": [*wider.left_out, *left]})
    return session.model_copy(update={"patch": wider})


def _refuse(session: Session, rules: Sequence[str], known: Sequence[Finding]) -> None:
    """Raise with the reason why edits of these rules are not written."""
    dropped = (
        {each.edit: each.reason for each in session.combined.dropped} if session.combined else {}
    )
    for finding in session.findings:
        if finding.rule not in rules or finding.edit is None:
            continue
        if finding.edit.id in dropped:
            raise PipediagError(
                f"The edit of {finding.rule} was confirmed by itself, and is left out of all "
                f"together: {dropped[finding.edit.id]}"
            )
        if finding.trial.state == "refuted":
            raise PipediagError(
                f"A trial refuted the edit of {finding.rule}, so it is not written as a patch."
            )
        raise PipediagError(f"The edit of {finding.rule} is not safe here, so it is not written.")
    named = ", ".join(dict.fromkeys(one.rule for one in known)) or "none"
    raise PipediagError(
        f"The session has no edit of {', '.join(rules)}. Rules that can be named: {named}."
    )
