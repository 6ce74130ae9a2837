"""The sentences of the verdict, in the words of the field."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

from pipediag.facts.amounts import exact_time
from pipediag.facts.free_input import FreeInput
from pipediag.facts.limits import INPUT_FINE_PERCENT
from pipediag.facts.step import GROUPS
from pipediag.measures.verdict.culprits import Culprit
from pipediag.session.loops import NestedCall
from pipediag.session.steps import Ceiling, InputWait, Share
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


WORTH_SAYING = 1.05
"""Gain under which there is nothing to gain, as an input wait under 5 % is fine."""


def gain_in_the_steps(ceiling: Ceiling) -> float | None:
    """What free input gains in the steps, where that is not what it gains in the whole loop."""
    steps, loop = ceiling.speedup_if_input_free, ceiling.loop_speedup_if_input_free
    if steps is None or loop is None or loop / WORTH_SAYING < steps < loop * WORTH_SAYING:
        return None
    return steps


def input_sentence(
    share: Share,
    culprit: Culprit | None,
    ceiling: Ceiling | None,
    wait: InputWait | None,
    alone: FreeInput | None = None,
) -> str:
    """Highly input-bound, by how much, and behind which operation.

    Where the consumer `alone` gains more than the ceiling says, the truth lies between the two.
    """
    waits = wait is None or wait.method != "differential"
    text = (
        f"Highly input-bound: {share.percent:.0f} % of each step ({exact_time(share.ms)}) "
        f"{'is waiting for' if waits else 'goes to'} input"
    )
    if culprit is not None:
        text += f"; {costs_most(culprit)}"
    best = ceiling.speedup_if_input_free if ceiling is not None else None
    if ceiling is None or best is None:
        return text + "."
    most = alone.steps if alone is not None else None
    if gain_in_the_steps(ceiling) is not None:
        in_loop = ceiling.loop_speedup_if_input_free or best
        of_loop = up_to(f"{in_loop:.3g}x", alone.loop if alone is not None else None)
        return (
            f"{text}. Free input would make the steps {up_to(f'{best:.3g}x', most)} and the whole "
            f"loop {of_loop} as fast."
        )
    if most is not None:
        return f"{text}. Free input would make training {up_to(f'{best:.3g}x', most)} as fast."
    other = _by_a_repeated_batch(wait)
    by = f" by tf.data's gap times, {other:.3g}x by a repeated batch" if other else ""
    return f"{text}. Free input would make training {best:.3g}x as fast{by}."


def up_to(least: str, most: float | None) -> str:
    """`3.32x to 4.45x`, or the least alone where no other measure gives more."""
    return f"{least} to {most:.3g}x" if most is not None else least


def other_sentence(
    group: Group,
    percent: float,
    breakdown: Mapping[StepClass, Share],
    ceiling: Ceiling | None,
    wait: InputWait | None,
    alone: FreeInput | None = None,
) -> str:
    """Compute-, transfer- or overhead-bound, with the classes that make it up."""
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
    gain = _gain_of_free_input(ceiling, wait, alone)
    return f"{text}; a free input pipeline would gain {gain}." if gain else text + "."


def _gain_of_free_input(
    ceiling: Ceiling | None, wait: InputWait | None, alone: FreeInput | None
) -> str | None:
    """By each measure where two contradict, and of the loop where that is not the steps' gain."""
    best = ceiling.speedup_if_input_free if ceiling is not None else None
    if ceiling is None or best is None:
        return None
    other = _by_a_repeated_batch(wait)
    if other is not None:
        low, high = sorted((best, other))
        return f"{low:.3g}x to {high:.3g}x, as two measures of it disagree"
    in_steps = up_to(f"{best:.3g}x", alone.steps if alone is not None else None)
    if gain_in_the_steps(ceiling) is not None:
        in_loop = ceiling.loop_speedup_if_input_free or best
        of_loop = up_to(f"{in_loop:.3g}x", alone.loop if alone is not None else None)
        if best < WORTH_SAYING and alone is None:
            return f"next to nothing in the steps and {of_loop} in the whole loop"
        return f"{in_steps} in the steps and {of_loop} in the whole loop"
    if alone is not None:
        return in_steps
    return f"{best:.3g}x at most" if best >= WORTH_SAYING else "next to nothing"


def _by_a_repeated_batch(wait: InputWait | None) -> float | None:
    """What free input would gain by a repeated batch, where that contradicts the gap times."""
    percent = wait.contested_by_percent if wait is not None else None
    return None if percent is None or percent >= 100.0 else 100.0 / (100.0 - percent)


def balanced_sentence(first: Group, most: float, second: Group, next_most: float) -> str:
    """Two groups of about the same size."""
    return (
        f"Balanced: {first} takes {most:.0f} % of each step and {second} {next_most:.0f} %: "
        "neither alone limits it."
    )


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
