"""The sentences of the verdict, in the words of the field."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

from pipediag.facts.limits import INPUT_FINE_PERCENT
from pipediag.facts.names import exact_time
from pipediag.facts.step import GROUPS
from pipediag.measures.verdict.culprits import Culprit
from pipediag.session.loops import NestedCall
from pipediag.session.steps import Share
from pipediag.vocabulary import Group, StepClass

_CLASS_WORDS: dict[StepClass, str] = {
    "device_compute": "device compute",
    "device_copy": "copies to and from the device",
    "collective": "collectives",
    "compile": "compiling or retracing",
    "dispatch": "launching operations",
    "python": "Python",
    "device_wait": "waiting for a result",
}


def place(file: str | None, line: int | None) -> str:
    """` at train.py:12`, or nothing where it is not known."""
    if file is None:
        return ""
    name = PurePath(file).name
    return f" at {name}:{line}" if line else f" in {name}"


def costs_most(culprit: Culprit) -> str:
    """Return what costs most, with what costs about as much, as a clause."""
    first, *others = [f"{one.what}{place(one.file, one.line)}" for one in (culprit, *culprit.tied)]
    if not others:
        return f"{first} costs most"
    return f"{', '.join([first, *others[:-1]])} and {others[-1]} cost most, about the same"


def input_sentence(share: Share, culprit: Culprit | None, at_most: float | None) -> str:
    """Return the sentence of an input-bound step: how much, behind which operation, at most what.

    `at_most`: how many times as fast training is without any time for input.
    """
    text = (
        f"Highly input-bound: {share.percent:.0f} % of each step ({exact_time(share.ms)}) is spent "
        "on input"
    )
    if culprit is not None:
        text += f"; {costs_most(culprit)}"
    if at_most is None:
        return text + "."
    return f"{text}. Free input would make training at most {at_most:.3g}x as fast."


def other_sentence(
    group: Group,
    percent: float,
    breakdown: Mapping[StepClass, Share],
    at_most: float | None,
) -> str:
    """Return the sentence of a compute-, transfer- or overhead-bound step, with its classes.

    `at_most`: how many times as fast training is without any time for input.
    """
    parts = sorted(GROUPS[group], key=lambda name: -breakdown[name].percent)
    named = [
        f"{_CLASS_WORDS[name]} {breakdown[name].percent:.0f} %"
        for name in parts
        if breakdown[name].percent >= 1.0
    ]
    if group == "compute":
        text = f"Compute-bound: {percent:.0f} % of each step is device compute"
    else:
        text = f"{group.capitalize()}-bound: {percent:.0f} % of each step is {group}"
        text += f" ({', '.join(named)})" if named else ""
    if at_most is None:
        return text + "."
    return f"{text}; free input would make training at most {at_most:.3g}x as fast."


def balanced_sentence(first: Group, most: float, second: Group, next_most: float) -> str:
    """Return the sentence of two groups of about the same size, named in one order always."""
    shares = {first: most, second: next_most}
    named = [f"{group} {shares[group]:.0f} %" for group in GROUPS if group in shares]
    return f"Balanced: {named[0]} and {named[1]} of each step, neither of which limits it alone."


def beside_tensorflow_sentence(wait: Share) -> str:
    """PyTorch computes the step, of which the input wait alone is told."""
    low, high = wait.ci95_percent
    little = "does not wait" if wait.percent < INPUT_FINE_PERCENT else "does not mainly wait"
    return (
        f"The loop {little} for input, which takes {wait.percent:.0f} % of each step (95 % "
        f"interval {low:.0f} to {high:.0f} %). What is in the rest is not divided on this backend: "
        "PyTorch computes it, which TensorFlow's profiler does not see."
    )


def moderate_input(share: Share) -> str:
    """What to append where input is no bottleneck, but not free either."""
    return f" Moderately input-bound as well: input wait is {share.percent:.0f} % of the step."


def call_sentence(call: NestedCall) -> str:
    """What to append where one call of the script's is most of the step."""
    where = place(call.file, call.line)
    return f" `{call.what}`{where} takes {call.percent:.0f} % of each step."


def missing_sentence(reason: str | None) -> str:
    """Why there is no verdict, and what to do."""
    return f"No verdict: {reason or 'the step was not measured.'}"
