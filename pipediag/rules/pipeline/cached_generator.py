"""A cache of what a generator gives: only its author knows whether that is always the same."""

from __future__ import annotations

import math

from pipediag.facts.amounts import memory_size
from pipediag.facts.machine import available_bytes
from pipediag.facts.pipeline import (
    call_name,
    delay_ms,
    operations,
    passes_over_data,
    reaches_the_loop,
)
from pipediag.rules.pipeline.cache_gain import gain_of_cache
from pipediag.rules.pipeline.cache_size import against, bytes_each, cache_bytes
from pipediag.rules.relevance import weigh
from pipediag.rules.rule import Meta
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.tensorflow_names import CACHES
from pipediag.vocabulary import Scalar

TITLE = "A cache would do if the generator gives the same in every epoch"


def of_generator(meta: Meta, session: Session) -> Finding | None:
    """The finding on the costliest generator that matters and has no cache behind it, or None."""
    op = _costliest(session)
    if op is None:
        return None
    passes, size = passes_over_data(session), cache_bytes(session, op)
    evidence: dict[str, Scalar] = {
        **weigh(session, op).evidence,
        "passes_over_data": "unlimited" if passes == math.inf else passes,
        "cache_bytes": size,
        "available_bytes": available_bytes(session),
    }
    changes = op.function.side_effect if op.function else None
    if changes:
        ended = f"The generator changes something, which a cache would end: {changes}."
        return meta.finding("pass", ended, op=op, evidence=evidence)
    # That its size is not known is no reason against it, but for its author to say.
    reason = against(session, passes, size or 0.0)
    if reason is not None or passes is None:
        return meta.finding("pass", reason or "", op=op, evidence=evidence)
    gain = gain_of_cache(session, op, passes).speedup
    evidence["predicted_if_the_same"] = gain
    advice = f"{_if_the_same(session, op, passes, gain)} {_takes(session, op, size)}".strip()
    return meta.finding("informative", advice, op=op, evidence=evidence, title=TITLE)


def instead(session: Session) -> str | None:
    """`.cache()` as the beginning of advice whose rest is what takes more work; None where the
    generator changes something, or where no cache would be of use or find room."""
    op, passes = _costliest(session), passes_over_data(session)
    if op is None or passes is None or (op.function and op.function.side_effect):
        return None
    later = gain_of_cache(session, op, math.inf).speedup
    if later is None or against(session, passes, cache_bytes(session, op) or 0.0) is not None:
        return None
    return (
        f"Put `.cache()` directly behind {call_name(op)} if it gives the same in every epoch "
        f"({later:.3g}x predicted from the second on), or"
    )


def _costliest(session: Session) -> Operation | None:
    found = [op for op in operations(session, "from_generator") if _counts(session, op)]
    return max(found, key=lambda one: delay_ms(session, one) or 0.0, default=None)


def _counts(session: Session, op: Operation) -> bool:
    if op.inside_function_of or not reaches_the_loop(session, op, without=CACHES):
        return False
    return weigh(session, op).status == "fail"


def _if_the_same(session: Session, op: Operation, passes: float, gain: float | None) -> str:
    advice = (
        f"Whether the generator of {call_name(op)} gives the same examples in every epoch is not "
        "known. If it does, put `.cache()` directly behind it"
    )
    later = gain_of_cache(session, op, math.inf).speedup
    if later is None:
        return f"{advice}."
    advice = f"{advice}: {later:.3g}x is predicted for the steps from the second epoch on"
    if passes == math.inf or gain is None:
        return f"{advice}."
    return f"{advice}, {gain:.3g}x for those of all {passes:g}."


def _takes(session: Session, op: Operation, size: float | None) -> str:
    if size is not None:
        return f"It would take {memory_size(size)}."
    each = bytes_each(session, op)
    if not each:
        return ""
    return f"It would take {each:.0f} bytes for each of its elements, whose number is not known."
