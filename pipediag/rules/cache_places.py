"""A cache in a place where it freezes what should change, or never completes."""

from __future__ import annotations

from functools import partial

from pipediag.facts.pipeline import (
    between,
    call_name,
    downstream,
    draws_random,
    framework_call,
    gives_batches_alone,
    keeps_elements,
    operations,
    passes_over_data,
    place_name,
    reshuffles,
    upstream,
)
from pipediag.rules.rule import Meta
from pipediag.session.edits import Edit, Move
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.tensorflow_names import BATCHING

MISPLACED_CACHE = Meta(
    id="misplaced-cache",
    name="Misplaced cache",
    title_failed="Move the cache to where it freezes and loses nothing",
    title_passed="Caches stand where they should",
    why="Random augmentation or shuffling above a cache becomes the same in every epoch; an "
    "endless repeat above it grows without end; a take behind it keeps it from completing.",
    edit="Move the cache above the random map, the shuffle behind the cache (and both above the "
    "batch), or the take above the cache.",
    cost="Moved above a costly map, the cache saves less time; results change to what was meant.",
    needs=("loop", "pipeline"),
    severity="error",
    effect_on_results="mends results",
    subject="correctness",
    frees=("input_wait",),
)
_BETWEEN = "What stands between them takes other elements, so that neither can simply be moved."
_FRAMEWORKS_OWN = "The framework makes it within a call of its own, which pipediag can't change."
_PRICE = "This mends results: what is measured is what that costs."
_FULL = "Measured once the cache is full."
_SAME_ORDER = ("map", "prefetch", "with_options")
_CUTS = ("take", "take_while")
"""Behind a cache they keep it from completing."""


def check_misplaced_cache(session: Session) -> list[Finding]:
    """Return the first thing wrong with each cache."""
    caches = operations(session, "cache")
    if not caches:
        return [MISPLACED_CACHE.finding("not-applicable", "The pipeline has no cache.")]
    causes = (_random, _frozen_order, _endless, _incomplete)
    return [
        next((found for cause in causes if (found := cause(session, cache))), None)
        or MISPLACED_CACHE.finding("pass", op=cache)
        for cache in caches
    ]


def _moved(cache: Operation, label: str, *moves: Move, caveat: str = _PRICE) -> Edit:
    return Edit(id=f"{MISPLACED_CACHE.id}:{cache.id}", label=label, changes=moves, caveat=caveat)


def _random(session: Session, cache: Operation) -> Finding | None:
    drawing = [op for op in upstream(session, cache) if draws_random(op.function)]
    if not drawing:
        return None
    first, edit = drawing[-1], None
    path = between(session, first, cache)
    cut = path is None or any(each.kind in _CUTS for each in path)
    if not cut and len(first.parent_ids) == 1:
        label = f"{place_name(cache)} moved above the {place_name(first)}"
        edit = _moved(cache, label, Move(cache.id, first.parent_ids[0]))
    return MISPLACED_CACHE.finding(
        "informative" if _is_read_once(session) else "fail",
        f"Move {call_name(cache)} above {call_name(first)}: the map draws random numbers, and the "
        f"cache repeats the first epoch's draws in all others.{_no_harm_yet(session)}",
        op=cache,
        evidence={"random_operation": first.id},
        title="Move the cache above the random map, whose draws it repeats in every epoch",
        edit=edit,
        untried=_BETWEEN,
    )


def _is_read_once(session: Session) -> bool:
    return passes_over_data(session) == 1


def _no_harm_yet(session: Session) -> str:
    return " With a single epoch it does no harm yet." if _is_read_once(session) else ""


def _behind(session: Session, op: Operation, cache: Operation) -> Edit | None:
    """Return the move of an operation from above the cache to behind it."""
    path = between(session, op, cache)
    if path is None or not keeps_elements(path):
        return None
    label = f"{place_name(op)} moved behind the {place_name(cache)}"
    return _moved(cache, label, Move(op.id, cache.id), caveat=_FULL)


def _frozen_order(session: Session, cache: Operation) -> Finding | None:
    """Return a finding on a shuffle above the cache and none behind it, which freezes one order."""
    again = [op for op in downstream(session, cache) if op.kind == "shuffle"]
    asked = [op for op in upstream(session, cache) if reshuffles(op)]
    if not asked or again:
        return None
    shuffle = asked[0]
    advice, edit = _reordered(session, shuffle, cache)
    return MISPLACED_CACHE.finding(
        "informative" if _is_read_once(session) else "fail",
        f"{advice}: as it is, every epoch has the order of the first.{_no_harm_yet(session)}",
        op=cache,
        evidence={"shuffle_operation": shuffle.id},
        title="Shuffle behind the cache, which repeats one order in every epoch",
        severity="warn",
        edit=edit,
        untried=_FRAMEWORKS_OWN if shuffle.made_by_framework else _BETWEEN,
    )


def _reordered(session: Session, shuffle: Operation, cache: Operation) -> tuple[str, Edit | None]:
    """Return how a cache and a shuffle above it come to stand the other way round."""
    if shuffle.made_by_framework:
        alone, name = gives_batches_alone(shuffle), call_name(cache)
        return (
            f"Pass `{'shuffle=False' if alone else 'batch_size=None'}` to "
            f"{framework_call(shuffle)}, which shuffles by itself, and put "
            f"{f'`.unbatch()` above {name}, ' if alone else ''}`.shuffle(...)` and `.batch(...)` "
            f"behind {name}"
        ), None
    path = between(session, shuffle, cache)
    batch = next((op for op in path or [] if op.kind in BATCHING), None)
    if path is not None and batch is not None:
        # Behind a cache of batches the shuffle would mix whole batches.
        single, batched = path[: path.index(batch)], path[path.index(batch) + 1 :]
        movable = keeps_elements(single) and not any(op.kind in _CUTS for op in batched)
        return (
            f"Put {call_name(cache)} and behind it {call_name(shuffle)} directly above "
            f"{call_name(batch)}"
        ), _both_above(shuffle, cache, single) if movable else None
    edit = _behind(session, shuffle, cache)
    if edit is None:
        return f"Put a `shuffle` behind {call_name(cache)} too", None
    return f"Move {call_name(shuffle)} behind {call_name(cache)}", edit


def _both_above(shuffle: Operation, cache: Operation, single: list[Operation]) -> Edit | None:
    """Return the edit; `single` is what stands between the shuffle and the batch."""
    if len(shuffle.parent_ids) != 1:
        return None
    label = f"{place_name(cache)} and then the {place_name(shuffle)} moved above the batch"
    if not single:
        return _moved(cache, label, Move(cache.id, shuffle.parent_ids[0]))
    return _moved(cache, label, Move(cache.id, single[-1].id), Move(shuffle.id, cache.id))


_loses_time = partial(
    MISPLACED_CACHE.finding, "fail", effect="same results", subject="speed", untried=_BETWEEN
)


def _endless(session: Session, cache: Operation) -> Finding | None:
    for op in upstream(session, cache):
        if op.kind == "repeat" and op.parameters.get("count") in (None, -1):
            return _loses_time(
                f"Move {call_name(op)} behind {call_name(cache)}: an endless cache never serves an "
                "element and grows until memory ends.",
                op=cache,
                evidence={"repeat_operation": op.id},
                title="Repeat behind the cache, so that it completes",
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
        return _loses_time(
            f"Swap them: `take({count})` above {call_name(cache)}. A cache that is not read to its "
            "end is thrown away, so every epoch works anew.",
            op=cache,
            evidence={"take_count": count, "cache_cardinality": cache.cardinality},
            title="Take above the cache, so that it completes",
            severity="warn",
            edit=_take_first(session, op, cache),
        )
    return None


def _take_first(session: Session, take: Operation, cache: Operation) -> Edit | None:
    """Return the take above the cache; None where it gets other elements than the cache."""
    path = between(session, cache, take)
    if path is None or any(op.kind not in _SAME_ORDER for op in path) or not cache.parent_ids:
        return None
    return Edit(
        id=f"{MISPLACED_CACHE.id}:{cache.id}",
        label=f"{place_name(take)} moved above the {place_name(cache)}",
        changes=(Move(take.id, cache.parent_ids[0]),),
        check="equal",
        caveat=_FULL,
    )
