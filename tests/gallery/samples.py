"""Which samples the gallery shows, one for each kind of answer, and what a reader finds in it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Exhibit:
    sample: str
    shows: str
    """What the report is an example of, in the table of the gallery."""


EXHIBITS = (
    Exhibit("blocking_numpy_function", "A pipeline that waits, and how many calls at once mend it"),
    Exhibit("missing_cache", "Work that each epoch repeats, and what a cache makes of it"),
    Exhibit("python_generator_fit", "A generator that fights the loop for the interpreter lock"),
    Exhibit("host_overhead", "A step that is mostly the host's own work"),
    Exhibit("eager_fit", "A switch that was left over from debugging"),
    Exhibit("cnn_fit", "A training that its model limits, with nothing to mend in the input"),
    Exhibit("large_table_adam", "An optimizer that writes every row of a large table"),
    Exhibit("validation_each_epoch", "A run whose steps are not what takes long"),
)
PICTURED = EXHIBITS[0].sample
"""In light, dark and narrow, for those who only look at the README."""
