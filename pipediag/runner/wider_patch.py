"""The patch of a session with edits that it leaves out, as the run is too short for them."""

from __future__ import annotations

from collections.abc import Collection

from pipediag.errors import PipediagError
from pipediag.facts.order import costs_the_run
from pipediag.patching.applying import measured_files
from pipediag.patching.making import make_patch
from pipediag.patching.refusal import NotPatchableError
from pipediag.runner.source_patches import confirmed_findings
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.patches import Patch


def too_costly(session: Session) -> list[Finding]:
    """Whose edits were confirmed, and are in no patch unless they are asked for."""
    return [one for one in confirmed_findings(session) if costs_the_run(one)]


def with_rules(session: Session, patch: Patch, rules: Collection[str]) -> Session:
    """The session whose patch holds the edits of these rules as well.

    Raises:
        PipediagError: nothing was confirmed of one of them, or a file is not what was measured.
    """
    if not rules:
        return session
    found = confirmed_findings(session)
    if unknown := sorted(set(rules) - {one.rule for one in found}):
        _refuse_dropped(session, unknown)
        known = ", ".join(dict.fromkeys(one.rule for one in found)) or "nothing"
        raise PipediagError(
            f"No edit of {', '.join(unknown)} was confirmed, so it can't be in the patch. "
            f"Confirmed: {known}."
        )
    chosen = [one for one in found if not costs_the_run(one) or one.rule in rules]
    files = {file.path: file for one in (patch, *_own(chosen)) for file in one.files}
    contents = measured_files(Patch(files=list(files.values())))

    def read(path: str) -> bytes:
        if path not in contents:
            raise NotPatchableError(f"No patch of its own was made of {path}.")
        return contents[path]

    wider, _ = make_patch(session, [one.edit for one in chosen if one.edit is not None], read)
    others = {one.edit.id for one in too_costly(session) if one.edit and one not in chosen}
    left = [one for one in patch.left_out if one.edit in others]
    wider = wider.model_copy(update={"left_out": [*wider.left_out, *left]})
    return session.model_copy(update={"patch": wider})


def _refuse_dropped(session: Session, rules: Collection[str]) -> None:
    """Say so where what is asked for was confirmed by itself, and not together with the others."""
    dropped = (
        {each.edit: each.reason for each in session.combined.dropped} if session.combined else {}
    )
    for finding in session.findings:
        if finding.rule in rules and finding.edit is not None and finding.edit.id in dropped:
            raise PipediagError(
                f"The edit of {finding.rule} was confirmed by itself, and is left out of all "
                f"together: {dropped[finding.edit.id]}"
            )


def _own(findings: list[Finding]) -> list[Patch]:
    return [one.patch for one in findings if one.patch is not None]
