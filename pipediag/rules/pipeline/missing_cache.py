"""Costly work that gives the same result in every epoch and is done again in each."""

from __future__ import annotations

import math
from collections.abc import Mapping

from pipediag.facts.amounts import memory_size
from pipediag.facts.epochs import FIRST_BATCHES, fills_a_shuffle
from pipediag.facts.graph_ops import condition_of_cache, differs_by_pass
from pipediag.facts.later_epochs import long_percent, time_of_epochs
from pipediag.facts.limits import INPUT_WAIT, OPERATION_SHARE
from pipediag.facts.machine import available_bytes
from pipediag.facts.pipeline import (
    between,
    call_name,
    delay_ms,
    keeps_elements,
    operations,
    passes_over_data,
    reaches_the_loop,
    reshuffles,
    upstream,
)
from pipediag.rules.pipeline.cache_gain import gain_of_cache
from pipediag.rules.pipeline.cache_size import (
    DISK,
    MEMORY,
    against,
    cache_bytes,
    fits_in_memory,
    room,
)
from pipediag.rules.pipeline.cached_elements import cache_behind, elements_of_a_pass
from pipediag.rules.pipeline.cached_generator import of_generator
from pipediag.rules.pipeline.epoch_ends import (
    foretold,
    run_without_first_batches,
    without_first_batches,
)
from pipediag.rules.relevance import Weight, contested_by_percent, weigh
from pipediag.rules.rule import Meta
from pipediag.session.edits import Edit, Move
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.tensorflow_names import CACHES, INFINITE_CARDINALITY
from pipediag.vocabulary import EffectOnResults, Scalar

META = Meta(
    id="missing-cache",
    name="Missing cache",
    title_failed="Costly work that never changes is repeated in every epoch",
    title_passed="Repeated work is cached or cheap",
    looks_at="Costly maps that draw no random numbers, in a loop of several epochs without a cache "
    "behind them on the way to the training loop (one above them or on another branch keeps none "
    "of their results); and the bytes of all their elements, counted or by the size of the files "
    "read, against the available memory. A costly from_generator, too: whether it yields the same "
    "data in every epoch only you know, so its gain is given with that condition.",
    why="From the second epoch on a cache replaces everything above it.",
    edit="`.cache()` behind the map and above shuffle, repeat and anything random; `.cache(path)` "
    "where the elements don't fit in memory. A shuffle may stay above it with "
    "`reshuffle_each_iteration=False`, where one order will do for all epochs.",
    cost="Memory or disk for every element. A file outlives the run: delete it when the data or "
    "the map changes. The first epoch gains nothing. A function that isn't "
    "deterministic would be frozen at its first results.",
    bound="With the cache full, as a trial measures it; the first epoch gains "
    "nothing. Where no cache can be put in by itself: the input wait falls to the "
    "delays of what stands behind it, in the mean over the loop's epochs.",
    needs=("loop", "pipeline", "steps", "breakdown"),
    thresholds=(INPUT_WAIT, OPERATION_SHARE, FIRST_BATCHES, MEMORY, DISK),
    severity="warn",
    effect_on_results="same results",
    frees=("input_wait",),
    tried_when_informing=True,
    tried_where="Also where a repeated batch contests the input wait.",
)


_NONE = "No map that gives the same in every epoch stands without a cache behind it."


def check(session: Session) -> list[Finding]:
    """A finding on the last costly map that could be cached, or else on a generator."""
    found = _of_maps(session)
    if any(finding.status not in ("pass", "inconclusive") for finding in found):
        return found
    generator = of_generator(META, session)
    return [generator] if generator is not None else found


def _of_maps(session: Session) -> list[Finding]:
    every = operations(session, "map")
    maps = [op for op in every if _cacheable(session, op)]
    if not maps:
        return [META.finding("pass", _NONE, evidence={"maps": len(every)})]
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
        return [META.finding(status, weight.sentence, op=op, evidence=evidence)]
    if reason is not None:
        return [META.finding("informative", reason, op=op, evidence=evidence)]
    assert size is not None
    on_disk = not fits_in_memory(session, size)
    if contested:
        return [_to_settle(session, op, size, evidence, on_disk=on_disk)]
    if weight is between:
        return [_before_the_steps(session, op, size, evidence, on_disk=on_disk)]
    advice = _advice(session, op, size, on_disk=on_disk)
    return [
        META.finding(
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
    return META.finding(
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
    return META.finding(
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
    return cache_behind(session, op, META.id, first=moves, on_disk=on_disk, whole_epoch=whole_epoch)


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
