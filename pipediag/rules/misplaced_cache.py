"""A cache in a place where it freezes what should change, or never completes."""

from __future__ import annotations

from pipediag.rules.graph_ops import draws_random
from pipediag.rules.plan import (
    between,
    call_name,
    downstream,
    keeps_elements,
    operations,
    passes_over_data,
    place_name,
    upstream,
)
from pipediag.rules.rule import Meta, Prediction
from pipediag.session.edits import Edit, Move
from pipediag.session.model import Finding, Operation, Session

META = Meta(
    id="misplaced-cache",
    name="Misplaced cache",
    title_failed="A cache stands where it freezes or loses data",
    title_passed="Caches stand where they should",
    looks_at="What stands above each cache (random functions, shuffle, endless repeat, padding) "
    "and whether a take behind it keeps it from completing.",
    why="A cache keeps what it saw first. Random augmentation or shuffling above it becomes the "
    "same in every epoch, which is faster and wrong; an endless repeat above it grows without end; "
    "a take behind it stops it before it is complete, so it is thrown away (960 evaluations where "
    "320 do).",
    edit="Move the cache above the random map or shuffle, or the take above the cache.",
    cost="Moved above a costly map, the cache saves less time; results change to what was meant.",
    prediction="None: the finding is about results, or about a cache that does nothing.",
    needs=("loop", "pipeline"),
    thresholds=(),
    severity="error",
    effect_on_results="not safe here",
    subject="correctness",
    frees=("input_wait",),
)

_BETWEEN = "What stands between them takes other elements, so that neither can simply be moved."


_SAME_ORDER = ("map", "prefetch", "with_options")


def check(session: Session) -> list[Finding]:
    """The first thing wrong with each cache."""
    caches = operations(session, "cache")
    if not caches:
        return [META.finding("not-applicable", "The pipeline has no cache.")]
    return [_finding(session, cache) for cache in caches]


def _finding(session: Session, cache: Operation) -> Finding:
    for problem in (_random, _frozen_order, _endless, _incomplete, _padded):
        found = problem(session, cache)
        if found is not None:
            return found
    return META.finding("pass", "", op=cache)


def _random(session: Session, cache: Operation) -> Finding | None:
    drawing = [op for op in upstream(session, cache) if draws_random(op.function)]
    if not drawing:
        return None
    first, once = drawing[-1], passes_over_data(session) == 1
    return META.finding(
        "informative" if once else "fail",
        f"Move {call_name(cache)} above {call_name(first)}: the map draws random numbers, and the "
        "cache repeats the first epoch's draws in all others."
        + (" With a single epoch it does no harm yet." if once else ""),
        op=cache,
        evidence={"random_operation": first.id},
        prediction=Prediction(None, "This is about results, not speed."),
        title="A cache below a random map repeats the same random values in every epoch",
        edit=_above(session, cache, first),
        untried=_BETWEEN,
    )


def _above(session: Session, cache: Operation, op: Operation) -> Edit | None:
    """The cache above this operation: it mends results, and a trial tells what that costs."""
    path = between(session, op, cache)
    if path is None or not keeps_elements([op, *path]) or len(op.parent_ids) != 1:
        return None
    return Edit(
        id=f"{META.id}:{cache.id}",
        label=f"{place_name(cache)} moved above the {place_name(op)}",
        changes=(Move(cache.id, op.parent_ids[0]),),
        caveat="This mends results: what is measured is what that costs.",
    )


def _behind(session: Session, op: Operation, cache: Operation) -> Edit | None:
    """An operation moved from above the cache to behind it."""
    path = between(session, op, cache)
    if path is None or not keeps_elements(path):
        return None
    return Edit(
        id=f"{META.id}:{cache.id}",
        label=f"{place_name(op)} moved behind the {place_name(cache)}",
        changes=(Move(op.id, cache.id),),
        caveat="Measured once the cache is full.",
    )


def _frozen_order(session: Session, cache: Operation) -> Finding | None:
    above = [op for op in upstream(session, cache) if op.kind == "shuffle"]
    again = [op for op in downstream(session, cache) if op.kind == "shuffle"]
    if not above or again:
        return None
    return META.finding(
        "fail",
        f"Move {call_name(above[0])} behind {call_name(cache)}: as it is, every epoch has the "
        "order of the first.",
        op=cache,
        evidence={"shuffle_operation": above[0].id},
        prediction=Prediction(None, "This is about results, not speed."),
        title="A cache below a shuffle repeats the same order in every epoch",
        severity="warn",
        effect="same up to order or rounding",
        edit=_behind(session, above[0], cache),
        untried=_BETWEEN,
    )


def _endless(session: Session, cache: Operation) -> Finding | None:
    for op in upstream(session, cache):
        if op.kind == "repeat" and op.parameters.get("count") in (None, -1):
            return META.finding(
                "fail",
                f"Move {call_name(op)} behind {call_name(cache)}: an endless cache never serves an "
                "element and grows until memory ends.",
                op=cache,
                evidence={"repeat_operation": op.id},
                prediction=Prediction(None, "What a working cache would save was not measured."),
                title="A cache below an endless repeat never completes",
                effect="same results",
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
        return META.finding(
            "fail",
            f"Swap them: `take({count})` above {call_name(cache)}. A cache that is not read to its "
            "end is thrown away, so every epoch works anew.",
            op=cache,
            evidence={"take_count": count, "cache_cardinality": cache.cardinality},
            prediction=Prediction(None, "What a working cache would save was not measured."),
            title="A take behind a cache keeps it from completing",
            severity="warn",
            effect="same results",
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
        id=f"{META.id}:{cache.id}",
        label=f"{place_name(take)} moved above the {place_name(cache)}",
        changes=(Move(take.id, cache.parent_ids[0]),),
        check="equal",
        caveat="Measured once the cache is full.",
    )


def _padded(session: Session, cache: Operation) -> Finding | None:
    padding = next((op for op in upstream(session, cache) if op.kind == "padded_batch"), None)
    if padding is None:
        return None
    return META.finding(
        "informative",
        f"{call_name(cache)} keeps the padding of {call_name(padding)} too: above it, it would be "
        "smaller, at the price of padding anew in each epoch.",
        op=cache,
        evidence={"padding_operation": padding.id},
        title="A cache behind padding holds the padding too",
    )
