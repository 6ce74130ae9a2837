"""The names of the parts of a run, for every report, gate and comparison."""

from __future__ import annotations

from pipediag.vocabulary import RunPartName

RUN_PART: dict[RunPartName, str] = {
    "startup": "Start-up and imports",
    "before_training": "Before training",
    "compile": "Tracing and compiling",
    "epoch_start": "Waiting for first batches",
    "steps": "Steps",
    "evaluation": "Evaluation",
    "epoch_end": "Between epochs",
    "between_loops": "Between trainings",
    "after_training": "After training, exit",
}
