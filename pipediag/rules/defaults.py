"""Optimisations of tf.data's own that are switched off."""

from __future__ import annotations

from collections.abc import Iterator

from pipediag.facts.limits import INPUT_WAIT, Threshold
from pipediag.facts.pauses import SHORTEST_EPOCH_S, pauses_of_run
from pipediag.facts.pipeline import operations, option
from pipediag.rules.relevance import weigh_input
from pipediag.rules.rule import pipeline_rule
from pipediag.session.edits import Edit, SetOptions
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.tensorflow_names import DEFAULT_SWITCHES

DISABLED_DEFAULTS = pipeline_rule(
    id="tf-data-defaults",
    title="Switch tf.data's own optimisations back on",
    why="With its defaults on, tf.data runs stateless maps in parallel, appends a prefetch and "
    "tunes both. With them off, it does only what the script says, and in debug mode less: "
    "functions run eagerly, one element at a time, without prefetch and parallel calls.",
    fix="Remove the option, or set it to True. More threads then run during the training step; "
    "without debug mode, breakpoints in mapped functions no longer work.",
    needs=("loop", "breakdown"),
    thresholds=(INPUT_WAIT,),
    untried="Debug mode applies to the whole process and can't be switched off within it.",
)


@DISABLED_DEFAULTS.found_by
def _check_disabled_defaults(session: Session) -> Iterator[Finding]:
    written, off, weight = operations(session), dict[str, str](), weigh_input(session)
    if session.environment.tf_data_debug_mode:
        yield DISABLED_DEFAULTS.weighed(
            weight,
            "Remove `tf.data.experimental.enable_debug_mode()`. Until then, the findings about "
            "the pipeline describe debug mode.",
            title="Switch tf.data's debug mode off",
        )
    for given in (option(session.pipeline, name) for name in DEFAULT_SWITCHES):
        if given is not None and given[1] is False:
            key = given[0].removeprefix("options.").removeprefix("experimental_")
            off[key] = f"{given[0]} = False"
    if session.pipeline is not None and not session.pipeline.autotune_enabled:
        off["autotune.enabled"] = "options.autotune.enabled = False"
    if not written or not off:
        return
    names = list(off)
    label = f"{names[0]} = True" if len(off) == 1 else "tf.data's defaults switched back on"
    edit = Edit(DISABLED_DEFAULTS.id, label, (SetOptions(dict.fromkeys(names, True)),))
    yield DISABLED_DEFAULTS.weighed(
        weight,
        f"Remove `{'`, `'.join(off.values())}`.",
        op=next(iter(operations(session, "with_options")), written[-1]),
        evidence={"switched_off": ", ".join(off.values())},
        edit=edit if weight.worth_trying else None,
    )


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
