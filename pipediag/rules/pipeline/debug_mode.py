"""tf.data's debug mode left on."""

from __future__ import annotations

from pipediag.facts.limits import INPUT_WAIT
from pipediag.rules.relevance import weigh_input
from pipediag.rules.rule import Meta
from pipediag.session.findings import Finding
from pipediag.session.model import Session

META = Meta(
    id="debug-mode",
    name="Debug mode of tf.data",
    title_failed="tf.data runs in debug mode",
    title_passed="tf.data's debug mode is off",
    looks_at="Whether the script called tf.data.experimental.enable_debug_mode(), and the input "
    "wait.",
    why="Debug mode runs mapped functions eagerly, one element at a time, and drops every prefetch "
    "and parallel call.",
    edit="Remove the call.",
    cost="Breakpoints within mapped functions no longer work.",
    bound="None: the pipeline outside of debug mode was not seen.",
    needs=("loop", "breakdown"),
    thresholds=(INPUT_WAIT,),
    severity="warn",
    effect_on_results="same results",
    frees=("input_wait",),
    untried="Debug mode holds for the whole process and can't be left again within it.",
)


def check(session: Session) -> list[Finding]:
    """One finding on the script as a whole."""
    if not session.environment.tf_data_debug_mode:
        return [META.finding("pass", "")]
    weight = weigh_input(session)
    return [
        META.finding(
            weight.status,
            "Remove `tf.data.experimental.enable_debug_mode()`; the findings on the pipeline "
            "describe debug mode until then."
            if weight.status == "fail"
            else weight.sentence,
            evidence=weight.evidence,
        )
    ]
