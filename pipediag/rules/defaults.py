"""Optimisations of tf.data's own that are switched off."""

from __future__ import annotations

from dataclasses import replace

from pipediag.facts.limits import INPUT_WAIT
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
from pipediag.session.pipeline import Operation
from pipediag.tensorflow_names import DEFAULT_SWITCHES, works_ahead

MISSING_PREFETCH = pipeline_rule(
    id="tf-data-defaults",
    name="Missing prefetch",
    title_failed="Prefetch at the end, as TensorFlow was kept from it",
    title_passed="Batches are made ahead of the step",
    why="TensorFlow appends a prefetch to a pipeline that ends with a synchronous operation, and "
    "needs none behind a parallel map or a fused map and batch. Adding one by hand then changed "
    "nothing (1.00 times over four rounds).",
    edit="`.prefetch(tf.data.AUTOTUNE)` at the end, or the defaults back on.",
    cost="A few more batches in memory.",
    thresholds=(INPUT_WAIT,),
)
DISABLED_DEFAULTS = replace(
    MISSING_PREFETCH,
    name="Disabled defaults",
    title_failed="Leave tf.data's own optimisations on",
    title_passed="tf.data's own optimisations are on",
    why="With its defaults on, tf.data makes stateless maps parallel, appends a prefetch and tunes "
    "both; with them off it does only what is written.",
    edit="Remove the option, or set it to True.",
    cost="More elements in memory and more threads at work beside the training step.",
    needs=("loop", "pipeline", "breakdown"),
)
DEBUG_MODE = replace(
    MISSING_PREFETCH,
    name="Debug mode of tf.data",
    title_failed="Leave tf.data's debug mode off",
    title_passed="tf.data's debug mode is off",
    why="Debug mode runs mapped functions eagerly, one element at a time, and drops every prefetch "
    "and parallel call.",
    edit="Remove the call.",
    cost="Breakpoints within mapped functions no longer work.",
    needs=("loop", "breakdown"),
    tried_when_informing=False,
    untried="Debug mode holds for the whole process and can't be left again within it.",
)


def check_missing_prefetch(session: Session) -> list[Finding]:
    """Return a finding on the end of the pipeline."""
    path = [op for op in operations(session) if op.inside_function_of is None]
    written = [op for op in path if op.kind != "with_options"]
    if not written:
        reason = "The framework built the whole pipeline."
        return [MISSING_PREFETCH.finding("not-applicable", reason)]
    last = written[-1]
    ahead, switch = _made_ahead(session, last), prefetch_switched_off(session, session.pipeline)
    if ahead is not None or switch is None:
        reason = ahead or "TensorFlow's defaults are on, and these append a prefetch."
        return [MISSING_PREFETCH.finding("pass", reason, op=last)]
    weight, end = weigh_input(session), last_operation(session) or last
    advice = (
        f"`{switch}` keeps TensorFlow from prefetching: end with `.prefetch(tf.data.AUTOTUNE)` "
        f"behind {call_name(last)}."
    )
    edit = Edit(
        id=f"{MISSING_PREFETCH.id}:{last.id}",
        label=f"prefetch(AUTOTUNE) behind the {place_name(last)}",
        changes=(Insert(end.id, "prefetch", {"buffer_size": AUTOTUNE}),),
    )
    can_try = weight.worth_trying and not session.environment.tf_data_debug_mode
    return [
        MISSING_PREFETCH.finding(
            weight.status,
            advice if weight.status == "fail" else weight.sentence,
            op=last,
            evidence={**weight.evidence, "switched_off_by": switch},
            edit=edit if can_try else None,
            untried="Debug mode drops every prefetch and can't be left within the process.",
        )
    ]


def _made_ahead(session: Session, last: Operation) -> str | None:
    """Return why batches are made ahead of the step, as a sentence, or None."""
    ops = session.pipeline.ops if session.pipeline else []
    if last.kind == "prefetch":
        return "The pipeline ends with a prefetch of its own."
    if any(op.inserted_by_tensorflow and "prefetch" in op.kind.lower() for op in ops):
        return "TensorFlow has injected a prefetch at the end: adding one gains nothing."
    name = (session.operation(last.fused_into) or last).iterator_name or ""
    if works_ahead(name):
        return f"The last operation runs as {name}, which works ahead without a prefetch."
    return None


def check_disabled_defaults(session: Session) -> list[Finding]:
    """Return a finding on all options together."""
    written = operations(session)
    if not written:
        reason = "The framework built the pipeline and chose its options on purpose."
        return [DISABLED_DEFAULTS.finding("not-applicable", reason)]
    off = _switched_off(session)
    if not off:
        return []
    weight, names = weigh_input(session), list(off)
    label = f"{names[0]} = True" if len(off) == 1 else "tf.data's defaults switched on again"
    edit = Edit(DISABLED_DEFAULTS.id, label, (SetOptions(dict.fromkeys(names, True)),))
    return [
        DISABLED_DEFAULTS.finding(
            weight.status,
            f"Remove `{'`, `'.join(off.values())}`."
            if weight.status == "fail"
            else weight.sentence,
            op=next(iter(operations(session, "with_options")), written[-1]),
            evidence={**weight.evidence, "switched_off": ", ".join(off.values())},
            edit=edit if weight.worth_trying else None,
        )
    ]


def _switched_off(session: Session) -> dict[str, str]:
    """Return the options that are off, as a session names them, and as they are written."""
    off: dict[str, str] = {}
    for name in DEFAULT_SWITCHES:
        given = option(session.pipeline, name)
        if given is not None and given[1] is False:
            key = given[0].removeprefix("options.").removeprefix("experimental_")
            off[key] = f"{given[0]} = False"
    if session.pipeline is not None and not session.pipeline.autotune_enabled:
        off["autotune.enabled"] = "options.autotune.enabled = False"
    return off


def check_debug_mode(session: Session) -> list[Finding]:
    """Return a finding on the script as a whole."""
    if not session.environment.tf_data_debug_mode:
        return []
    weight = weigh_input(session)
    advice = (
        "Remove `tf.data.experimental.enable_debug_mode()`; the findings on the pipeline describe "
        "debug mode until then."
    )
    said = advice if weight.status == "fail" else weight.sentence
    return [DEBUG_MODE.finding(weight.status, said, evidence=weight.evidence)]
