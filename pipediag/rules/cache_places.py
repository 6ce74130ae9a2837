"""A cache in a place where it freezes what should change, or never completes."""

from __future__ import annotations

from dataclasses import dataclass

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
    title_failed="A cache stands where it freezes or loses data",
    title_passed="Caches stand where they should",
    why="A cache keeps what it saw first. Random augmentation or shuffling above it becomes the "
    "same in every epoch, which is faster and wrong; an endless repeat above it grows without end; "
    "a take behind it stops it before it is complete, so it is thrown away (960 evaluations where "
    "320 do).",
    edit="Move the cache above the random map, the shuffle behind the cache (and both above the "
    "batch), or the take above the cache.",
    cost="Moved above a costly map, the cache saves less time; results change to what was meant.",
    needs=("loop", "pipeline"),
    thresholds=(),
    severity="error",
    effect_on_results="mends results",
    subject="correctness",
    frees=("input_wait",),
)

_BETWEEN = "What stands between them takes other elements, so that neither can simply be moved."
_FRAMEWORKS_OWN = "The framework makes it within a call of its own, which pipediag can't change."
_PRICE = "This mends results: what is measured is what that costs."
_SAME_ORDER = ("map", "prefetch", "with_options")
_CUTS = ("take", "take_while")
"""Behind a cache they keep it from completing."""


def check_misplaced_cache(session: Session) -> list[Finding]:
    """The first thing wrong with each cache."""
    caches = operations(session, "cache")
    if not caches:
        return [MISPLACED_CACHE.finding("not-applicable", "The pipeline has no cache.")]
    return [_finding(session, cache) for cache in caches]


def _finding(session: Session, cache: Operation) -> Finding:
    for problem in (_random, _frozen_order, _endless, _incomplete, _padded):
        found = problem(session, cache)
        if found is not None:
            return found
    return MISPLACED_CACHE.finding("pass", "", op=cache)


def _random(session: Session, cache: Operation) -> Finding | None:
    drawing = [op for op in upstream(session, cache) if draws_random(op.function)]
    if not drawing:
        return None
    first = drawing[-1]
    once = _read_once(session)
    return MISPLACED_CACHE.finding(
        "informative" if once else "fail",
        f"Move {call_name(cache)} above {call_name(first)}: the map draws random numbers, and the "
        f"cache repeats the first epoch's draws in all others.{once}",
        op=cache,
        evidence={"random_operation": first.id},
        title="A cache below a random map repeats the same random values in every epoch",
        edit=_above(session, cache, first),
        untried=_BETWEEN,
    )


def _read_once(session: Session) -> str:
    """What to add where nothing is repeated; empty where something is, or may be."""
    return " With a single epoch it does no harm yet." if passes_over_data(session) == 1 else ""


def _above(session: Session, cache: Operation, op: Operation) -> Edit | None:
    """The cache above this operation: it mends results, and a trial tells what that costs."""
    path = between(session, op, cache)
    if path is None or any(each.kind in _CUTS for each in path) or len(op.parent_ids) != 1:
        return None
    return Edit(
        id=f"{MISPLACED_CACHE.id}:{cache.id}",
        label=f"{place_name(cache)} moved above the {place_name(op)}",
        changes=(Move(cache.id, op.parent_ids[0]),),
        caveat=_PRICE,
    )


def _behind(session: Session, op: Operation, cache: Operation) -> Edit | None:
    """An operation moved from above the cache to behind it."""
    path = between(session, op, cache)
    if path is None or not keeps_elements(path):
        return None
    return Edit(
        id=f"{MISPLACED_CACHE.id}:{cache.id}",
        label=f"{place_name(op)} moved behind the {place_name(cache)}",
        changes=(Move(op.id, cache.id),),
        caveat="Measured once the cache is full.",
    )


def _frozen_order(session: Session, cache: Operation) -> Finding | None:
    """A shuffle above the cache and none behind it, unless one order is what was asked for."""
    again = [op for op in downstream(session, cache) if op.kind == "shuffle"]
    asked = [op for op in upstream(session, cache) if reshuffles(op)]
    if not asked or again:
        return None
    once, shuffle = _read_once(session), asked[0]
    remedy = _remedy(session, shuffle, cache)
    return MISPLACED_CACHE.finding(
        "informative" if once else "fail",
        f"{remedy.advice}: as it is, every epoch has the order of the first.{remedy.more}{once}",
        op=cache,
        evidence={"shuffle_operation": shuffle.id},
        title="A cache below a shuffle repeats the same order in every epoch",
        severity="warn",
        edit=remedy.edit,
        untried=remedy.untried,
    )


@dataclass(frozen=True)
class _Remedy:
    """How a cache and a shuffle above it come to stand the right way round."""

    advice: str
    edit: Edit | None = None
    more: str = ""
    untried: str = _BETWEEN


def _remedy(session: Session, shuffle: Operation, cache: Operation) -> _Remedy:
    if shuffle.made_by_framework:
        return _framework_s_shuffle(shuffle, cache)
    path = between(session, shuffle, cache)
    batch = next((op for op in path or [] if op.kind in BATCHING), None)
    if path is not None and batch is not None:
        return _above_the_batch(shuffle, cache, path, batch)
    if path is not None and keeps_elements(path):
        return _Remedy(
            f"Move {call_name(shuffle)} behind {call_name(cache)}",
            _behind(session, shuffle, cache),
        )
    return _Remedy(f"Put a `shuffle` behind {call_name(cache)} too")


def _framework_s_shuffle(shuffle: Operation, cache: Operation) -> _Remedy:
    if gives_batches_alone(shuffle):
        return _Remedy(
            f"Pass `shuffle=False` to {framework_call(shuffle)}, which shuffles by itself, and put "
            f"`.unbatch()` above {call_name(cache)}, `.shuffle(...)` and `.batch(...)` behind it",
            untried=_FRAMEWORKS_OWN,
        )
    return _Remedy(
        f"Pass `batch_size=None` to {framework_call(shuffle)}, which shuffles by itself, and put "
        f"`.shuffle(...)` and `.batch(...)` behind {call_name(cache)}",
        more=" Its own shuffle (`shuffle=False` leaves it out) is needed only for a "
        "`validation_split`.",
        untried=_FRAMEWORKS_OWN,
    )


def _above_the_batch(
    shuffle: Operation,
    cache: Operation,
    path: list[Operation],
    batch: Operation,
) -> _Remedy:
    """Cache, shuffle, batch: behind a cache of batches the shuffle would mix whole batches."""
    single = path[: path.index(batch)]
    batched = path[path.index(batch) + 1 :]
    repeated = any(op.kind == "map" for op in batched)
    return _Remedy(
        f"Put {call_name(cache)} and behind it {call_name(shuffle)} directly above "
        f"{call_name(batch)}",
        _both_above(shuffle, cache, single)
        if keeps_elements(single) and not any(op.kind in _CUTS for op in batched)
        else None,
        more=" What is mapped behind the batch then runs in every epoch." if repeated else "",
    )


def _both_above(shuffle: Operation, cache: Operation, single: list[Operation]) -> Edit | None:
    """The edit; `single` is what stands between the shuffle and the batch."""
    if len(shuffle.parent_ids) != 1:
        return None
    if single:
        changes: tuple[Move, ...] = (Move(cache.id, single[-1].id), Move(shuffle.id, cache.id))
    else:
        changes = (Move(cache.id, shuffle.parent_ids[0]),)
    return Edit(
        id=f"{MISPLACED_CACHE.id}:{cache.id}",
        label=f"{place_name(cache)} and then the {place_name(shuffle)} moved above the batch",
        changes=changes,
        caveat=_PRICE,
    )


def _endless(session: Session, cache: Operation) -> Finding | None:
    for op in upstream(session, cache):
        if op.kind == "repeat" and op.parameters.get("count") in (None, -1):
            return MISPLACED_CACHE.finding(
                "fail",
                f"Move {call_name(op)} behind {call_name(cache)}: an endless cache never serves an "
                "element and grows until memory ends.",
                op=cache,
                evidence={"repeat_operation": op.id},
                title="A cache below an endless repeat never completes",
                effect="same results",
                subject="speed",
                edit=_behind(session, op, cache),
                untried=_BETWEEN,
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
            f"Swap them: `take({count})` above {call_name(cache)}. A cache that is not read to its "
            "end is thrown away, so every epoch works anew.",
            op=cache,
            evidence={"take_count": count, "cache_cardinality": cache.cardinality},
            title="A take behind a cache keeps it from completing",
            severity="warn",
            effect="same results",
            subject="speed",
            edit=_take_first(session, op, cache),
            untried=_BETWEEN,
        )
    return None


def _take_first(session: Session, take: Operation, cache: Operation) -> Edit | None:
    """The take above the cache; None where it counts or gets other elements than the cache."""
    path = between(session, cache, take)
    if path is None or any(op.kind not in _SAME_ORDER for op in path) or not cache.parent_ids:
        return None
    return Edit(
        id=f"{MISPLACED_CACHE.id}:{cache.id}",
        label=f"{place_name(take)} moved above the {place_name(cache)}",
        changes=(Move(take.id, cache.parent_ids[0]),),
        check="equal",
        caveat="Measured once the cache is full.",
    )


def _padded(session: Session, cache: Operation) -> Finding | None:
    padding = next((op for op in upstream(session, cache) if op.kind == "padded_batch"), None)
    if padding is None:
        return None
    return MISPLACED_CACHE.finding(
        "informative",
        f"{call_name(cache)} keeps the padding of {call_name(padding)} too: above it, it would be "
        "smaller, at the price of padding anew in each epoch.",
        op=cache,
        evidence={"padding_operation": padding.id},
        title="A cache behind padding holds the padding too",
    )
