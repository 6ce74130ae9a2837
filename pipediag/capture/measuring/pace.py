"""Lengths of the windows: enough steps to say something, little enough time to be pleasant."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from pipediag.capture.loops.loop import Loop
from pipediag.capture.recorder import Recorder
from pipediag.session.messages import RunSettings
from pipediag.tensorflow_names import CACHES

_SECOND = 1_000_000_000
# tf.data keeps the last 100 gap times; two batches are lost at the boundaries of a block.
_GAPS_KEPT = 96
_STABLE_WITHIN = 0.15
_SMALL_STEP_NS = 50_000_000
_TINY_STEP_NS = 5_000_000
_ENOUGH_STEPS = 20
"""Steps from which on the interval of the mean is reliable (`measures/verdict/decision.py`)."""
_FEW_STEPS_AFTER_S = 6
_PART_OF_BUDGET = 4
_MOST_PATIENCE_S = 60
"""Own choice: nobody waits longer for a step time, whatever was given for trials."""
_PART_FOR_EPOCH_END = 6
"""Own choice: part of the budget for trials. What an epoch's end costs may decide what to try."""

_Limit = tuple[int, float]
"""Steps, or batches, and seconds: a window is over once both are reached, of any of its limits."""
_LIMITS: dict[str, tuple[_Limit, ...]] = {
    "stacks": ((5, 0.7), (0, 3)),
    "ids": ((8, 0.5), (0, 3)),
    "profile": ((20, 0), (5, 2), (2, 10)),
    "repeat": ((20, 0.7), (5, 3), (0, 6)),
}
_LAST_STEPS_OF_PROFILE = 5
"""Enough where the next step is the last, before which the loop can be held for trials."""
_PROFILE_NEEDS = 40
"""So many steps are left to the profile, which comes after the stacks and the ids."""


@dataclass(frozen=True)
class Pace:
    """Decides by counts and times alone; few steps `remaining` make windows short."""

    settings: RunSettings

    def warmed_up(
        self, durations: list[int], elapsed_ns: int, remaining: int | None
    ) -> tuple[bool, bool]:
        """Return True if warm-up is over, and if the step time has settled since the last trace."""
        settled, steps = self._settled(durations), len(durations)
        if self.settings.warmup is not None:
            return steps >= self.settings.warmup, settled
        few_left = remaining is not None and remaining < 60
        # A function that is traced at every step never stops tracing: that is the steady state.
        too_long = elapsed_ns > 8 * _SECOND or (elapsed_ns > 5 * _SECOND and steps >= 3)
        return settled or too_long or (few_left and steps >= 3), settled

    def _settled(self, durations: list[int]) -> bool:
        """Return True if two chunks in a row, of 4 steps and 0.25 s at least, agree within 15 %."""
        chunks: list[list[int]] = []
        chunk: list[int] = []
        for duration in reversed(durations):
            chunk.append(duration)
            if len(chunk) >= 4 and sum(chunk) >= _SECOND // 4:
                chunks.append(chunk)
                chunk = []
            if len(chunks) == 2:
                break
        if len(chunks) < 2:
            return False
        late, early = median(chunks[0]), median(chunks[1])
        return abs(late - early) <= _STABLE_WITHIN * early

    def baseline_done(self, count: int, elapsed_ns: int, remaining: int | None) -> bool:
        """Return True after 30 steps and 2 s, or fewer where steps are long or the script has few.

        20 steps after 6 s; only 10, and 5 after 20 s, where a quarter of the budget is spent. Even
        steps that were asked for give way to a script that ends sooner.
        """
        fewest = 5 if elapsed_ns >= _FEW_STEPS_AFTER_S * _SECOND else 10
        if remaining is not None and count >= max(fewest, remaining):
            return True
        if self.settings.steps is not None:
            return count >= self.settings.steps
        few_s = _FEW_STEPS_AFTER_S
        patience_s = min(max(few_s, self.settings.budget_s / _PART_OF_BUDGET), _MOST_PATIENCE_S)
        few = ((10, patience_s), (5, max(20, patience_s)))
        return _reached(((30, 2), (_ENOUGH_STEPS, few_s), *few), count, elapsed_ns)

    def block_done(self, count: int, elapsed_ns: int, batches_per_call: int) -> bool:
        """Return True before tf.data forgets gap times, or after a quarter of a second."""
        if (count + 2) * batches_per_call >= _GAPS_KEPT:
            return True
        return count >= 5 and elapsed_ns >= _SECOND // 4

    def steps_to_skip(self, step_ns: float) -> int:
        return 2 if step_ns < _SMALL_STEP_NS else 1

    def steps_between_decisions(self, step_ns: float) -> int:
        """Return the steps between two decisions of the baseline: several where one costs 1 %."""
        return 8 if step_ns < _TINY_STEP_NS and self.settings.steps is None else 1

    def enough(self, window: str, count: int, elapsed_ns: int, left: int | None) -> bool:
        """Return True when a window has enough steps, or the loop has too few of them `left`."""
        if window == "profile":
            if left == 0 and count >= _LAST_STEPS_OF_PROFILE:
                return True
            if self.settings.profile_steps is not None:
                return count >= self.settings.profile_steps
        elif window != "repeat" and left is not None and left < _PROFILE_NEEDS and count >= 2:
            return True
        return _reached(_LIMITS[window], count, elapsed_ns)

    def ends_here(self, loop: Loop) -> bool:
        """Return True if a measured loop is stopped, and does not go on for what follows it."""
        seconds_left = loop.seconds_left
        if self.settings.run_to_end:
            return False
        if self.settings.hold_loop is not None:
            return True
        if seconds_left is None or loop.record.kind != "keras":
            return True
        return seconds_left > self.settings.look_ahead_s

    def waits_for_epoch_end(self, loop: Loop, waited_ns: int) -> bool:
        """Return True if a loop that would be stopped first runs on to the end of its epoch.

        No undisturbed end was seen, more epochs follow, and the end is near or may be.
        """
        settings = self.settings
        if settings.run_to_end or settings.hold_loop is not None or loop.saw_undisturbed_end:
            return False
        limit_s = max(settings.look_ahead_s, settings.budget_s / _PART_FOR_EPOCH_END)
        if loop.steps_left is None:
            keras, rounds = loop.record.keras, loop.record.planned_rounds
            epochs = keras.epochs if keras is not None else rounds
            return (epochs or 1) > 1 and waited_ns <= limit_s * _SECOND
        left_s = loop.seconds_left_in_epoch
        return left_s is not None and left_s <= limit_s and not loop.at_last_batch

    def may_be_a_rehearsal(self, seconds_in_all: float | None) -> bool:
        """Return True if the whole loop is so short that what comes after it may matter more."""
        return seconds_in_all is not None and seconds_in_all <= self.settings.look_ahead_s


def _reached(limits: Iterable[_Limit], count: int, elapsed_ns: float) -> bool:
    return any(count >= steps and elapsed_ns >= s * _SECOND for steps, s in limits)


_WAITS_NS = 30_000_000_000
"""Own choice: as long as a person waits without a word. A longer first epoch is measured."""


def fills_a_cache(loop: Loop, recorder: Recorder, elapsed_ns: int) -> bool:
    """Return True in a first epoch that others follow, which will read a cache."""
    record = loop.record
    each = record.keras.epochs if record.keras is not None else None
    epochs = (each or 1) * (record.planned_rounds or 1)
    if record.boundaries or epochs == 1 or elapsed_ns >= _WAITS_NS:
        return False
    return any(op.kind in CACHES for op in recorder.recording.upstream(record.root_op_id))
