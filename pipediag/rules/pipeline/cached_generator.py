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
from pipediag.rules.pipeline.cache_size import (
    MEMORY,
    against,
    bytes_each,
    cache_bytes,
    fits_in_memory,
)
from pipediag.rules.pipeline.cached_elements import cache_behind, elements_seen_in_a_pass
from pipediag.rules.relevance import weigh
from pipediag.rules.rule import Meta
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.tensorflow_names import CACHES
from pipediag.vocabulary import Scalar

TITLE = "A cache would do if the generator yields the same data in every epoch"
_SAME = "if the generator yields the same data in every epoch"


def of_generator(meta: Meta, session: Session) -> Finding | None:
    """The finding on the costliest generator that matters and has no cache behind it, or None."""
    op = _costliest(session)
    if op is None:
        return None
    passes, size = passes_over_data(session), _size(session, op)
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
    reason = against(session, passes, size or 0.0)
    if reason is not None or passes is None:
        return meta.finding("pass", reason or "", op=op, evidence=evidence)
    unknown = _unknown_memory(session, op, size)
    if unknown is not None:
        advice = f"A cache behind {call_name(op)} could help {_SAME}. {unknown}"
        return meta.finding("informative", advice, op=op, evidence=evidence, title=TITLE)
    evidence["at_most_if_the_same"] = gain_of_cache(session, op)
    on_disk = size is not None and not fits_in_memory(session, size)
    condition = _SAME if size is not None else f"{_SAME}, and {_fits(session, op)}"
    cache = "`.cache(path)`" if on_disk else "`.cache()`"
    takes = f" It would take {memory_size(size)}." if size is not None else ""
    return meta.finding(
        "informative",
        f"Put {cache} directly behind {call_name(op)} {condition}.{takes}",
        op=op,
        evidence=evidence,
        effect="not known",
        condition=condition,
        edit=cache_behind(session, op, meta.id, on_disk=on_disk),
        title=TITLE,
    )


def _size(session: Session, op: Operation) -> float | None:
    """Return the bytes of one pass: as its dataset says, or by epochs seen to their end."""
    known, each = cache_bytes(session, op), bytes_each(session, op)
    count = elements_seen_in_a_pass(session, op)
    return float(count * each) if known is None and count is not None and each else known


def _unknown_memory(session: Session, op: Operation, size: float | None) -> str | None:
    """Why nothing can be said of the memory that a cache would take, as a sentence, or None."""
    loop = session.diagnosed_loop()
    if size is not None:
        return None
    if not bytes_each(session, op):
        return "It was not tried, as how much memory its elements take is not known."
    if loop is not None and loop.keras is not None and loop.keras.steps_per_epoch:
        return (
            "It was not tried: with `steps_per_epoch` the generator may have no end, and a cache "
            "of it would grow until memory ends."
        )
    return None


def _fits(session: Session, op: Operation) -> str:
    """How many of its elements there may be, where their number is not known."""
    each = bytes_each(session, op) or 1
    most = int(available_bytes(session) * MEMORY.value / 100.0 / each)
    return f"there are at most {most:,} elements of {each:,.0f} bytes (half of the free memory)"


def _costliest(session: Session) -> Operation | None:
    found = [op for op in operations(session, "from_generator") if _counts(session, op)]
    return max(found, key=lambda one: delay_ms(session, one) or 0.0, default=None)


def _counts(session: Session, op: Operation) -> bool:
    if op.inside_function_of or not reaches_the_loop(session, op, without=CACHES):
        return False
    return weigh(session, op).status == "fail"
