"""Hand-made ledgers of runs, and loops that evaluate in them."""

from __future__ import annotations

from typing import Any

from pipediag.session.ledger import Run, RunGain, RunPart
from pipediag.session.loops import Loop
from pipediag.session.pipeline import Operation, Pipeline
from pipediag.session.recorded_loops import Evaluation
from pipediag.vocabulary import RunPartName
from tests import factories
from tests.factories import make_loop
from tests.records import SCRIPT, make_function, make_operation, make_pipeline

WHOLE_S = 100.0


def make_part(part: RunPartName, seconds: float, **overrides: Any) -> RunPart:
    """A row of a ledger of 100 s, so that its seconds are its percents."""
    return factories.make_part(part, seconds, WHOLE_S, **overrides)


def make_run(*parts: RunPart, whole_s: float = WHOLE_S, **overrides: Any) -> Run:
    """A run of 20 epochs, or of as many as are planned; `whole_s` other than 100 makes the percents
    what they then are."""
    steps_s = max(0.0, whole_s - sum(part.seconds for part in parts))
    steps = make_part("steps", steps_s, file=SCRIPT, line=20, loop_id="loop_0", count=1000)
    rows = [
        part.but(percent=100.0 * part.seconds / whole_s)
        for part in (*parts, steps)
        if part.seconds > 0.0
    ]
    values: dict[str, Any] = {
        "scope": "run",
        "total_s": whole_s,
        "pipediag_s": 3.0,
        "epochs_seen": float(overrides.get("epochs_planned") or 20),
        "epochs_planned": 20,
        "parts": rows,
    }
    return Run(**{**values, **overrides})


def make_gain(speedup: float, before_s: float = WHOLE_S, **overrides: Any) -> RunGain:
    """A gain of a run that was measured exactly."""
    values: dict[str, Any] = {
        "speedup": speedup,
        "ci95": (speedup, speedup),
        "before_s": before_s,
        "after_s": before_s / speedup,
        "basis": "measured",
        "scope": "run",
    }
    return RunGain(**{**values, **overrides})


def make_waits(
    first_batches_s: float = 16.0,
    steps_s: float = 3.0,
    between_s: float = 1.0,
    *,
    each_s: float = 1.6,
    first_s: float = 0.05,
    count: int | None = None,
    **overrides: Any,
) -> Run:
    """A loop of which 80 % is waiting for first batches behind the first one; `count` of steps."""
    of_loop: dict[str, Any] = {"loop_id": "loop_0", "file": SCRIPT, "line": 20}
    waits = 1 + round(first_batches_s / each_s)
    parts = [
        make_part("epoch_start", first_batches_s + first_s, count=waits, **of_loop),
        make_part("epoch_end", between_s, **of_loop),
        make_part("steps", steps_s, count=count, **of_loop),
    ]
    return make_run(*parts, whole_s=sum(one.seconds for one in parts), **overrides)


WAITING = Evaluation(steps=32, step_ms=10.0, consumer_ms=2.0)
"""80 % of a step."""


def written(
    id: str, kind: str, line: int, parent: str | None = None, **overrides: Any
) -> Operation:
    """An operation of a pipeline whose costs were not measured."""
    values = {"elements": None, "self_ms_per_step": None, "bytes_per_element": None}
    parents = [] if parent is None else [parent]
    return make_operation(id, kind, line=line, parent_ids=parents, **{**values, **overrides})


def decoding(**function: Any) -> list[Operation]:
    """from_tensor_slices -> map -> batch(8), of 80 images of a kilobyte.

    The last batch may be smaller, so that TensorFlow knows no size of one.
    """
    size = {"cardinality": 80, "element_bytes": 1024}
    decode = make_function(**function)
    return [
        written("v1", "from_tensor_slices", 30, **size),
        written("v2", "map", 31, "v1", function=decode, **size),
        written("v3", "batch", 32, "v2", parameters={"batch_size": 8}, cardinality=10),
    ]


def ending(*ops: Operation, before: list[Operation] | None = None) -> Pipeline:
    """The decoding pipeline, or other operations, with more behind them."""
    return make_pipeline(ops=[*(decoding() if before is None else before), *ops])


def validation(pipeline: Pipeline | None = None, **overrides: Any) -> Loop:
    """A validation in the `fit` of the factories, which reads that pipeline."""
    values = {
        "id": "loop_1",
        "role": "validation",
        "diagnosed": False,
        "batch_size": 8,
        "pipeline": pipeline or ending(),
        "evaluation": WAITING,
    }
    return make_loop(**{**values, **overrides})
