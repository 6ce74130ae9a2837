"""Python of the script's own that runs between the calls of a training function."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

import numpy as np

from pipediag.facts.amounts import exact_time
from pipediag.facts.bounds import bound
from pipediag.facts.limits import INPUT_BOUND, Threshold
from pipediag.facts.step import class_ms, class_percent
from pipediag.rules.relevance import input_first
from pipediag.rules.rule import Meta
from pipediag.session.findings import Finding
from pipediag.session.host import HotLine
from pipediag.session.model import Session
from pipediag.session.steps import Steps
from pipediag.vocabulary import Scalar

PYTHON = Threshold(
    "Python",
    30.0,
    "% of the step",
    "own measurements: loops that only call a tf.function have 23 % of a step of 0.6 ms and less",
)
PYTHON_MS = Threshold(
    "Python",
    0.3,
    "ms a step",
    "own measurements: twice what loops that only call a tf.function take",
)
LONG = Threshold(
    "Python of a longer step",
    15.0,
    "% of the step",
    "own choice: less is little to gain",
)
LONG_MS = Threshold(
    "Python of a longer step",
    1.0,
    "ms a step",
    "own choice: several times what calling a tf.function takes, whatever its share of the step",
)
SEEN = Threshold(
    "lines of the script's own",
    1.0,
    "% of the stack samples",
    "own choice: some, for a place. A sampler meets such a line far more rarely than it runs, as "
    "it has to wait for the interpreter lock meanwhile: 2 and 18 % of one that was half of a step",
)
META = Meta(
    id="own-python",
    name="Own Python in each step",
    title_failed="Python takes a relevant part of every step",
    title_passed="Python takes little of the step",
    looks_at="In a loop of the script's own that calls a tf.function: the part of the step that is "
    "Python, and the lines of the script that the stack samples of the training thread met while "
    "no framework's code ran beneath them.",
    why="What a loop does with each batch on the host (a metric over all that was seen so far, "
    "lists of values, logging) keeps the device waiting for the next call.",
    edit="Do it every hundredth step or once an epoch; keep sums in tensors, and read them with "
    "`.numpy()` where they are printed.",
    cost="What is looked at is looked at less often.",
    bound="At most the step without its Python, of which starting a step takes a little; or, "
    "where that is more, the mean step over a short one (the 5th percentile), as what grows with "
    "the epoch is little where steps were profiled.",
    needs=("loop", "steps", "breakdown", "host"),
    thresholds=(PYTHON, PYTHON_MS, LONG, LONG_MS, SEEN, INPUT_BOUND),
    severity="warn",
    effect_on_results="same results",
    frees=("python", "device_wait"),
    untried="It needs the loop's own lines changed in your code.",
)
_GROWS = 1.5
"""How much longer the last quarter of the steps of an epoch is than the first, from which on that
is said. Own choice."""
_FEWEST_STEPS = 40
_MOST_NAMED = 3


def check(session: Session) -> list[Finding]:
    """One finding on the diagnosed loop."""
    loop, host = session.diagnosed_loop(), session.host
    assert loop is not None
    assert host is not None
    if loop.kind == "keras" or not loop.step_functions:
        reason = "The loop is Keras' own, or its steps run eagerly, which another rule looks at."
        return [META.finding("not-applicable", reason)]
    lines = sorted(
        (line for line in host.hot_python if line.thread == "main"), key=lambda one: -one.percent
    )
    seen, percent = sum(line.percent for line in lines), class_percent(session, ["python"])
    evidence: dict[str, Scalar] = {
        "python_percent": percent,
        "own_lines_percent": seen,
    }
    ms = class_ms(session, ["python"])
    if not _matters(percent, ms):
        return [META.finding("pass", "", place=(loop.file, loop.line), evidence=evidence)]
    if seen < SEEN.value:
        nowhere = (
            f"Python takes {percent:.0f} % of each step ({exact_time(ms)}). The stack samples met "
            "next to no line of the script's own in it: which Python it is, they don't tell."
        )
        return [
            META.finding("informative", nowhere, place=(loop.file, loop.line), evidence=evidence)
        ]
    place = (lines[0].file, lines[0].line)
    if waits := input_first(session):
        return [META.finding("informative", waits, place=place, evidence=evidence)]
    assert session.steps is not None
    return [
        META.finding(
            "fail",
            _advice(lines, percent, ms, session.steps),
            place=place,
            evidence=evidence,
            speedup_at_most=_at_most(session.steps, percent),
        )
    ]


def takes_the_steps(session: Session) -> bool:
    """Return True if the loop's own Python is what its steps spend on the host."""
    if session.diagnosed_loop() is None or session.host is None or session.steps is None:
        return False
    return any(finding.status == "fail" for finding in check(session))


def _matters(percent: float, ms: float) -> bool:
    of_short = percent >= PYTHON.value and ms >= PYTHON_MS.value
    return of_short or (percent >= LONG.value and ms >= LONG_MS.value)


def _at_most(steps: Steps, percent: float) -> float:
    short_ms = float(np.percentile(steps.samples_ms, 5))
    return max(bound(100.0, percent) or 1.0, steps.mean_ms / short_ms)


def _advice(lines: Sequence[HotLine], percent: float, ms: float, steps: Steps) -> str:
    return (
        f"Python takes {percent:.0f} % of each step ({exact_time(ms)}), by the profile. Of the "
        f"script's own lines, stack samples met {_named(lines)} most often: do that every "
        f"hundredth step or once an epoch, or keep sums in tensors.{_growth(steps)}"
    )


def _named(lines: Sequence[HotLine]) -> str:
    places = list(dict.fromkeys(_place(line) for line in lines))[:_MOST_NAMED]
    return places[0] if len(places) == 1 else f"{', '.join(places[:-1])} and {places[-1]}"


def _place(line: HotLine) -> str:
    at = f"{PurePath(line.file).name}:{line.line}"
    return at if line.function == "<module>" else f"{at} (`{line.function}`)"


def _growth(steps: Steps) -> str:
    """Steps that grow within an epoch work through all that was gathered so far."""
    samples = np.asarray(steps.samples_ms)
    if steps.seams or len(samples) < _FEWEST_STEPS:
        return ""
    quarter = len(samples) // 4
    first, last = (float(np.median(part)) for part in (samples[:quarter], samples[-quarter:]))
    if last < _GROWS * first:
        return ""
    return (
        f" Steps grow longer while the loop goes on, from {exact_time(first)} to "
        f"{exact_time(last)}: look for work over all that was gathered before."
    )
