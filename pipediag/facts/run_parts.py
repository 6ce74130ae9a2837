"""What the parts of a run are called, where a person reads of them."""

from __future__ import annotations

from pipediag.vocabulary import RunPartName

LABELS: dict[RunPartName, str] = {
    "startup": "Starting Python and importing",
    "before_training": "What runs before the training",
    "compile": "Tracing and compiling",
    "epoch_start": "Waiting for the first batch of an epoch",
    "steps": "Steps",
    "evaluation": "Evaluation",
    "epoch_end": "What runs at the end of an epoch",
    "between_loops": "What runs between two trainings",
    "after_training": "What runs after the training",
}
