"""Optimisations of tf.data's own that are switched off."""

from __future__ import annotations

from collections.abc import Iterator

from pipediag.facts.limits import INPUT_WAIT, Threshold
from pipediag.facts.pauses import SHORTEST_EPOCH_S, pauses_of_run
from pipediag.facts.pipeline import (
    call_name,
    last_operation,
    operations,
    option,
    place_name,
    prefetch_switched_off,
)
from pipediag.rules.relevance import weigh_input
from pipediag.rules.rule import pipeline_rule
from pipediag.session.edits import AUTOTUNE, Edit, Insert, SetOptions
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.tensorflow_names import DEFAULT_SWITCHES, works_ahead

MISSING_PREFETCH = pipeline_rule(
    id="tf-data-defaults",
    title="Prefetch at the end of the pipeline",
    why="TensorFlow appends a prefetch to a pipeline that ends with a synchronous operation, "
    "unless an option prevents it. After a parallel map, no prefetch is needed.",
    fix="End the pipeline with `.prefetch(tf.data.AUTOTUNE)`, or switch the defaults back on. "
    "Either takes memory for a few more batches.",
    thresholds=(INPUT_WAIT,),
)


@MISSING_PREFETCH.found_by
def _check_missing_prefetch(session: Session) -> Iterator[Finding]:
    path = [op for op in operations(session) if op.inside_function_of is None]
    written = [op for op in path if op.kind != "with_options"]
    switch = prefetch_switched_off(session, session.pipeline)
    if not written or switch is None:
        return
    last, weight = written[-1], weigh_input(session)
    injected = any(
        op.inserted_by_tensorflow and "prefetch" in op.kind.lower() for op in session.ops
    )
    name = (session.operation(last.fused_into) or last).iterator_name or ""
    if last.kind == "prefetch" or injected or works_ahead(name):
        return
    ahead = Insert((last_operation(session) or last).id, "prefetch", {"buffer_size": AUTOTUNE})
    label = f"prefetch(AUTOTUNE) after the {place_name(last)}"
    edit = MISSING_PREFETCH.edit(last, label, ahead)
    can_try = weight.worth_trying and not session.environment.tf_data_debug_mode
    yield MISSING_PREFETCH.weighed(
        weight,
        f"Add `.prefetch(tf.data.AUTOTUNE)` after {call_name(last)}: TensorFlow adds none with "
        f"`{switch}`.",
        op=last,
        evidence={"switched_off_by": switch},
        edit=edit if can_try else None,
        untried="Debug mode drops every prefetch and can't be switched off within the process.",
    )


DISABLED_DEFAULTS = pipeline_rule(
    id="tf-data-defaults",
    title="Switch tf.data's own optimisations back on",
    why="With its defaults on, tf.data runs stateless maps in parallel, appends a prefetch and "
    "tunes both. With them off, it does only what the script says.",
    fix="Remove the option, or set it to True. More threads then run during the training step.",
    needs=("loop", "pipeline", "breakdown"),
    thresholds=(INPUT_WAIT,),
)


@DISABLED_DEFAULTS.found_by
def _check_disabled_defaults(session: Session) -> Iterator[Finding]:
    written, off = operations(session), dict[str, str]()
    for given in (option(session.pipeline, name) for name in DEFAULT_SWITCHES):
        if given is not None and given[1] is False:
            key = given[0].removeprefix("options.").removeprefix("experimental_")
            off[key] = f"{given[0]} = False"
    if session.pipeline is not None and not session.pipeline.autotune_enabled:
        off["autotune.enabled"] = "options.autotune.enabled = False"
    if not written or not off:
        return
    weight, names = weigh_input(session), list(off)
    label = f"{names[0]} = True" if len(off) == 1 else "tf.data's defaults switched back on"
    edit = Edit(DISABLED_DEFAULTS.id, label, (SetOptions(dict.fromkeys(names, True)),))
    yield DISABLED_DEFAULTS.weighed(
        weight,
        f"Remove `{'`, `'.join(off.values())}`.",
        op=next(iter(operations(session, "with_options")), written[-1]),
        evidence={"switched_off": ", ".join(off.values())},
        edit=edit if weight.worth_trying else None,
    )


DEBUG_MODE = pipeline_rule(
    id="tf-data-defaults",
    title="Switch tf.data's debug mode off",
    why="Debug mode runs mapped functions eagerly, one element at a time, and drops every prefetch "
    "and parallel call.",
    fix="Remove `tf.data.experimental.enable_debug_mode()`. Breakpoints in mapped functions no "
    "longer work.",
    needs=("loop", "breakdown"),
    thresholds=(INPUT_WAIT,),
    untried="Debug mode applies to the whole process and can't be switched off within it.",
)


@DEBUG_MODE.found_by
def _check_debug_mode(session: Session) -> Iterator[Finding]:
    if session.environment.tf_data_debug_mode:
        weight = weigh_input(session)
        advice = (
            "Remove `tf.data.experimental.enable_debug_mode()`. Until then, the findings about "
            "the pipeline describe debug mode."
        )
        yield DEBUG_MODE.weighed(weight, advice)


FREED = Threshold("epochs", SHORTEST_EPOCH_S, "s", "own choice: shorter ones pause briefly")
ITERATOR_PAUSES = pipeline_rule(
    id="iterator-pauses",
    title="Avoid pauses when iterators are freed",
    why="When TensorFlow frees an epoch's iterator, it waits for the thread that tunes it. That "
    "thread may sleep for as long as the epoch lasted, up to a minute. A `fit` with epochs of 4 s "
    "paused for 0.8 to 2.4 s at 7 of 9 epoch ends, and at none with tuning off.",
    fix="Set `options.autotune.enabled = False` for the training data: `AUTOTUNE` then means one "
    "call per CPU. Or use one iterator for all epochs: `.repeat()` with `steps_per_epoch`.",
    needs=("loop", "run", "pipeline"),
    thresholds=(FREED,),
    frees=(),
)


@ITERATOR_PAUSES.found_by
def _check_iterator_pauses(session: Session) -> Iterator[Finding]:
    pauses, written = pauses_of_run(session), operations(session)
    if pauses is None or not written:
        return
    label = "options.autotune.enabled = False"
    yield ITERATOR_PAUSES.finding(
        "informative",
        f"Set `{label}` for the training data. Freeing the iterator of an epoch of "
        f"{pauses.life_s:.3g} s may pause training for up to {pauses.longest_s[1]:.2g} s.",
        op=written[-1],
        evidence={
            "epoch_s": pauses.life_s,
            "pause_at_most_s": pauses.longest_s[1],
            "gain_if_half_of_them_pause": 1.0
            + pauses.epochs * pauses.expected_s / max(pauses.rest_s, 1e-3),
        },
        edit=Edit(ITERATOR_PAUSES.id, label, (SetOptions({"autotune.enabled": False}),)),
        part="epoch_end",
    )
