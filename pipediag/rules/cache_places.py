"""A cache in a place where it freezes what should change, or never completes."""

from __future__ import annotations

from collections.abc import Iterator

from pipediag.facts.pipeline import (
    between,
    call_name,
    downstream,
    draws_random,
    framework_call,
    keeps_elements,
    operations,
    passes_over_data,
    place_name,
    reshuffles,
    upstream,
)
from pipediag.rules.rule import Rule
from pipediag.session.edits import Edit, Move
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.tensorflow_names import BATCHING
from pipediag.vocabulary import FindingSeverity

MISPLACED_CACHE = Rule(
    id="misplaced-cache",
    title="Move the cache to the right place",
    why="Random augmentation or shuffling before a cache becomes the same in every epoch. An "
    "endless repeat before it lets it grow without end; a take after it keeps it from completing.",
    fix="Put the cache before the random map, the shuffle after the cache, or the take before it. "
    "Before a costly map the cache saves less time; results change to what was meant.",
    needs=("loop", "pipeline"),
    severity="error",
    effect="mends results",
    subject="correctness",
    frees=("input_wait",),
    untried="What stands between them takes other elements, so that neither can simply be moved.",
)
_FRAMEWORKS_OWN = "The framework makes it within a call of its own, which pipediag can't change."
_PRICE = "This mends results: what is measured is what that costs."
_FULL = "Measured once the cache is full."
_SAME_ORDER = ("map", "prefetch", "with_options")
_CUTS = ("take", "take_while")
"""After a cache they keep it from completing."""


@MISPLACED_CACHE.found_by
def check_misplaced_cache(session: Session) -> Iterator[Finding]:
    """Yield the first thing wrong with each cache."""
    for cache in operations(session, "cache"):
        found = (one(session, cache) for one in (_random, _frozen_order, _endless, _incomplete))
        yield from [one for one in found if one is not None][:1]


def _moved(cache: Operation, label: str, *moves: Move, caveat: str, check: bool = False) -> Edit:
    return Edit(
        id=f"{MISPLACED_CACHE.id}:{cache.id}",
        label=label,
        changes=moves,
        check="equal" if check else None,
        caveat=caveat,
    )


def _random(session: Session, cache: Operation) -> Finding | None:
    drawing = [op for op in upstream(session, cache) if draws_random(op.function)]
    if not drawing:
        return None
    first, edit = drawing[-1], None
    path = between(session, first, cache)
    cut = path is None or any(each.kind in _CUTS for each in path)
    if not cut and len(first.parent_ids) == 1:
        label = f"{place_name(cache)} moved before the {place_name(first)}"
        edit = _moved(cache, label, Move(cache.id, first.parent_ids[0]), caveat=_PRICE)
    advice = (
        f"Move {call_name(cache)} before {call_name(first)}: the map draws random numbers, and the "
        "cache repeats those of the first epoch in all others."
    )
    return _of_results(
        session, cache, advice, first, "Move the cache before the random map", "error", edit
    )


def _of_results(
    session: Session,
    cache: Operation,
    advice: str,
    frozen: Operation,
    title: str,
    severity: FindingSeverity,
    edit: Edit | None,
) -> Finding:
    """Return the finding on what a cache freezes; with a single epoch it only informs."""
    once = passes_over_data(session) == 1
    return MISPLACED_CACHE.finding(
        "informative" if once else "fail",
        f"{advice} With a single epoch it does no harm yet." if once else advice,
        op=cache,
        evidence={"frozen_operation": frozen.id},
        title=title,
        severity=severity,
        edit=edit,
        untried=_FRAMEWORKS_OWN if frozen.made_by_framework else None,
    )


def _frozen_order(session: Session, cache: Operation) -> Finding | None:
    """Return a finding on a shuffle before the cache and none after it."""
    again = [op for op in downstream(session, cache) if op.kind == "shuffle"]
    asked = [op for op in upstream(session, cache) if reshuffles(op)]
    if not asked or again:
        return None
    how, edit = _reordered(session, asked[0], cache)
    advice = f"{how}: as it is, every epoch has the order of the first."
    title = "Shuffle after the cache"
    return _of_results(session, cache, advice, asked[0], title, "warn", edit)


def _reordered(session: Session, shuffle: Operation, cache: Operation) -> tuple[str, Edit | None]:
    """Return how a cache and a shuffle before it come to stand the other way round."""
    if shuffle.made_by_framework:
        return (
            f"Keep {framework_call(shuffle)} from shuffling and batching (`shuffle=False`, "
            "`batch_size=None` or `.unbatch()`), and put `.shuffle(...)` and `.batch(...)` after "
            f"{call_name(cache)}"
        ), None
    path = between(session, shuffle, cache)
    batch = next((op for op in path or [] if op.kind in BATCHING), None)
    if path is not None and batch is not None:
        # Behind a cache of batches the shuffle would mix whole batches.
        single, batched = path[: path.index(batch)], path[path.index(batch) + 1 :]
        movable = keeps_elements(single) and not any(op.kind in _CUTS for op in batched)
        return (
            f"Put {call_name(cache)} and after it {call_name(shuffle)} directly before "
            f"{call_name(batch)}"
        ), _both_before(shuffle, cache, single) if movable else None
    edit = _behind(session, shuffle, cache)
    if edit is None:
        return f"Put a `shuffle` after {call_name(cache)} too", None
    return f"Move {call_name(shuffle)} after {call_name(cache)}", edit


def _both_before(shuffle: Operation, cache: Operation, single: list[Operation]) -> Edit | None:
    """Return the edit; `single` is what stands between the shuffle and the batch."""
    if len(shuffle.parent_ids) != 1:
        return None
    label = f"{place_name(cache)} and then the {place_name(shuffle)} moved before the batch"
    moves: tuple[Move, ...] = (Move(cache.id, shuffle.parent_ids[0]),)
    if single:
        moves = (Move(cache.id, single[-1].id), Move(shuffle.id, cache.id))
    return _moved(cache, label, *moves, caveat=_PRICE)


def _behind(session: Session, op: Operation, cache: Operation) -> Edit | None:
    """Return the move of an operation from before the cache to after it."""
    path = between(session, op, cache)
    if path is None or not keeps_elements(path):
        return None
    label = f"{place_name(op)} moved after the {place_name(cache)}"
    return _moved(cache, label, Move(op.id, cache.id), caveat=_FULL)


def _endless(session: Session, cache: Operation) -> Finding | None:
    for op in upstream(session, cache):
        if op.kind == "repeat" and op.parameters.get("count") in (None, -1):
            return MISPLACED_CACHE.finding(
                "fail",
                f"Move {call_name(op)} after {call_name(cache)}: an endless cache never serves an "
                "element and grows until the memory is full.",
                op=cache,
                title="Repeat after the cache, so that it completes",
                effect="same results",
                subject="speed",
                edit=_behind(session, op, cache),
            )
    return None


def _incomplete(session: Session, cache: Operation) -> Finding | None:
    for op in downstream(session, cache):
        count = op.parameters.get("count")
        if op.kind != "take" or not isinstance(count, int) or count < 0:
            continue
        if cache.cardinality is not None and 0 <= cache.cardinality <= count:
            continue
        return MISPLACED_CACHE.finding(
            "fail",
            f"Swap them: `take({count})` before {call_name(cache)}. A cache that is not read to "
            "its end is thrown away, so every epoch does the work again.",
            op=cache,
            evidence={"take_count": count, "cache_cardinality": cache.cardinality},
            title="Take before the cache, so that it completes",
            severity="warn",
            effect="same results",
            subject="speed",
            edit=_take_first(session, op, cache),
        )
    return None


def _take_first(session: Session, take: Operation, cache: Operation) -> Edit | None:
    """Return the take before the cache; None where it gets other elements than the cache."""
    path = between(session, cache, take)
    if path is None or any(op.kind not in _SAME_ORDER for op in path) or not cache.parent_ids:
        return None
    label = f"{place_name(take)} moved before the {place_name(cache)}"
    return _moved(cache, label, Move(take.id, cache.parent_ids[0]), caveat=_FULL, check=True)
