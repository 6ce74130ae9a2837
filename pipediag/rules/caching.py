"""A cache of what never changes: costly work that is repeated in every epoch."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from itertools import takewhile
from typing import Any, NamedTuple

from pipediag.facts.limits import INPUT_WAIT, OPERATION_SHARE, Threshold
from pipediag.facts.machine import available_bytes
from pipediag.facts.names import memory_size
from pipediag.facts.pipeline import (
    between,
    call_name,
    condition_of_cache,
    delay_ms,
    differs_by_pass,
    downstream,
    keeps_elements,
    measured_at,
    operations,
    passes_over_data,
    place_name,
    reaches_the_loop_uncached,
    reshuffles,
    takes_a_part,
    upstream,
)
from pipediag.facts.run import FIRST_BATCHES, fills_a_shuffle, long_percent, time_of_epochs
from pipediag.facts.step import class_ms
from pipediag.rules.epoch_start import foretold, without_first_batches
from pipediag.rules.relevance import Weight, less_input, matters, weigh, weigh_first_batches
from pipediag.rules.rule import pipeline_rule
from pipediag.session.edits import Change, Check, Edit, Insert, Move, adds_cache
from pipediag.session.findings import Finding, also
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.tensorflow_names import BATCHING, CACHES, CUTS
from pipediag.vocabulary import EffectOnResults, Scalar

FILL_S = 2.0
LEAST_BATCHES = 8
MEMORY = Threshold("size of the cache", 50.0, "% of the free memory", "tf.data's own budget")


def cache_of(
    op: Operation, rule: str, elements: int, *, first: Iterable[Change] = (), **given: Any
) -> Edit:
    """Return the edit that puts a cache of so many elements after the operation."""
    label, caveat = f"cache after the {place_name(op)}", "Measured once the cache is full."
    changes = (*first, Insert(op.id, "cache", {"elements": elements}))
    return Edit(f"{rule}:{op.id}", label, changes, caveat=caveat, **given)


def elements_to_cache(session: Session, op: Operation) -> int | None:
    """Return what two seconds make at the rate of this run; at least eight batches, at most all."""
    number = elements_of_a_pass(session, op)
    if session.steps is None or not op.elements:
        return number if fills_a_shuffle(session, op) else None
    wanted = math.ceil(steps_in_time(session.steps.mean_ms) * op.elements)
    return wanted if number is None else min(wanted, number)


def steps_in_time(step_ms: float) -> float:
    """Return how many steps make what a trial's cache holds."""
    return max(FILL_S * 1000.0 / step_ms, LEAST_BATCHES)


def elements_of_a_pass(session: Session, op: Operation) -> int | None:
    """Return how many elements of one pass reach this operation at most; None if unknown."""
    for other in [op, *upstream(session, op)]:
        if other.kind != "repeat" and other.cardinality is not None and other.cardinality >= 0:
            return other.cardinality
        if other.kind not in CACHES and not keeps_elements([other]):
            break
    return _rows_of_an_epoch(session, op)


def _rows_of_an_epoch(session: Session, op: Operation) -> int | None:
    """Return the most rows that an epoch had, of those seen to their end, where each is an element.

    Readers of files can't say how many elements they hold.
    """
    loop, below = session.diagnosed_loop(), [one.kind for one in downstream(session, op)]
    if loop is None or not loop.epoch_ends or not loop.batch_size or _is_cut(session):
        return None
    single = list(takewhile(lambda kind: kind not in BATCHING, below))
    batched = below[len(single) :]
    one_row_each = {*single} <= {"map", "shuffle", "prefetch", "with_options", "cache"}
    whole = {*BATCHING, "repeat", "take", "unbatch"}.isdisjoint(batched[1:])
    if not batched or not one_row_each or not whole:
        return None
    return math.ceil(loop.steps / loop.epoch_ends) * loop.batch_size


def _is_cut(session: Session) -> bool:
    """Return True if an epoch of `fit` ends by its number of steps, and not with its data."""
    return session.keras is not None and bool(session.keras.steps_per_epoch)


def _against(
    session: Session, passes: float | None, size: float | None, count: int | None
) -> str | None:
    """Return why a cache of that size, or of so many elements, can't be advised, or None."""
    if passes is None:
        return (
            "A cache pays off only if the script reads its data more than once, which is not known."
        )
    if size is None:
        elements = "elements" if count is None else f"{count:,} elements"
        return f"Add `.cache()` if the {elements} fit in memory."
    if fits_in_memory(session, size):
        return None
    return (
        f"A cache would take {memory_size(size)}, more than half of the "
        f"{memory_size(available_bytes(session))} of free memory. Cache to a large and fast disk "
        "with `.cache(path)`, or store the results once."
    )


def fits_in_memory(session: Session, size: float) -> bool:
    """Return True if so many bytes leave half of what is available to everything else."""
    return size <= available_bytes(session) * MEMORY.value / 100.0


def cache_bytes(session: Session, op: Operation) -> float | None:
    """Return what all elements of one pass take at this operation."""
    each, count = bytes_each(session, op), elements_of_a_pass(session, op)
    if each is None:
        return None
    if count is not None:
        return float(count * each)
    # A reader can't say how many elements its files hold: by how much an element grows after it.
    above = upstream(session, op)
    source = above[-1] if above else op
    held, read = source.parameters.get("file_bytes"), bytes_each(session, source)
    between_them = [other for other in [op, *above[:-1]] if other.kind not in CACHES]
    if not isinstance(held, int) or not read or not keeps_elements(between_them):
        return None
    return held * each / read


def bytes_each(session: Session, op: Operation) -> float | None:
    """Return what one element takes at this operation."""
    at = measured_at(session, op)
    # After fusion with a batch the measured bytes are those of batches.
    own = op.element_bytes or (at.bytes_per_element if at is op else None)
    readers = [one for one in downstream(session, op) if op.id in one.parent_ids]
    if own is None and op.elements is None and [one.kind for one in readers] == ["shuffle"]:
        # It ran dry while the shuffle behind it was filled, which hands on the same elements.
        return bytes_each(session, readers[0])
    return own


def _gain_of_cache(session: Session, op: Operation) -> float | None:
    """Return the bound once the cache is full: the delays of the operation and all above it end."""
    cost_at = measured_at(session, op).id
    left = sum(
        delay_ms(session, other) or 0.0
        for other in downstream(session, op)
        if measured_at(session, other).id != cost_at
    )
    wait_ms = class_ms(session, ["input_wait"])
    return less_input(session, max(0.0, wait_ms - left), on_cpu=False)


MISSING_CACHE = pipeline_rule(
    id="missing-cache",
    title="Cache the prepared data",
    why="From the second epoch on, a cache replaces everything before it.",
    fix="Put `.cache()` after the map, and before `shuffle`, `repeat` and anything random; "
    "`.cache(path)` holds more, and is to be deleted when data or map change.",
    thresholds=(INPUT_WAIT, OPERATION_SHARE, FIRST_BATCHES, MEMORY),
)


@MISSING_CACHE.found_by
def _check_missing_cache(session: Session) -> list[Finding]:
    passes = passes_over_data(session)
    if passes is not None and passes <= 1:
        return []
    found = _of_maps(session)
    if found is None or found.status in ("pass", "inconclusive"):
        generators = [op for op in operations(session, "from_generator") if _is_open(session, op)]
        costly = [op for op in generators if weigh(session, op).status == "fail"]
        # Of one that fills a shuffle in each epoch, the first one is left.
        left = 1.0 / max(1.0, passes or 1.0)
        filling = {one.id: weigh_first_batches(session, one, left) for one in generators}
        last = next((one for one in reversed(generators) if filling[one.id] is not None), None)
        op = max(costly, key=lambda one: delay_ms(session, one) or 0.0, default=last)
        found = _of_generator(session, op, filling[op.id]) if op is not None else found
    return [found] if found is not None else []


def place_of_cache(session: Session) -> str | None:
    """Return the operation behind which a cache is to be tried, by its id."""
    edits = (one.edit for one in _check_missing_cache(session) if one.edit is not None)
    added = (one.after for edit in edits for one in edit.changes if adds_cache(one))
    return next(added, None)


def _is_open(session: Session, op: Operation) -> bool:
    return not op.inside_function_of and reaches_the_loop_uncached(session, op)


def _of_maps(session: Session) -> Finding | None:
    every = operations(session, "map")
    maps = [op for op in every if _is_open(session, op) and _gives_the_same(session, op)]
    if not maps:
        return None
    # Of equals, such as those whose costs are unknown, the last: a cache replaces all before it.
    op = max(reversed(maps), key=lambda candidate: delay_ms(session, candidate) or 0.0)
    op = _behind_other_work(session, maps, op)
    weight, early = weigh(session, op, _delay_up_to(session, op)), False
    percent, time = long_percent(session), time_of_epochs(session)
    if weight.status != "fail" and percent is not None and time is not None:
        # Else the last map that fills a shuffle and did not run any more once that was full: the
        # loop waits for that in every epoch.
        idle = (one for one in reversed(maps) if delay_ms(session, one) is None)
        filling = next((one for one in (op, *idle) if fills_a_shuffle(session, one)), None)
        if filling is not None:
            op, early = filling, True
            at_most, of_run = without_first_batches(session, time)
            weight = Weight("fail", "", {"first_batches_percent_of_loop": percent}, of_run, at_most)
    op = _after_its_take(session, _after_its_filters(session, op))
    cache = _cache_of(session, op, early=early)
    finding = partial(MISSING_CACHE.finding, op=op, weight=weight, evidence=cache.evidence)
    if weight.status != "fail" and (cache.against is not None or not weight.worth_trying):
        status = "pass" if weight.status == "informative" else weight.status
        return finding(status, weight.sentence)
    if cache.against is not None:
        return finding("informative", cache.against)
    return finding(
        weight.to_try,
        weight.before(f"{cache.advice}{foretold(time) if early else ''}"),
        part="epoch_start" if early else "steps",
        speedup_at_most=None if early else _gain_of_cache(session, op),
        **cache.given,
    )


def _behind_other_work(session: Session, maps: list[Operation], op: Operation) -> Operation:
    """Return the last of the maps where those behind the costliest one matter, too, and what it
    makes fits in memory."""
    behind = [one for one in downstream(session, op) if one in maps]
    if not matters(session, *behind):
        return op
    last = max(behind, key=maps.index)
    there, here = (_cache_of(session, one, early=False) for one in (last, op))
    only_here = there.given["edit"] is None and here.given["edit"] is not None
    only_here = only_here and here.against is None
    return op if there.against is not None or only_here else last


def _delay_up_to(session: Session, op: Operation) -> float | None:
    """Return the delay of the operation and of all maps above it, which a cache replaces; None
    where its own is not known."""
    own, at = delay_ms(session, op), measured_at(session, op).id
    others = {measured_at(session, one).id: one for one in upstream(session, op)}
    maps = [one for id, one in others.items() if id != at and one.kind == "map"]
    return None if own is None else own + sum(delay_ms(session, one) or 0.0 for one in maps)


def _after_its_filters(session: Session, op: Operation) -> Operation:
    """Return the last of the filters that follow at once, so that only what they pass is kept."""
    following = [one for one in downstream(session, op) if op.id in one.parent_ids]
    if len(following) != 1 or following[0].kind != "filter":
        return op
    passing = following[0]
    return _after_its_filters(session, passing) if _gives_the_same(session, passing) else op


def _cutting(session: Session, op: Operation) -> Operation | None:
    """Return the last operation behind this one that leaves out the rest of the data: a cache
    before it is never read to its end, and is discarded."""
    for one in reversed([one for one in downstream(session, op) if one.kind in CUTS]):
        above, count = session.operation(one.parent_ids[0]), one.parameters.get("count")
        held = elements_of_a_pass(session, above) if above is not None else None
        if one.kind != "take" or not isinstance(count, int) or takes_a_part(count, held):
            path = between(session, op, one) or []
            # Behind a repeat, the first pass may complete the cache before the rest is left out.
            return None if any(other.kind == "repeat" for other in path) else one
    return None


def _after_its_take(session: Session, op: Operation) -> Operation:
    """Return what leaves out the rest behind an operation, where the same elements come through it
    in each pass; else the operation."""
    cutting = _cutting(session, op)
    if cutting is None or between(session, op, cutting) is None:
        return op
    above = [cutting, *upstream(session, cutting)]
    varies = any(reshuffles(one) or differs_by_pass(one) or one.kind == "repeat" for one in above)
    return op if varies else cutting


def _gives_the_same(session: Session, op: Operation) -> bool:
    return op.function is not None and not any(map(differs_by_pass, [op, *upstream(session, op)]))


def _of_generator(session: Session, op: Operation, early: Weight | None) -> Finding | None:
    place = _after_its_take(session, op)
    cache, gain = _cache_of(session, place, early=early is not None), _gain_of_cache(session, place)
    if early is not None:
        gain = early.for_run.speedup if early.for_run is not None else None
    if not cache.possible:
        return None
    finding = partial(
        MISSING_CACHE.finding,
        "informative",
        op=op,
        weight=early or weigh(session, op),
        evidence={**cache.evidence, "at_most_if_the_same_ratio": gain},
        title="Cache the generator if it yields the same data in every epoch",
        part="steps" if early is None else "epoch_start",
    )
    if cache.size is None and (_is_cut(session) or cache.against is not None):
        return finding(
            f"A cache after {call_name(op)} could help {cache.given['condition']}. It was not "
            "tried because its size is not known: with `steps_per_epoch`, a generator may never "
            "end."
        )
    takes = f" It would take {memory_size(cache.size)}." if cache.size is not None else ""
    return finding(f"{cache.advice}{takes}", **cache.given)


class _Cache(NamedTuple):
    """A cache after an operation, and what stands in its way."""

    size: float | None
    possible: bool
    """True if data that may fit is read more than once, and no Python changes anything."""
    against: str | None
    """Reason why it can't be advised."""
    evidence: dict[str, Scalar]
    advice: str
    given: dict[str, Any]
    """Further fields of a finding that advises the cache."""


def _to_move(
    session: Session, op: Operation
) -> tuple[list[Operation], list[Operation], bool, bool]:
    """Return shuffles and repeats above a cache that have to follow it, those that stay, True if
    all of the first can, and True if the elements of the others are mixed behind the cache."""
    above = upstream(session, op)
    cache = next((other for other in above if other.kind in CACHES), None)
    # What stands above a cache that is there already is frozen with or without another one.
    beyond = [cache, *upstream(session, cache)] if cache else []
    paths = {one.id: between(session, one, op) for one in above}
    kept = {id for id, path in paths.items() if path is not None and keeps_elements(path)}
    follow = [one for one in above if one not in beyond and one.id in kept]
    shuffles = (one for one in (*downstream(session, op), *follow) if one.kind == "shuffle")
    mixed_behind = any(map(reshuffles, shuffles))
    moved, stay, movable, mixed = list[Operation](), list[Operation](), True, True
    for one in above[::-1]:
        if one in beyond or not (reshuffles(one) or one.kind == "repeat"):
            continue
        keeps, path = one.id in kept, paths[one.id]
        unbatched = path is not None and all(other.kind not in BATCHING for other in path)
        is_mixed, lists = mixed_behind and unbatched, one.kind == "list_files"
        if lists or (is_mixed and reshuffles(one) and not keeps):
            # It mixes files, say, and can't mix what is made of them. Another one that does
            # follows, so it stays, and what it drew for the first epoch is kept.
            stay.append(one)
            mixed = mixed and is_mixed
        else:
            # It may act on other elements after the operation than above it.
            moved.append(one)
            movable = movable and keeps
    return moved, stay, movable, mixed


def _advice(op: Operation, moved: list[Operation], stay: list[Operation]) -> str:
    advice = f"Put `.cache()` directly after {call_name(op)}."
    if moved:
        names = " and ".join(map(call_name, moved))
        advice = f"Put `.cache()` after {call_name(op)}, and move {names} after it."
    if stay:
        names = " and ".join(map(call_name, stay))
        advice += f" The order of {names} in the first epoch then serves all epochs."
    return advice


def _cache_of(session: Session, op: Operation, *, early: bool) -> _Cache:
    """Describe a cache, tried in whole epochs where the work is over `early`, by first batches."""
    moved, stay, movable, mixed = _to_move(session, op)
    # Data that is zipped with it goes on in the new order of each epoch.
    parted = bool(stay) and any(one.kind == "zip" for one in downstream(session, op))
    above = upstream(session, op)
    functions = [one.function for one in [op, *above] if one.function]
    side_effect = next((each.side_effect for each in functions if each.side_effect), None)
    condition = condition_of_cache(session.ops, op, "epoch")
    effect: EffectOnResults = "same up to order or rounding" if moved or stay else "same results"
    if side_effect or parted or condition is not None:
        effect = "not safe here" if side_effect or parted else "not known"
    advice, edit = _advice(op, moved, stay), None
    elements, cutting = elements_to_cache(session, op), _cutting(session, op)
    untried = "The number of elements in a step was not measured."
    if side_effect:
        untried = f"It calls Python with side effects, which a cache would stop: {side_effect}."
    elif parted:
        untried = "A cache would keep one order of elements that are zipped with others."
    elif not movable:
        untried = (
            "A `shuffle` or `repeat` before it works on different elements from those in a cache."
        )
    elif elements is not None and cutting is None:
        moves = [Move(one.id, after.id) for one, after in zip(moved, [op, *moved], strict=False)]
        check: Check | None = "repeats" if condition is not None else None
        edit = cache_of(op, MISSING_CACHE.id, elements, first=moves, check=check, whole_epoch=early)
    if not mixed:
        condition = also(condition, "one order of the files serves all epochs")
    size, each = cache_bytes(session, op), bytes_each(session, op)
    passes, free = passes_over_data(session), available_bytes(session)
    against = _against(session, passes, size, elements_of_a_pass(session, op))
    possible = _against(session, passes, size or 0.0, None) is None
    if possible and size is None and each and edit is not None:
        most, against = int(free * MEMORY.value / 100.0 / each), None
        fits = f"there are at most {most:,} elements of {each:,.0f} bytes each (half of the free"
        condition = also(condition, f"{fits} memory)")
    if cutting is not None:
        against = (
            f"Take first, then cache: the {place_name(cutting)} leaves out the rest of the data, "
            "so that no cache before it completes."
        )
    only = f" Do this only {condition}." if condition is not None and not side_effect else ""
    return _Cache(
        size,
        possible and not side_effect,
        against,
        {"cache_bytes": size, "free_memory_bytes": free},
        f"{advice}{only}",
        {"effect": effect, "edit": edit, "condition": condition, "untried": untried},
    )
