"""What an edit adds to a run once: its training step is traced and compiled otherwise.

That lies in the first call of an arm's step, of which the wait for its batch and the step itself
are taken off: what the first step of a later block takes. The same of the script's own step, made
anew, is what the run takes already. Both are later traces of one process, so that what the first
one of a process takes beside is in neither.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import fmean
from typing import TypedDict

from pipediag.facts.run_gain import ONCE_OFF, Taken
from pipediag.session.edits import ANEW, Change, SetModel, traces_otherwise
from pipediag.session.record import Interval
from pipediag.session.trials import TrialBlock
from pipediag.trials.arms import Arm, Preparation
from pipediag.vocabulary import BASE

ANEW_ARM = Arm("base made anew", (SetModel({ANEW: True}),))
ANEW_LABEL = "the step as written, traced once more"

FIRST_TRACE_S = 0.4
"""What the first trace of a process takes more than a later one of the same step: up to 0.4 s on
two cores of a small machine, 0.6 s in place of 0.2 to 0.3 s. Where a step is traced that was not
before, as of a model that ran eagerly, the edited run has that too."""


class Once(TypedDict):
    """The fields that a trial and a combination share; None where that is not known, or nothing is
    traced otherwise."""

    once_s: float | None
    once_ci95_s: Interval | None


NOT_KNOWN = Once(once_s=None, once_ci95_s=None)


@dataclass
class FirstCalls:
    """First steps of arms as they were prepared."""

    one_length: bool = True
    """Whether all batches are of one. XLA compiles for each, of which the first step shows one."""
    _first_s: dict[str, float] = field(default_factory=dict)

    def note(self, arm: Arm, preparation: Preparation) -> None:
        """An arm was prepared."""
        if preparation.first_ns is not None:
            self._first_s[arm.name] = preparation.first_ns / 1e9

    def once(self, arm: Arm, blocks: Iterable[TrialBlock]) -> Once:
        """What the run takes once more with the arm than as it is; negative where that is less."""
        if not (self.one_length and traces_otherwise(arm.changes)) or arm.runs_through:
            return NOT_KNOWN
        later = list(blocks)
        taken = self._traced(arm.name, arm.name, later)
        as_it_is = (
            Taken(-FIRST_TRACE_S / 2, FIRST_TRACE_S / 2)
            if made_graph(arm.changes)
            else self._traced(ANEW_ARM.name, BASE, later)
        )
        if taken is None or as_it_is is None:
            return NOT_KNOWN
        more = taken + as_it_is.share(-1.0)
        low, high = more.seconds - more.off_s, more.seconds + more.off_s
        return Once(once_s=round(more.seconds, 4), once_ci95_s=(round(low, 4), round(high, 4)))

    def _traced(self, name: str, like: str, blocks: Iterable[TrialBlock]) -> Taken | None:
        """Of its first step, what first steps of later blocks don't take."""
        later_s = [
            block.first_step_ms / 1e3
            for block in blocks
            if block.arm == like and block.first_step_ms is not None
        ]
        if name not in self._first_s or not later_s:
            return None
        traced = Taken(self._first_s[name], ONCE_OFF * self._first_s[name])
        return traced + Taken(-fmean(later_s), (max(later_s) - min(later_s)) / 2.0)


def made_graph(changes: Iterable[Change]) -> bool:
    """Whether a step that ran eagerly is traced, where nothing was."""
    return any(
        isinstance(change, SetModel) and change.settings.get("run_eagerly") is False
        for change in changes
    )
