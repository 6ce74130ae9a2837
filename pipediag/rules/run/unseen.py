"""What of the run was not seen, so that no rule can say that it is fine."""

from __future__ import annotations

from pipediag.rules.rule import Meta
from pipediag.session.findings import Finding
from pipediag.session.ledger import EXITING, Run
from pipediag.vocabulary import RunPartName


def seen_or_not(meta: Meta, run: Run, part: RunPartName, lacking: str) -> Finding:
    """What a rule says of a part of the run that has nothing notable: that it is fine, or that it
    was not seen.

    Args:
        lacking: which of `Run.not_seen` would have had this part.
    """
    has_it = any(row.part == part and row.what != EXITING for row in run.parts)
    if has_it or lacking not in run.not_seen:
        return meta.finding("pass", "", part=part)
    reason = f"Not seen: {lacking}, as the script was stopped before that."
    return meta.finding("not-applicable", reason, part=part)
