"""What of the run was not seen, so that no rule can say that it is fine."""

from __future__ import annotations

from pipediag.rules.rule import Meta
from pipediag.session.findings import Finding
from pipediag.session.ledger import EXITING, Run
from pipediag.vocabulary import RunPartName


def seen_or_not(meta: Meta, run: Run, part: RunPartName, *lacking: str) -> Finding:
    """What a rule says of a part of the run that has nothing notable: that it is fine, or that it
    was not seen.

    Args:
        lacking: what of `Run.not_seen` would have had this part.
    """
    has_it = any(row.part == part and row.what != EXITING for row in run.parts)
    unseen = next((what for what in lacking if what in run.not_seen), None)
    if unseen is None or has_it:
        return meta.finding("pass", "", part=part)
    return meta.finding(
        "not-applicable", f"Not seen: {unseen}, as the script was stopped before that.", part=part
    )
