"""What a watched run's step time is to a bare run's: pure functions on clocks and recordings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipediag.measures.bootstrap import interval, resampled_medians
from pipediag.session.recording import Recording

GOAL = 1.02
"""The ratio of step times that pipediag sets itself as a limit."""

FEWEST_ROUNDS = 6
"""Of fewer, not even the whole range holds the true median in 95 % of cases: 1 - 2 ** (1 - n)."""

Nanoseconds = NDArray[np.int64]
Span = tuple[int, int]


class UnusableRunError(Exception):
    """A run gave no steps that could be compared; the message says why."""


@dataclass(frozen=True)
class BaselineSteps:
    """The steps of one watched run that lie in its baseline window."""

    positions: NDArray[np.int64]
    """Which of the script's steps they are, counted from 0."""
    durations_ns: Nanoseconds
    """By the script's own clock, one for each position."""
    recorded_ns: Nanoseconds
    """The same steps as pipediag recorded them."""


@dataclass(frozen=True)
class Ratio:
    """The median of ratios over rounds, with a 95 % bootstrap interval over rounds."""

    median: float
    low: float
    high: float
    rounds: int

    @property
    def judgement(self) -> str:
        """How the interval lies to the goal: `met`, `missed`, or `undecided` where it straddles."""
        if self.rounds < FEWEST_ROUNDS:
            return "undecided (too few rounds)"
        if self.high <= GOAL:
            return "met"
        return "missed" if self.low > GOAL else "undecided"


def baseline_spans(recording: Recording) -> list[Span]:
    """Begin and end of each block of undisturbed steps in the baseline window.

    Between two blocks pipediag reads tf.data's model, and leaves the steps beside that out.
    """
    return [
        (block.starts_ns[0], block.starts_ns[-1] + block.durations_ns[-1])
        for window in recording.windows
        if window.kind == "baseline" and window.complete
        for block in window.blocks
        if block.starts_ns
    ]


def recorded_steps(recording: Recording) -> tuple[Nanoseconds, Nanoseconds]:
    """Starts and durations of the steps in the baseline window, by pipediag's clock."""
    blocks = [
        block
        for window in recording.windows
        if window.kind == "baseline" and window.complete
        for block in window.blocks
    ]
    starts = [start for block in blocks for start in block.starts_ns]
    durations = [duration for block in blocks for duration in block.durations_ns]
    return np.array(starts, dtype=np.int64), np.array(durations, dtype=np.int64)


def nearest(sorted_times: Nanoseconds, times: Nanoseconds) -> NDArray[np.int64]:
    """For each time, the position of the entry of `sorted_times` that is nearest to it."""
    if len(sorted_times) == 1:
        return np.zeros(len(times), dtype=np.int64)
    after = np.clip(np.searchsorted(sorted_times, times), 1, len(sorted_times) - 1)
    before = after - 1
    closer_after = sorted_times[after] - times < times - sorted_times[before]
    return np.where(closer_after, after, before).astype(np.int64)


def steps_inside(stamps: Nanoseconds, spans: Iterable[Span]) -> NDArray[np.int64]:
    """Positions of the steps inside one span; step i lasts from stamp i to i + 1."""
    inside = [
        np.arange(
            np.searchsorted(stamps, begin, side="left"),
            np.searchsorted(stamps, end, side="right") - 1,
        )
        for begin, end in spans
    ]
    return np.concatenate(inside, dtype=np.int64) if inside else np.empty(0, dtype=np.int64)


def baseline_steps(stamps: Nanoseconds, recording: Recording) -> BaselineSteps:
    """The baseline steps of a watched run.

    Raises:
        UnusableRunError: the run has no complete baseline window.
    """
    positions = steps_inside(stamps, baseline_spans(recording))
    if len(positions) == 0:
        raise UnusableRunError(
            f"there is no complete baseline window; the script {recording.outcome} after "
            f"{len(stamps)} steps. {recording.error or ' '.join(recording.notes)}"
        )
    starts, recorded = recorded_steps(recording)
    same = nearest(starts, stamps[positions])
    return BaselineSteps(positions, np.diff(stamps)[positions], recorded[same])


def step_time_ratio(bare: Nanoseconds, watched: BaselineSteps) -> float:
    """Median step of the watched run over that of the bare run, at the same positions.

    Raises:
        UnusableRunError: the bare run, given by its stamps, ended before the last of these steps.
    """
    durations = np.diff(bare)
    last = int(watched.positions[-1])
    if last >= len(durations):
        raise UnusableRunError(
            f"the bare run ended after {len(durations)} steps, before step {last}"
        )
    return float(np.median(watched.durations_ns) / np.median(durations[watched.positions]))


def agreement(watched: BaselineSteps) -> float:
    """Median step as pipediag recorded it over the one by the script's own clock."""
    return float(np.median(watched.recorded_ns) / np.median(watched.durations_ns))


def summarise(ratios: Sequence[float]) -> Ratio:
    """One ratio for all rounds; neighbouring rounds are resampled together, as machines drift."""
    low, high = interval(resampled_medians(ratios))
    return Ratio(float(np.median(ratios)), low, high, len(ratios))
