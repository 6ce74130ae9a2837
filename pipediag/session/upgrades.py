"""What was written in an older minor version, brought to the form of the present one.

A step works on what JSON gives, before it is validated: a stranger may have written it, so a step
changes what has the form that it knows and leaves the rest to validation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Content = dict[str, Any]


@dataclass(frozen=True)
class Upgrade:
    """One step: from the minor version before `to`."""

    to: int
    change: Callable[[Content], None]
    """Changes the content in place."""


def upgrade(content: Content, minor: int) -> None:
    """Bring content of an older minor version of this major to the present form, in place."""
    for step in UPGRADES:
        if minor < step.to:
            step.change(content)


_SUBJECTS = {
    "gpu-unused": "precondition",
    "misplaced-cache": "correctness",
    "small-shuffle": "quality",
    "trace-only-python": "correctness",
}
"""What the rules of that time were about that were not about speed."""


def _to_1_1(content: Content) -> None:
    """1.0 had no minor: keys came one after the other, these where older sessions lack them.

    `subject` of a finding follows from its rule. `basis` of a trial follows from what took the
    batches: for the pipeline alone the speed-up was an estimate already. `step_ms` of a loop's time
    is the mean step that `steps_s` was made of, which the session has for the diagnosed loop only.
    """
    for finding in _objects(content.get("findings")):
        finding.setdefault("subject", _SUBJECTS.get(str(finding.get("rule")), "speed"))
        for trial in _objects([finding.get("trial")]):
            _add_basis(trial, trial.get("consumer"))
    for run in _objects([content.get("trials")]):
        for combined in _objects([content.get("combined")]):
            _add_basis(combined, run.get("consumer"))
    for loop in _objects(content.get("loops")):
        for time in _objects([loop.get("time")]):
            if "step_ms" not in time:
                _add_step_ms(loop, time, content.get("steps"))


def _add_basis(ratio: Content, consumer: object) -> None:
    if ratio.get("speedup") is not None and consumer in ("training", "pipeline alone"):
        ratio.setdefault("basis", "step" if consumer == "training" else "pipeline")


def _add_step_ms(loop: Content, time: Content, steps: object) -> None:
    if loop.get("diagnosed") and isinstance(steps, dict):
        time["step_ms"] = steps.get("mean_ms")
        return
    loop["time"] = None
    loop["time_missing"] = "The pipediag that wrote this did not record the mean step behind it."


def _objects(values: object) -> Iterator[Content]:
    for value in values if isinstance(values, list) else ():
        if isinstance(value, dict):
            yield value


UPGRADES = (Upgrade(1, _to_1_1),)
"""In order. A rise that older content needs no change for has no step."""
