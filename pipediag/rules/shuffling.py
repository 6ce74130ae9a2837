"""Shuffle buffers that could be smaller, and caches that freeze what changes or never complete."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import takewhile

from pipediag.facts.names import line_name
from pipediag.facts.pipeline import (
    between,
    call_name,
    downstream,
    draws_random,
    following_batch,
    keeps_elements,
    passes_over_data,
    place_name,
    reshuffles,
    takes_a_part,
    upstream,
    upstream_of,
)
from pipediag.rules.rule import Rule
from pipediag.session.edits import Edit, Move, SetParameters
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.tensorflow_names import BATCHING, CUTS

COVERAGE = 0.01
"""Part of the data that a buffer still holds. Own choice: under it sorted data stays sorted."""
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
    enough = math.ceil(count * COVERAGE)
    size = max(held // PART, LEAST_BATCHES * batch, enough)
    return size if size <= held // 2 else None


def buffer_size(shuffle: Operation) -> int | None:
    """Return how many elements it holds at most, as it ran or as it is written."""
    size = shuffle.buffer_size or shuffle.parameters.get("buffer_size")
    return size if isinstance(size, int) else None


def smaller_buffer(session: Session, shuffle: Operation, rule: str) -> Edit | None:
    """Return a smaller buffer, tried in whole epochs, as steps alone don't show a fill.

    None before a zip: what it pairs may be shuffled alike.
    """
    size = smaller_size(session, shuffle)
    if size is None or any(one.kind == "zip" for one in downstream(session, shuffle)):
        return None
    return Edit(
        f"{rule}:buffer:{shuffle.id}",
        f"a buffer of {size} for the {place_name(shuffle)}",
        (SetParameters(shuffle.id, {"buffer_size": size}),),
        check="shape",
        caveat="The trial measures time, not how well the model then learns.",
        whole_epoch=True,
    )


MISPLACED_CACHE = Rule(
    id="misplaced-cache",
    title="Move the cache to the right place",
    why="Random augmentation or shuffling before a cache is the same in every epoch. An endless "
    "repeat before it lets it grow without end, and after a take it never completes.",
    fix="Put the cache before the random map, the shuffle after the cache, or the take before it. "
    "Results change to what was intended.",
    needs=("loop", "pipeline"),
    severity="error",
    effect="corrects results",
    subject="correctness",
    frees=("input_wait",),
    untried="Operations between them work on different elements, so neither can simply be moved.",
)
_PRICE = "This corrects results; the trial measures what the correction costs."
_FULL = "Measured once the cache is full."


@MISPLACED_CACHE.found_at("cache")
def _check_misplaced_cache(session: Session, cache: Operation) -> Iterator[Finding]:
    """Yield the first thing wrong with a cache."""
    above, below = upstream(session, cache), downstream(session, cache)
    drawing = [op for op in above if draws_random(op.function)]
    asked = [op for op in above if op.kind == "shuffle" and reshuffles(op)]
    repeats = [op for op in above if op.kind == "repeat"]
    endless = [op for op in repeats if op.parameters.get("count") in (None, -1)]
    partly = [] if _completed_elsewhere(session, cache) else _cutting(below, cache)
    finding = partial(
        MISPLACED_CACHE.finding, "fail", op=cache, effect="same results", subject="speed"
    )
    if drawing:
        yield _of_results(session, cache, drawing[-1], *_before(session, drawing[-1], cache))
    elif asked and not any(op.kind == "shuffle" for op in below):
        yield _of_results(session, cache, asked[0], *_reordered(session, asked[0], cache))
    elif endless:
        yield finding(
            f"Move {call_name(endless[0])} after {call_name(cache)}: an endless cache never serves "
            "an element and grows until the memory is full.",
            title="Repeat after the cache, so that it completes",
            edit=_moved_after(session, endless[0], cache),
        )
    elif partly:
        yield finding(
            f"Swap them: {call_name(partly[0])} before {call_name(cache)}. A cache that is not "
            "read to its end is discarded, so every epoch does the work again.",
            evidence={
                "take_count": partly[0].parameters.get("count"),
                "cache_cardinality": cache.cardinality,
            },
            title="Take before the cache, so that it completes",
            severity="warn",
            condition="if nothing else reads all of the cache",
            untried="A trial begins with full caches, and can't tell what this one costs.",
        )


def _cutting(below: Iterable[Operation], cache: Operation) -> list[Operation]:
    """Return the takes behind a cache that leave out a part of it."""
    takes = [(op, op.parameters.get("count")) for op in below if op.kind == "take"]
    return [op for op, n in takes if isinstance(n, int) and takes_a_part(n, cache.cardinality)]


def _completed_elsewhere(session: Session, cache: Operation) -> bool:
    """Return True if another loop reads the cache to its end: it then serves all of them."""
    for loop in session.loops:
        ops = loop.pipeline.ops if loop.pipeline is not None else []
        below = [op for op in ops if cache.id in {up.id for up in upstream_of(ops, op)}]
        if cache.id in {op.id for op in ops} and not _cutting(below, cache):
            return True
    return False


def _of_results(
    session: Session, cache: Operation, frozen: Operation, how: str, edit: Edit | None
) -> Finding:
    """Return the finding on what a cache freezes; with a single epoch it only informs."""
    random, once = draws_random(frozen.function), passes_over_data(session) == 1
    repeated = "random draws" if random else "order"
    advice = f"{how}: at present, every epoch repeats the {repeated} of the first."
    in_file = cache.parameters.get("filename")
    untried = "It keeps elements in files of earlier runs." if in_file else None
    if frozen.made_by_framework:
        untried = "The framework creates it within its own call, which pipediag can't change."
    return MISPLACED_CACHE.finding(
        "informative" if once else "fail",
        f"{advice} With a single epoch, this does no harm yet." if once else advice,
        op=cache,
        evidence={"frozen_operation": frozen.id},
        title="Move the cache before the random map" if random else "Shuffle after the cache",
        severity="error" if random else "warn",
        edit=None if once else edit,
        untried=untried,
    )


def _moved(cache: Operation, op: Operation, where: str, after: str, caveat: str) -> Edit:
    label, changes = f"{place_name(op)} moved {where}", (Move(op.id, after),)
    return Edit(f"{MISPLACED_CACHE.id}:{cache.id}", label, changes, caveat=caveat)


def _before(session: Session, frozen: Operation, cache: Operation) -> tuple[str, Edit | None]:
    path = between(session, frozen, cache)
    cut = path is None or any(each.kind in CUTS for each in path)
    how = f"Move {call_name(cache)} before {call_name(frozen)}"
    if name := cache.parameters.get("filename"):
        return f"{how}, and delete `{name}*` or give another name: these hold what it made", None
    if cut or len(frozen.parent_ids) != 1:
        return how, None
    where = f"before the {place_name(frozen)}"
    return how, _moved(cache, cache, where, frozen.parent_ids[0], _PRICE)


def _reordered(session: Session, shuffle: Operation, cache: Operation) -> tuple[str, Edit | None]:
    """Return how a cache and a shuffle before it come to stand the other way round."""
    if shuffle.made_by_framework:
        at = line_name(shuffle.file, shuffle.line)
        return (
            f"Give the call {f'at {at}' if at else 'that makes the dataset'} `batch_size=None` "
            "(leave its `shuffle`: it also mixes files before `validation_split` divides them), "
            f"and put `.shuffle(...)` and `.batch(...)` after {call_name(cache)}"
        ), None
    path = between(session, shuffle, cache) or []
    single = list(takewhile(lambda op: op.kind not in BATCHING, path))
    if len(single) < len(path) and keeps_elements(single):
        # After a cache of batches the shuffle would mix whole batches.
        return _before(session, shuffle, cache)
    edit = _moved_after(session, shuffle, cache)
    how = f"Move {call_name(shuffle)} after {call_name(cache)}"
    return how if edit else f"Put a `shuffle` after {call_name(cache)} too", edit


def _moved_after(session: Session, op: Operation, cache: Operation) -> Edit | None:
    path = between(session, op, cache)
    if path is None or not keeps_elements(path):
        return None
    return _moved(cache, op, f"after the {place_name(cache)}", cache.id, _FULL)
