"""Shuffles that mix too little, and caches that freeze what should change or never complete."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

from pipediag.facts.limits import Threshold
from pipediag.facts.pipeline import (
    between,
    call_name,
    downstream,
    draws_random,
    following_batch,
    framework_call,
    keeps_elements,
    operations,
    passes_over_data,
    place_name,
    reshuffles,
    upstream,
)
from pipediag.rules.rule import Rule
from pipediag.session.edits import Check, Edit, Move, SetParameters
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.tensorflow_names import BATCHING

COVERAGE = Threshold(
    "buffer size", 1.0, "% of the elements", "own choice: sorted data stays sorted"
)
SMALL_SHUFFLE = Rule(
    id="small-shuffle",
    title="Shuffle with a buffer that mixes the data",
    why="A shuffle can move an element forward by at most the buffer's size. After a batch, only "
    "whole batches change places.",
    fix="Use a larger buffer before the batch, and shuffle file names too. That takes memory, and "
    "time to fill before the first step.",
    needs=("loop", "pipeline"),
    thresholds=(COVERAGE,),
    effect="same up to order or rounding",
    subject="quality",
    untried="It affects how well the model learns, which a speed trial can't show.",
)
_KEEPS_NUMBER = ("map", "shuffle", "prefetch", "cache", "with_options")


@SMALL_SHUFFLE.found_at("shuffle")
def _check_small_shuffle(session: Session, op: Operation) -> Iterator[Finding]:
    """Yield a finding on a shuffle of the script's own that mixes too little.

    A helper mixes the names of the files itself before its shuffle does the rest.
    """
    above, size = upstream(session, op), op.parameters.get("buffer_size")
    if op.made_by_framework:
        return
    count, at_most = _counts(session, op, above)
    finding = partial(
        SMALL_SHUFFLE.finding, op=op, evidence={"buffer_size": size, "elements": count}
    )
    if not isinstance(size, int) or size < 0:
        yield finding("inconclusive", "The buffer's size is not known.")
        return
    holds_all = at_most is not None and size >= at_most
    shuffled_before = any(other.kind == "shuffle" for other in above)
    problem = _problem(session, op, above, size, count)
    if problem is not None and not holds_all and not shuffled_before:
        yield finding("fail", problem)


def _problem(
    session: Session, op: Operation, above: list[Operation], size: int, count: int | None
) -> str | None:
    batch = next((other for other in above if other.kind in BATCHING), None)
    if batch is not None and not any(other.kind == "unbatch" for other in above):
        how = f"Move {call_name(op)} before {call_name(batch)}"
        if batch.made_by_framework:
            how = (
                f"Let {framework_call(batch)} yield single elements (`batch_size=None`, or "
                f"`.unbatch()` after it), and put {call_name(op)} and then a `batch` after it"
            )
        return f"{how}: at present, whole batches change places and their examples stay together."
    behind = following_batch(session, op)
    rows = behind.parameters.get("batch_size") if behind else None
    if isinstance(rows, int) and size <= rows and (count is None or count > rows):
        return (
            f"Give {call_name(op)} a buffer of several batches, or of all elements if they fit: "
            f"it holds {size}, no more than a batch of {rows}."
        )
    if count is not None and size < count * COVERAGE.value / 100.0:
        return (
            f"Give {call_name(op)} a larger buffer, or shuffle file names or indices before it: it "
            f"holds {size} of {count} elements."
        )
    return None


def _counts(
    session: Session, op: Operation, above: list[Operation]
) -> tuple[int | None, int | None]:
    """Return how many elements reach the shuffle in one pass, at least and at most.

    Where nothing says it before it runs, as after an interleave of files, the epochs that were
    seen do: each iterator but the last has gone through one. None where an epoch's examples are
    others than those that are shuffled.
    """
    once = (other for other in above if other.kind != "repeat" and other.cardinality != -1)
    nearest = next(once, None)
    if nearest is not None and nearest.cardinality is not None:
        return nearest.cardinality, nearest.cardinality
    loop, behind = session.diagnosed_loop(), downstream(session, op)
    kept = all(other.kind in (*_KEEPS_NUMBER, *BATCHING) for other in behind)
    if loop is None or loop.batch_size is None or loop.iterators < 2 or not kept:
        return None, None
    if operations(session, "repeat"):
        return None, None
    examples = loop.steps * loop.batch_size
    return examples // loop.iterators, examples // (loop.iterators - 1)


PART = 10
"""The buffer becomes a tenth. Own choice: the fill is then next to nothing of what it was."""
LEAST_BATCHES = 8
"""Batches that it still holds. Own choice: fewer would hardly mix more than one batch does."""
ENOUGH_MIXED = "if the model learns as well from data that is shuffled less"


def smaller_size(session: Session, shuffle: Operation) -> int | None:
    """Return a tenth, but some batches and enough to mix the data; None where that is hardly less.

    A buffer holds no more than there is; an endless repeat above it brings more.
    """
    buffer, behind = buffer_size(shuffle), following_batch(session, shuffle)
    batch = behind.parameters.get("batch_size") if behind is not None else None
    if buffer is None or buffer <= 0 or not isinstance(batch, int):
        return None
    above = upstream(session, shuffle)
    count = above[0].cardinality or 0 if above else 0
    held = min(buffer, count) if count > 0 else buffer
    enough = math.ceil(count * COVERAGE.value / 100.0)
    size = max(held // PART, LEAST_BATCHES * batch, enough)
    return size if size <= held // 2 else None


def buffer_size(shuffle: Operation) -> int | None:
    """Return how many elements it holds at most, as it ran or as it is written."""
    size = shuffle.buffer_size or shuffle.parameters.get("buffer_size")
    return size if isinstance(size, int) else None


def smaller_buffer(session: Session, shuffle: Operation, rule: str) -> Edit | None:
    """Return a smaller buffer, tried in whole epochs, as steps alone don't show a fill."""
    size = smaller_size(session, shuffle)
    if size is None:
        return None
    return Edit(
        id=f"{rule}:buffer:{shuffle.id}",
        label=f"a buffer of {size} for the {place_name(shuffle)}",
        changes=(SetParameters(shuffle.id, {"buffer_size": size}),),
        check="shape",
        caveat="The trial measures time, not how well the model learns from data that is shuffled "
        "less.",
        whole_epoch=True,
    )


MISPLACED_CACHE = Rule(
    id="misplaced-cache",
    title="Move the cache to the right place",
    why="Random augmentation or shuffling before a cache is the same in every epoch. With an "
    "endless repeat before it, a cache grows without end. With a take after it, a cache never "
    "completes.",
    fix="Put the cache before the random map, the shuffle after the cache, or the take before the "
    "cache. Before a costly map, the cache saves less time. Results change to what was intended.",
    needs=("loop", "pipeline"),
    severity="error",
    effect="corrects results",
    subject="correctness",
    frees=("input_wait",),
    tried_when_informing=False,
    untried="Operations between them work on different elements, so neither can simply be moved.",
)
_FRAMEWORKS_OWN = "The framework creates it within its own call, which pipediag can't change."
_PRICE = "This corrects results; the trial measures what the correction costs."
_FULL = "Measured once the cache is full."
_SAME_ORDER = ("map", "prefetch", "with_options")
_CUTS = ("take", "take_while")
"""After a cache they keep it from completing."""


@MISPLACED_CACHE.found_at("cache")
def _check_misplaced_cache(session: Session, cache: Operation) -> list[Finding]:
    """Return the first thing wrong with a cache."""
    above, below = upstream(session, cache), downstream(session, cache)
    drawing = [op for op in above if draws_random(op.function)]
    asked = [op for op in above if reshuffles(op)]
    if drawing:
        return [_of_results(session, cache, drawing[-1], *_before(session, drawing[-1], cache))]
    if asked and not any(op.kind == "shuffle" for op in below):
        return [_of_results(session, cache, asked[0], *_reordered(session, asked[0], cache))]
    finding = partial(
        MISPLACED_CACHE.finding, "fail", op=cache, effect="same results", subject="speed"
    )
    for op in above:
        if op.kind == "repeat" and op.parameters.get("count") in (None, -1):
            advice = (
                f"Move {call_name(op)} after {call_name(cache)}: an endless cache never serves an "
                "element and grows until the memory is full."
            )
            title = "Repeat after the cache, so that it completes"
            return [finding(advice, title=title, edit=_moved_after(session, op, cache))]
    for op in below:
        count, held = op.parameters.get("count"), cache.cardinality
        whole = held is not None and isinstance(count, int) and 0 <= held <= count
        if op.kind == "take" and isinstance(count, int) and count >= 0 and not whole:
            advice = (
                f"Swap them: `take({count})` before {call_name(cache)}. A cache that is not read "
                "to its end is discarded, so every epoch does the work again."
            )
            take_first = finding(
                advice,
                evidence={"take_count": count, "cache_cardinality": held},
                title="Take before the cache, so that it completes",
                severity="warn",
                edit=_take_first(session, op, cache),
            )
            return [take_first]
    return []


def _moved(
    cache: Operation, label: str, *moves: Move, caveat: str, check: Check | None = None
) -> Edit:
    return Edit(f"{MISPLACED_CACHE.id}:{cache.id}", label, moves, check, caveat)


def _of_results(
    session: Session, cache: Operation, frozen: Operation, how: str, edit: Edit | None
) -> Finding:
    """Return the finding on what a cache freezes; with a single epoch it only informs."""
    random = draws_random(frozen.function)
    repeated = "random draws" if random else "order"
    advice = f"{how}: at present, every epoch repeats the {repeated} of the first."
    once = passes_over_data(session) == 1
    return MISPLACED_CACHE.finding(
        "informative" if once else "fail",
        f"{advice} With a single epoch, this does no harm yet." if once else advice,
        op=cache,
        evidence={"frozen_operation": frozen.id},
        title="Move the cache before the random map" if random else "Shuffle after the cache",
        severity="error" if random else "warn",
        edit=edit,
        untried=_FRAMEWORKS_OWN if frozen.made_by_framework else None,
    )


def _before(session: Session, drawing: Operation, cache: Operation) -> tuple[str, Edit | None]:
    path = between(session, drawing, cache)
    cut = path is None or any(each.kind in _CUTS for each in path)
    how = f"Move {call_name(cache)} before {call_name(drawing)}"
    if cut or len(drawing.parent_ids) != 1:
        return how, None
    label = f"{place_name(cache)} moved before the {place_name(drawing)}"
    return how, _moved(cache, label, Move(cache.id, drawing.parent_ids[0]), caveat=_PRICE)


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
        # After a cache of batches the shuffle would mix whole batches.
        single, batched = path[: path.index(batch)], path[path.index(batch) + 1 :]
        movable = keeps_elements(single) and not any(op.kind in _CUTS for op in batched)
        return (
            f"Put {call_name(cache)}, followed by {call_name(shuffle)}, directly before "
            f"{call_name(batch)}"
        ), _both_before(shuffle, cache, single) if movable else None
    edit = _moved_after(session, shuffle, cache)
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


def _moved_after(session: Session, op: Operation, cache: Operation) -> Edit | None:
    path = between(session, op, cache)
    if path is None or not keeps_elements(path):
        return None
    label = f"{place_name(op)} moved after the {place_name(cache)}"
    return _moved(cache, label, Move(op.id, cache.id), caveat=_FULL)


def _take_first(session: Session, take: Operation, cache: Operation) -> Edit | None:
    """Return the take before the cache; None where it gets other elements than the cache."""
    path = between(session, cache, take)
    if path is None or any(op.kind not in _SAME_ORDER for op in path) or not cache.parent_ids:
        return None
    label = f"{place_name(take)} moved before the {place_name(cache)}"
    return _moved(cache, label, Move(take.id, cache.parent_ids[0]), caveat=_FULL, check="equal")
