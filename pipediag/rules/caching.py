"""A cache of what never changes: costly work that is repeated in every epoch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

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
    reaches_the_loop,
    reshuffles,
    upstream,
)
from pipediag.facts.run import (
    FIRST_BATCHES,
    fills_a_shuffle,
    long_percent,
    seen_time,
    time_of_epochs,
)
from pipediag.facts.step import class_ms
from pipediag.rules.bounds import less_input
from pipediag.rules.relevance import Weight, contested_by_percent, weigh
from pipediag.rules.rule import Meta
from pipediag.rules.shuffling import foretold, run_without_first_batches, without_first_batches
from pipediag.session.edits import Change, Edit, Insert, Move
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.tensorflow_names import CACHES, INFINITE_CARDINALITY
from pipediag.vocabulary import EffectOnResults, Scalar

FILL_S = 2.0
LEAST_BATCHES = 8
FULL = "Measured once the cache is full."
_ON_DISK = (
    "Measured once the cache is full, on a part of it in the directory for temporary files, whose "
    "disk may not be the one that you choose; read from the disk, as the whole of it would be."
)


def cache_behind(
    session: Session,
    op: Operation,
    rule: str,
    *,
    first: Iterable[Change] = (),
    on_disk: bool = False,
    whole_epoch: bool = False,
) -> Edit | None:
    """Return the edit that puts a filled cache behind the operation, after the `first` changes.

    None where it is not known how many elements pass in a step.
    """
    elements = elements_to_cache(session, op)
    if elements is None:
        return None
    where: dict[str, Scalar] = {"on_disk": True} if on_disk else {}
    return Edit(
        id=f"{rule}:{op.id}",
        label=f"cache{' on disk' if on_disk else ''} behind the {place_name(op)}",
        changes=(*first, Insert(op.id, "cache", {"elements": elements, **where})),
        check=None if _condition(session, op) is None else "repeats",
        caveat=_ON_DISK if on_disk else FULL,
        whole_epoch=whole_epoch,
    )


def elements_to_cache(session: Session, op: Operation) -> int | None:
    """What two seconds make at the rate of this run; at least eight batches, at most all.

    All where none pass in a step, as they do where a shuffle has taken them before.
    """
    if session.steps is None or not op.elements:
        return elements_of_a_pass(session, op) if fills_a_shuffle(session, op) else None
    in_time = FILL_S * 1000.0 / session.steps.mean_ms * op.elements
    wanted = math.ceil(max(in_time, LEAST_BATCHES * op.elements))
    number = elements_of_a_pass(session, op)
    return wanted if number is None else min(wanted, number)


def elements_of_a_pass(session: Session, op: Operation) -> int | None:
    """Elements of one pass at this operation, or as many as reach it at most; None if unknown."""
    for other in [op, *upstream(session, op)]:
        if other.kind != "repeat" and other.cardinality is not None and other.cardinality >= 0:
            return other.cardinality
        if other.kind not in CACHES and not keeps_elements([other]):
            return None
    return None


def elements_seen_in_a_pass(session: Session, op: Operation) -> int | None:
    """Elements of one pass at this operation by the epochs that were seen to their end.

    None where none was, and where `steps_per_epoch` cuts epochs out of data whose end is unknown.
    """
    loop, run = session.diagnosed_loop(), session.run
    if loop is None or run is None or not run.epochs_seen or not op.elements:
        return None
    if seen_time(session) is None or (loop.keras is not None and loop.keras.steps_per_epoch):
        return None
    return math.ceil(loop.steps / run.epochs_seen * op.elements)


MEMORY = Threshold(
    "size of the cache",
    50.0,
    "% of the available memory",
    "TensorFlow's own memory budget for tf.data is half of what is available; Plumber allows 90 %",
)
DISK = Threshold(
    "size of a cache on disk",
    50.0,
    "% of the free disk",
    "own choice: the script's own files need room too",
)


def against(
    session: Session, passes: float | None, size: float | None, count: int | None = None
) -> str | None:
    """Why a cache of that size, or of so many elements, can't be advised, or None."""
    if passes is None:
        return (
            "Whether the script reads its data more than once is not known; a cache pays only then."
        )
    if passes <= 1:
        return "The data is read once, so a cache would gain nothing."
    if size is None and count is not None:
        return (
            f"A cache could help. It would hold {count:,} elements, whose size was not measured: "
            "put `.cache()` behind this operation if all of them fit into memory."
        )
    if size is None:
        return (
            "A cache could help, but how large it would be is not known: count the elements first."
        )
    if not fits_in_memory(session, size) and not _fits_on_disk(session, size):
        return (
            f"A cache would take {memory_size(size)}, {room(session)}. Cache to a large and "
            "fast disk with `.cache(path)`, or store the results once."
        )
    return None


def fits_in_memory(session: Session, size: float) -> bool:
    """Whether so many bytes leave half of what is available to everything else."""
    return size <= available_bytes(session) * MEMORY.value / 100.0


def _fits_on_disk(session: Session, size: float) -> bool:
    free = session.environment.free_disk_bytes
    return free is not None and size <= free * DISK.value / 100.0


def room(session: Session) -> str:
    """How much there is of what a cache could lie in, as a part of a sentence."""
    free = session.environment.free_disk_bytes
    disk = "" if free is None else f"; {memory_size(free)} are free on disk"
    memory = memory_size(available_bytes(session))
    return f"more than half of the {memory} of memory that are available{disk}"


def cache_bytes(session: Session, op: Operation) -> float | None:
    """What all elements of one pass take at this operation."""
    each = bytes_each(session, op)
    if each is None:
        return None
    count = elements_of_a_pass(session, op)
    return _by_files(session, op, each) if count is None else float(count * each)


def _by_files(session: Session, op: Operation, each: float) -> float | None:
    """The bytes of the files that are read, as many times as an element grows on the way here.

    A reader can't say how many elements its files hold.
    """
    above = upstream(session, op)
    source = above[-1] if above else op
    held, read = source.parameters.get("file_bytes"), bytes_each(session, source)
    between_them = [other for other in [op, *above[:-1]] if other.kind not in CACHES]
    if not isinstance(held, int) or not read or not keeps_elements(between_them):
        return None
    return held * each / read


def bytes_each(session: Session, op: Operation) -> float | None:
    """What one element takes at this operation."""
    at = measured_at(session, op)
    # After fusion with a batch the measured bytes are those of batches.
    return op.element_bytes or (at.bytes_per_element if at is op else None)


def gain_of_cache(session: Session, op: Operation) -> float | None:
    """Return the most that a cache buys once it is full: the delays of the operation and of all
    above it end."""
    cost_at = measured_at(session, op).id
    left = sum(
        delay_ms(session, other) or 0.0
        for other in downstream(session, op)
        if measured_at(session, other).id != cost_at
    )
    wait_ms = class_ms(session, ["input_wait"])
    return less_input(session, max(0.0, wait_ms - left), on_cpu=False)


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
    hours = _hours_to_fill(session, op)
    evidence["hours_to_fill_memory"] = hours if size is None else None
    bounded = size is not None or (hours is not None and hours >= LONG_EPOCH_H)
    condition = _SAME if bounded else f"{_SAME}, and {_fits(session, op)}"
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


LONG_EPOCH_H = 1.0
"""An epoch whose length is unknown is taken to be shorter, in hours, when a cache of it is judged.
Own choice: what takes longer to read is seldom read twice."""


def _hours_to_fill(session: Session, op: Operation) -> float | None:
    """Return how long elements are read, at the pace of this run, until they fill half of the free
    memory."""
    each = bytes_each(session, op)
    if session.steps is None or not op.elements or not each:
        return None
    most = available_bytes(session) * MEMORY.value / 100.0 / each
    return most / op.elements * session.steps.mean_ms / 1000.0 / 3600.0


def _costliest(session: Session) -> Operation | None:
    found = [op for op in operations(session, "from_generator") if _counts(session, op)]
    return max(found, key=lambda one: delay_ms(session, one) or 0.0, default=None)


def _counts(session: Session, op: Operation) -> bool:
    if op.inside_function_of or not reaches_the_loop(session, op, without=CACHES):
        return False
    return weigh(session, op).status == "fail"


MISSING_CACHE = Meta(
    id="missing-cache",
    name="Missing cache",
    title_failed="Costly work that never changes is repeated in every epoch",
    title_passed="Repeated work is cached or cheap",
    why="From the second epoch on a cache replaces everything above it.",
    edit="`.cache()` behind the map and above shuffle, repeat and anything random; `.cache(path)` "
    "where the elements don't fit in memory. A shuffle may stay above it with "
    "`reshuffle_each_iteration=False`, where one order will do for all epochs.",
    cost="Memory or disk for every element. A file outlives the run: delete it when the data or "
    "the map changes.",
    needs=("loop", "pipeline", "steps", "breakdown"),
    thresholds=(INPUT_WAIT, OPERATION_SHARE, FIRST_BATCHES, MEMORY, DISK),
    severity="warn",
    effect_on_results="same results",
    frees=("input_wait",),
    tried_when_informing=True,
)


_NONE = "No map that gives the same in every epoch stands without a cache behind it."


def check_missing_cache(session: Session) -> list[Finding]:
    """A finding on the last costly map that could be cached, or else on a generator."""
    found = _of_maps(session)
    if any(finding.status not in ("pass", "inconclusive") for finding in found):
        return found
    generator = of_generator(MISSING_CACHE, session)
    return [generator] if generator is not None else found


def _of_maps(session: Session) -> list[Finding]:
    every = operations(session, "map")
    maps = [op for op in every if _cacheable(session, op)]
    if not maps:
        return [MISSING_CACHE.finding("pass", _NONE, evidence={"maps": len(every)})]
    # Of equals, such as those whose costs are unknown, the last: a cache replaces all above it.
    op = max(reversed(maps), key=lambda candidate: delay_ms(session, candidate) or 0.0)
    weight = weigh(session, op)
    filling = op if fills_a_shuffle(session, op) else _run_out(session, maps)
    between = _between_epochs(session) if weight.status != "fail" else None
    if filling is not None and between is not None:
        op, weight = filling, between
    passes = passes_over_data(session)
    size = cache_bytes(session, op)
    evidence = {
        **weight.evidence,
        "passes_over_data": "unlimited" if passes == math.inf else passes,
        "cache_bytes": size,
        "available_bytes": available_bytes(session),
        "free_disk_bytes": session.environment.free_disk_bytes,
    }
    contested = _is_contested(session, op, weight)
    undecided = weight.undecided and not contested
    reason = against(session, passes, size, elements_of_a_pass(session, op))
    if weight.status != "fail" and ((not contested and not undecided) or reason is not None):
        status = "pass" if weight.status == "informative" else weight.status
        return [MISSING_CACHE.finding(status, weight.sentence, op=op, evidence=evidence)]
    if reason is not None:
        return [MISSING_CACHE.finding("informative", reason, op=op, evidence=evidence)]
    assert size is not None
    on_disk = not fits_in_memory(session, size)
    if contested:
        return [_to_settle(session, op, size, evidence, on_disk=on_disk)]
    if weight is between:
        return [_before_the_steps(session, op, size, evidence, on_disk=on_disk)]
    advice = _advice(session, op, size, on_disk=on_disk)
    return [
        MISSING_CACHE.finding(
            weight.to_try,
            f"{weight.sentence} {advice}".lstrip(),
            op=op,
            evidence=evidence,
            speedup_at_most=None if on_disk else gain_of_cache(session, op),
            effect=_effect(session, op),
            edit=_edit(session, op, on_disk=on_disk),
            condition=_condition(session, op),
            untried=_untried(session, op),
        )
    ]


def _is_contested(session: Session, op: Operation, weight: Weight) -> bool:
    """Whether the map would be worth a cache if a repeated batch is right on the wait."""
    percent = weight.evidence.get("delay_percent_of_step")
    if weight.status != "informative":
        return False
    relevant = isinstance(percent, float) and percent >= OPERATION_SHARE.value
    can_be_tried = _edit(session, op, on_disk=False) is not None
    return relevant and can_be_tried and contested_by_percent(session) is not None


def _to_settle(
    session: Session, op: Operation, size: float, evidence: Mapping[str, Scalar], *, on_disk: bool
) -> Finding:
    """Where two clocks differ on the wait, a trial says which is right; nothing is predicted."""
    share = evidence["input_wait_percent"]
    contested = contested_by_percent(session)
    return MISSING_CACHE.finding(
        "informative",
        f"{_advice(session, op, size, on_disk=on_disk)} tf.data's clock sees {share:.1f} % input "
        f"wait, a repeated batch makes the step {contested:.0f} % shorter: a trial tells "
        "which of them is right.",
        op=op,
        title="Two measurements differ on whether the step waits for what a cache would keep",
        evidence=evidence,
        effect=_effect(session, op),
        condition=_condition(session, op),
        edit=_edit(session, op, on_disk=on_disk),
    )


def _run_out(session: Session, maps: list[Operation]) -> Operation | None:
    """The last of those that fill a shuffle and did not run any more once that was full."""
    fills = [op for op in maps if fills_a_shuffle(session, op) and delay_ms(session, op) is None]
    return fills[-1] if fills else None


def _between_epochs(session: Session) -> Weight | None:
    """The work is done while a shuffle fills, where the loop waits for that in every epoch."""
    percent = long_percent(session)
    if percent is None:
        return None
    return Weight("fail", "", {"first_batch_percent_of_loop": percent})


def _before_the_steps(
    session: Session, op: Operation, size: float, evidence: Mapping[str, Scalar], *, on_disk: bool
) -> Finding:
    """The same advice where the work lies between the epochs: whole ones have to be tried."""
    time = time_of_epochs(session)
    known = time is not None and not on_disk
    return MISSING_CACHE.finding(
        "fail",
        _advice(session, op, size, on_disk=on_disk) + foretold(time),
        op=op,
        evidence=evidence,
        speedup_at_most=without_first_batches(session, time) if time and known else None,
        effect=_effect(session, op),
        edit=_edit(session, op, on_disk=on_disk, whole_epoch=True),
        condition=_condition(session, op),
        untried=_untried(session, op),
        part="epoch_start",
        for_run=run_without_first_batches(session, time) if time and known else None,
    )


def _effect(session: Session, op: Operation) -> EffectOnResults:
    if _side_effect(session, op):
        return "not safe here"
    if _condition(session, op) is not None:
        return "not known"
    return "same up to order or rounding" if _moved(session, op) else "same results"


def _edit(
    session: Session, op: Operation, *, on_disk: bool, whole_epoch: bool = False
) -> Edit | None:
    """A cache of a part of the data behind the map, and what must not be frozen behind it."""
    moved = _moved(session, op)
    if _side_effect(session, op) or not _can_move(session, op, moved):
        return None
    moves = [Move(one.id, after.id) for one, after in zip(moved, [op, *moved], strict=False)]
    return cache_behind(
        session, op, MISSING_CACHE.id, first=moves, on_disk=on_disk, whole_epoch=whole_epoch
    )


def _moved(session: Session, op: Operation) -> list[Operation]:
    """What a cache behind the map would freeze or never end on, in the order of the data.

    What stands above a cache that is there already is frozen with or without another one.
    """
    above = upstream(session, op)
    held = _held_above(session, op)
    beyond = [held, *upstream(session, held)] if held else []
    return [
        other
        for other in above[::-1]
        if (reshuffles(other) or other.kind == "repeat")
        and other not in beyond
        and not _ended(other, op)
    ]


def _ended(repeat: Operation, op: Operation) -> bool:
    """Whether what is repeated without end ends above the operation, as with what it is zipped
    with: a cache behind that ends, too."""
    endless = repeat.kind == "repeat" and repeat.cardinality == INFINITE_CARDINALITY
    return endless and op.cardinality is not None and op.cardinality >= 0


def _held_above(session: Session, op: Operation) -> Operation | None:
    """The nearest cache above the operation."""
    return next((other for other in upstream(session, op) if other.kind in CACHES), None)


def _can_move(session: Session, op: Operation, moved: list[Operation]) -> bool:
    """Whether those would act on the same elements behind the map as above it."""
    paths = [between(session, other, op) for other in moved]
    return all(path is not None and keeps_elements(path) for path in paths)


def _untried(session: Session, op: Operation) -> str:
    if changes := _side_effect(session, op):
        return f"It calls Python with side effects, which a cache would end: {changes}."
    if not _can_move(session, op, _moved(session, op)):
        return (
            "A shuffle or repeat above it works on other elements than a cache would hold, so it "
            "can't simply be moved behind."
        )
    return "How many elements pass in a step was not measured."


def _cacheable(session: Session, op: Operation) -> bool:
    above = [op, *upstream(session, op)]
    if op.inside_function_of or not reaches_the_loop(session, op, without=CACHES):
        return False
    return op.function is not None and not any(map(differs_by_pass, above))


def _side_effect(session: Session, op: Operation) -> str | None:
    """What Python on the way visibly changes, so that it is no function of its element alone."""
    functions = [other.function for other in [op, *upstream(session, op)] if other.function]
    return next((each.side_effect for each in functions if each.side_effect), None)


def _condition(session: Session, op: Operation) -> str | None:
    ops = session.pipeline.ops if session.pipeline else ()
    return condition_of_cache(ops, op, "epoch")


def _advice(session: Session, op: Operation, size: float, *, on_disk: bool) -> str:
    moved = _moved(session, op)
    cache = "`.cache(path)`, on a fast disk," if on_disk else "`.cache()`"
    if moved:
        names = " and ".join(call_name(other) for other in moved)
        advice = f"Put {cache} behind {call_name(op)}, and move {names} behind the cache."
        if all(map(reshuffles, moved)) and not _can_move(session, op, moved):
            advice += (
                " Where one order will do for all epochs, `reshuffle_each_iteration=False` lets "
                "the shuffle stay where it is."
            )
    else:
        advice = f"Put {cache} directly behind {call_name(op)}."
    held = _held_above(session, op)
    if held is not None:
        advice += f" The {call_name(held)} stands above it and keeps none of its results."
    if on_disk:
        advice += f" It would take {memory_size(size)}, {room(session)}."
    if changes := _side_effect(session, op):
        advice += f" It calls Python with side effects ({changes}), which a cache would end."
    elif (condition := _condition(session, op)) is not None:
        advice += f" Do so only {condition}."
    return advice
