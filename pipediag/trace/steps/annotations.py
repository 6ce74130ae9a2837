"""The steps that a script or its framework annotated.

Keras, TensorFlow's `Trace` and JAX's `StepTraceAnnotation` write an event with the statistic
`step_num`; older TensorFlow names it `train` or `test` and marks it as a root (`_r`). PyTorch's
profiler writes `ProfilerStep#N`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipediag.trace.events import Indices, Line, TraceEvents
from pipediag.trace.host.training_graph import names_with
from pipediag.trace.steps.outermost import outermost

FEWEST_ANNOTATIONS = 2
"""One annotation may be around the whole training."""

_STEP_NUMBER = "step_num"
_ROOT = "_r"
_ROOT_NAMES = re.compile(r"train|test")
_PROFILER_STEP = re.compile(r"ProfilerStep#(\d+)$")


@dataclass(frozen=True)
class AnnotatedSteps:
    """The steps of one annotation on one thread."""

    windows: NDArray[np.int64]
    """Shape (steps, 2): start and end in nanoseconds; disjoint, in order of time."""
    numbers: tuple[int, ...]
    """What the annotation says; the position where it says nothing."""

    @property
    def rank(self) -> tuple[int, int]:
        """More steps are better; of two annotations that nest, the outer one is."""
        return len(self.windows), int((self.windows[:, 1] - self.windows[:, 0]).sum())


def annotated_steps(events: TraceEvents) -> AnnotatedSteps | None:
    """The annotation with most steps that do not lie within one another, or None.

    A step that ends after the next one's start is cut there.
    """
    found = [steps for line in events.host_lines for steps in _on_line(line)]
    found = [steps for steps in found if len(steps.windows) >= FEWEST_ANNOTATIONS]
    return max(found, key=lambda steps: steps.rank, default=None)


def _on_line(line: Line) -> Iterator[AnnotatedSteps]:
    for keys in _annotations(line).values():
        indices = np.flatnonzero(line.named(keys))
        indices = indices[outermost(line.end_ns[indices])]
        starts, ends = line.start_ns[indices], line.end_ns[indices]
        ends[:-1] = np.minimum(ends[:-1], starts[1:])
        windows = np.column_stack((starts, ends))
        yield AnnotatedSteps(windows, _numbers(line, indices))


def _annotations(line: Line) -> dict[str, list[int]]:
    """The line's annotations of steps, and under which names each is written."""
    numbered, roots = set(names_with(line, _STEP_NUMBER)), set(names_with(line, _ROOT))
    found: dict[str, list[int]] = {}
    for key, name in line.used_names.items():
        if _PROFILER_STEP.match(name):
            found.setdefault("ProfilerStep", []).append(key)
        elif key in numbered or (key in roots and _ROOT_NAMES.match(name)):
            found.setdefault(name, []).append(key)
    return found


def _numbers(line: Line, indices: Indices) -> tuple[int, ...]:
    values, present = line.statistics.integers(_STEP_NUMBER, indices)
    named = [_PROFILER_STEP.match(line.event_name(index)) for index in indices.tolist()]
    return tuple(
        int(values[position]) if present[position] else int(name[1]) if name else position
        for position, name in enumerate(named)
    )
