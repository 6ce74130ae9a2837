"""A limit on padding among the ids that embeddings look up."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pipediag.facts.padding import padded_ids, padded_percent
from pipediag.gate.config import GateConfig
from pipediag.gate.limits import Limit, Measured, judged, of_runs
from pipediag.gate.result import Check
from pipediag.session.model import Session

_STANDARD_ERRORS = 1.96
"""To each side of 95 % of a normal value."""


def padding_limit_checks(runs: Sequence[Session], config: GateConfig) -> list[Check]:
    """One check where the configuration limits padding, in the batches that were looked at."""
    most = config.max_padding_percent
    if most is None:
        return []
    limit = Limit("max-padding-percent", "Padding", most)
    place = (runs[0].verdict.file, runs[0].verdict.line)
    narrower = "More runs (--repeats) look at more batches."
    return [judged(limit, of_runs([_of(run) for run in runs]), place, narrower=narrower)]


def _of(session: Session) -> Measured | str:
    """Counted in a few batches, which are a sample of the data.

    The spread of their examples' shares is not recorded. Shares with this mean have p (1 - p) as
    their variance at most, which is taken.
    """
    percent = padded_percent(session)
    if percent is None:
        return (
            "of no Embedding whose ids were looked at is it known which id is padding, by "
            "`mask_zero` or by a table of tokens in front."
        )
    share = min(1.0, max(0.0, percent / 100.0))
    reach = 100.0 * _STANDARD_ERRORS * math.sqrt(share * (1.0 - share) / _examples(session))
    return Measured(percent, (percent - reach, percent + reach), of="the ids")


def _examples(session: Session) -> int:
    """How many were looked at; where a batch's size is not known, each batch is one."""
    size = session.steps.batch_size if session.steps is not None else None
    batches = min(ids.batches for ids in padded_ids(session))
    return max(1, batches) * max(1, size or 1)
