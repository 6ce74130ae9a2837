"""A cache of what never changes: costly work that is repeated in every epoch."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
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
    upstream,
)
from pipediag.facts.run import FIRST_BATCHES, fills_a_shuffle, long_percent, time_of_epochs
from pipediag.facts.step import class_ms
from pipediag.rules.epoch_start import Bounds, foretold, without_first_batches
from pipediag.rules.relevance import Weight, less_input, weigh, weigh_first_batches
from pipediag.rules.rule import pipeline_rule
from pipediag.session.edits import Change, Check, Edit, Insert, Move
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.tensorflow_names import BATCHING, CACHES, INFINITE_CARDINALITY
from pipediag.vocabulary import EffectOnResults, Scalar

FILL_S = 2.0
LEAST_BATCHES = 8
MEMORY = Threshold("size of the cache", 50.0, "% of the free memory", "tf.data's own budget")


def cache_after(
    session: Session, op: Operation, rule: str, *, first: Iterable[Change] = ()
) -> Edit | None:
    """Return the edit that puts a filled cache after the operation, after the `first` changes.

    None where it is not known how many elements pass in a step.
    """
    elements = elements_to_cache(session, op)
    if elements is None:
        return None
    check: Check | None = "repeats" if condition_of_cache(session.ops, op, "epoch") else None
    return cache_of(op, rule, elements, first=first, check=check)


def cache_of(
    op: Operation, rule: str, elements: int, *, first: Iterable[Change] = (), **given: Any
) -> Edit:
    """Return the edit that puts a cache of so many elements after the operation."""
    return Edit(
        id=f"{rule}:{op.id}",
        label=f"cache after the {place_name(op)}",
        changes=(*first, Insert(op.id, "cache", {"elements": elements})),
        caveat="Measured once the cache is full.",
        **given,
    )


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


_ONE_ROW_EACH = ("map", "shuffle", "prefetch", "with_options", "cache")


def _rows_of_an_epoch(session: Session, op: Operation) -> int | None:
    """Return the most rows that an epoch had, of those seen to their end, where each is an element.

    Readers of files can't say how many elements they hold.
    """
    loop = session.diagnosed_loop()
    if loop is None or not loop.epoch_ends or not loop.batch_size:
        return None
    if loop.keras is not None and loop.keras.steps_per_epoch:
        return None
    below = downstream(session, op)
    batches = [other for other in below if other.kind in BATCHING]
    path = between(session, op, batches[0]) if len(batches) == 1 else None
    if path is None or any(other.kind not in _ONE_ROW_EACH for other in path):
        return None
    if any(other.kind in ("repeat", "take", "unbatch") for other in below):
        return None
    return math.ceil(loop.steps / loop.epoch_ends) * loop.batch_size


def against(
    session: Session, passes: float | None, size: float | None, count: int | None = None
) -> str | None:
    """Return why a cache of that size, or of so many elements, can't be advised, or None."""
    if passes is None:
        return (
            "A cache pays off only if the script reads its data more than once, which is not known."
        )
    if passes <= 1:
        return "The data is read once, so a cache would gain nothing."
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
    fix="Put `.cache()` after the map, and before `shuffle`, `repeat` and anything random. Use "
    "`.cache(path)` for data that doesn't fit in memory; delete that file when data or map change.",
    thresholds=(INPUT_WAIT, OPERATION_SHARE, FIRST_BATCHES, MEMORY),
)
_ENOUGH = ("pass", "inconclusive")


@MISSING_CACHE.found_by
def _check_missing_cache(session: Session) -> list[Finding]:
    of_maps = _of_maps(session)
    if of_maps is None or of_maps.status in _ENOUGH:
        generators = operations(session, "from_generator")
        open_ones = [op for op in generators if _is_open(session, op)]
        costly = [op for op in open_ones if weigh(session, op).status == "fail"]
        filling = [op for op in open_ones if _fills_in_time(session, op) is not None]
        if costly:
            op = max(costly, key=lambda one: delay_ms(session, one) or 0.0)
            of_maps = _of_generator(session, op)
        elif filling:
            of_maps = _of_generator(session, filling[-1])
    return [of_maps] if of_maps is not None else []


def _is_open(session: Session, op: Operation) -> bool:
    return not op.inside_function_of and reaches_the_loop_uncached(session, op)


def _of_maps(session: Session) -> Finding | None:
    every = operations(session, "map")
    maps = [op for op in every if _is_open(session, op) and _gives_the_same(session, op)]
    if not maps:
        return None
    # Of equals, such as those whose costs are unknown, the last: a cache replaces all before it.
    op = max(reversed(maps), key=lambda candidate: delay_ms(session, candidate) or 0.0)
    weight, early = weigh(session, op), False
    if weight.status != "fail":
        # Else the last map that fills a shuffle and did not run any more once that was full.
        idle = (one for one in reversed(maps) if delay_ms(session, one) is None)
        last = next((one for one in idle if fills_a_shuffle(session, one)), None)
        filling = op if fills_a_shuffle(session, op) else last
        percent = long_percent(session)
        if filling is not None and percent is not None:
            # The work is done while a shuffle fills, and the loop waits for that in every epoch.
            op, early = filling, True
            weight = Weight("fail", "", {"first_batches_percent_of_loop": percent})
    op = _after_its_filters(session, op)
    cache = _cache_of(session, op)
    finding = partial(MISSING_CACHE.finding, op=op, weight=weight, evidence=cache.evidence)
    reason = against(session, cache.passes, cache.size, elements_of_a_pass(session, op))
    each, condition = bytes_each(session, op), cache.condition
    edit = replace(cache.edit, whole_epoch=early) if cache.edit is not None else None
    unknown = cache.size is None and against(session, cache.passes, 0.0) is None
    if unknown and each and edit is not None:
        reason, condition = None, _if_it_fits(session, each, condition)
    if weight.status != "fail" and (reason is not None or not weight.undecided):
        status = "pass" if weight.status == "informative" else weight.status
        return finding(status, weight.sentence)
    if reason is not None:
        return finding("informative", reason)
    time = time_of_epochs(session) if early else None
    bounds: Bounds = (None if early else _gain_of_cache(session, op), None)
    if time is not None:
        bounds = without_first_batches(session, time)
    only = "" if condition is None or cache.side_effect else f" Do this only {condition}."
    return finding(
        weight.to_try,
        weight.before(f"{cache.advice}{only}{foretold(time)}"),
        effect=cache.effect,
        edit=edit,
        condition=condition,
        untried=cache.untried,
        part="epoch_start" if early else "steps",
        speedup_at_most=bounds[0],
        for_run=bounds[1],
    )


def _after_its_filters(session: Session, op: Operation) -> Operation:
    """Return the last of the filters that follow at once, so that only what they pass is kept."""
    following = [one for one in downstream(session, op) if op.id in one.parent_ids]
    if (
        len(following) == 1
        and following[0].kind == "filter"
        and _gives_the_same(session, following[0])
    ):
        return _after_its_filters(session, following[0])
    return op


def _gives_the_same(session: Session, op: Operation) -> bool:
    return op.function is not None and not any(map(differs_by_pass, [op, *upstream(session, op)]))


def _fills_in_time(session: Session, op: Operation) -> Weight | None:
    """Return the weight of a generator that fills a shuffle in each epoch, while its first batch is
    waited for; None for one that does not, or where that matters little."""
    passes = passes_over_data(session)
    return weigh_first_batches(session, op, 1.0 / max(1.0, passes or 1.0))


def _of_generator(session: Session, op: Operation) -> Finding | None:
    early = _fills_in_time(session, op)
    cache, each = _cache_of(session, op), bytes_each(session, op)
    if cache.side_effect or against(session, cache.passes, cache.size or 0.0) is not None:
        return None
    finding = partial(
        MISSING_CACHE.finding,
        "informative",
        op=op,
        weight=early or weigh(session, op),
        title="Cache the generator if it yields the same data in every epoch",
        part="steps" if early is None else "epoch_start",
    )
    cut = session.keras is not None and bool(session.keras.steps_per_epoch)
    if cache.size is None and (not each or cut):
        return finding(
            f"A cache after {call_name(op)} could help {cache.condition}. It was not tried "
            "because its size is not known: with `steps_per_epoch`, a generator may never end.",
            evidence=cache.evidence,
        )
    condition = cache.condition or ""
    if cache.size is None and each:
        condition = _if_it_fits(session, each, cache.condition)
    takes = f" It would take {memory_size(cache.size)}." if cache.size is not None else ""
    edit, gain = cache_after(session, op, MISSING_CACHE.id), _gain_of_cache(session, op)
    if early is not None:
        gain = early.for_run.speedup if early.for_run is not None else None
        edit = replace(edit, whole_epoch=True) if edit is not None else None
    return finding(
        f"Put `.cache()` directly after {call_name(op)} {condition}.{takes}",
        evidence={**cache.evidence, "at_most_if_the_same_ratio": gain},
        effect="not known",
        condition=condition,
        edit=edit,
    )


def _if_it_fits(session: Session, each: float, other: str | None) -> str:
    """Return the condition that elements of so many bytes fit into memory, and another one."""
    most = int(available_bytes(session) * MEMORY.value / 100.0 / each)
    fits = (
        f"there are at most {most:,} elements of {each:,.0f} bytes each (half of the free memory)"
    )
    return f"if {fits}" if other is None else f"{other}, and {fits}"


class _Cache(NamedTuple):
    """A cache after an operation, and what stands in its way."""

    size: float | None
    passes: float | None
    condition: str | None
    """What only the user can decide before it is used."""
    side_effect: str | None
    """What Python on the way visibly changes, so that it is no function of its element."""
    evidence: dict[str, Scalar]
    effect: EffectOnResults
    advice: str
    edit: Edit | None
    untried: str


def _cache_of(session: Session, op: Operation) -> _Cache:
    above = upstream(session, op)
    functions = [one.function for one in [op, *above] if one.function]
    cache = next((other for other in above if other.kind in CACHES), None)
    # What stands above a cache that is there already is frozen with or without another one. What is
    # repeated without end ends with what it is zipped with, if the operation ends.
    beyond = [cache, *upstream(session, cache)] if cache else []
    ends = op.cardinality is not None and op.cardinality >= 0
    moved = [
        one
        for one in above[::-1]
        if (reshuffles(one) or one.kind == "repeat")
        and one not in beyond
        and not (ends and one.kind == "repeat" and one.cardinality == INFINITE_CARDINALITY)
    ]
    paths = {one.id: between(session, one, op) for one in moved}
    # These mix files, say, and can't mix what is made of them. Where another one follows that
    # does, they stay, and what they drew for the first epoch is kept.
    mixed_below = any(reshuffles(one) for one in downstream(session, op))
    stay = [
        one
        for one in moved
        if mixed_below
        and reshuffles(one)
        and (path := paths[one.id]) is not None
        and not keeps_elements(path)
    ]
    moved = [one for one in moved if one not in stay]
    size, passes = cache_bytes(session, op), passes_over_data(session)
    condition = condition_of_cache(session.ops, op, "epoch")
    evidence: dict[str, Scalar] = {
        "passes_over_data": "unlimited" if passes == math.inf else passes,
        "cache_bytes": size,
        "free_memory_bytes": available_bytes(session),
    }
    side_effect = next((each.side_effect for each in functions if each.side_effect), None)
    effect: EffectOnResults = "same up to order or rounding" if moved or stay else "same results"
    advice, edit = f"Put `.cache()` directly after {call_name(op)}.", None
    if moved:
        names = " and ".join(call_name(other) for other in moved)
        advice = f"Put `.cache()` after {call_name(op)}, and move {names} after it."
    if stay:
        names = " and ".join(call_name(other) for other in stay)
        advice += f" The order of {names} in the first epoch then serves all epochs."
    untried = "The number of elements in a step was not measured."
    if side_effect:
        untried = f"It calls Python with side effects, which a cache would stop: {side_effect}."
    elif not all((path := paths[one.id]) is not None and keeps_elements(path) for one in moved):
        # These would act on other elements after the operation than above it.
        untried = (
            "A `shuffle` or `repeat` before it works on different elements from those in a cache."
        )
    else:
        places = [op, *moved]
        moves = [Move(one.id, after.id) for one, after in zip(moved, places, strict=False)]
        edit = cache_after(session, op, MISSING_CACHE.id, first=moves)
    if side_effect or condition is not None:
        effect = "not safe here" if side_effect else "not known"
    return _Cache(size, passes, condition, side_effect, evidence, effect, advice, edit, untried)
