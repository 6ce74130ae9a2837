"""tf.data's own optimisations switched off through Options."""

from __future__ import annotations

from pipediag.facts.limits import INPUT_WAIT
from pipediag.facts.pipeline import operations, option
from pipediag.rules.relevance import weigh_input
from pipediag.rules.rule import Meta
from pipediag.session.edits import Edit, SetOptions
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.tensorflow_names import DEFAULT_SWITCHES

META = Meta(
    id="disabled-defaults",
    name="Disabled defaults",
    title_failed="Options switch off what tf.data does by itself",
    title_passed="tf.data's own optimisations are on",
    looks_at="The dataset's options: default optimisations, autotuning, parallel maps and batches, "
    "prefetch injection, noop elimination.",
    why="With its defaults on, tf.data makes stateless maps parallel, appends a prefetch and tunes "
    "both; with them off it does only what is written.",
    edit="Remove the option, or set it to True.",
    cost="More elements in memory and more threads at work beside the training step.",
    bound="Stateless maps run in parallel, and a prefetch is appended. None where "
    "other defaults are switched off.",
    needs=("loop", "pipeline", "breakdown"),
    thresholds=(INPUT_WAIT,),
    severity="warn",
    effect_on_results="same results",
    frees=("input_wait",),
    tried_when_informing=True,
)


def check(session: Session) -> list[Finding]:
    """One finding on all options together."""
    if not operations(session):
        reason = "The framework built the pipeline and chose its options on purpose."
        return [META.finding("not-applicable", reason)]
    off = _switched_off(session)
    if not off:
        return [META.finding("pass", "")]
    weight = weigh_input(session)
    advice = f"Remove `{'`, `'.join(off.values())}`."
    last = operations(session)[-1]
    written = next(iter(operations(session, "with_options")), last)
    return [
        META.finding(
            weight.status,
            advice if weight.status == "fail" else weight.sentence,
            op=written,
            evidence={**weight.evidence, "switched_off": ", ".join(off.values())},
            edit=_edit(list(off)) if weight.worth_trying else None,
        )
    ]


def _edit(names: list[str]) -> Edit:
    label = f"{names[0]} = True" if len(names) == 1 else "tf.data's defaults switched on again"
    return Edit(META.id, label, (SetOptions(dict.fromkeys(names, True)),))


def _switched_off(session: Session) -> dict[str, str]:
    """The options that are off, as a session names them, and as they are written."""
    off: dict[str, str] = {}
    for name in DEFAULT_SWITCHES:
        given = option(session, name)
        if given is not None and given[1] is False:
            key = given[0].removeprefix("options.").removeprefix("experimental_")
            off[key] = f"{given[0]} = False"
    if session.pipeline is not None and not session.pipeline.autotune_enabled:
        off["autotune.enabled"] = "options.autotune.enabled = False"
    return off
