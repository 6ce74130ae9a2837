"""The embedding tables of the steps of a loop, read from the functions traced for them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from pipediag.capture.frameworks.tensorflow.distributed import parts_by_replica
from pipediag.capture.frameworks.tensorflow.tables.copies import of_all_devices
from pipediag.capture.frameworks.tensorflow.tables.draws import draws_as_counted
from pipediag.capture.frameworks.tensorflow.tables.given import called, drawn, handed_out, kept
from pipediag.capture.frameworks.tensorflow.tables.step import VOCABULARY, Label, Step
from pipediag.capture.frameworks.tensorflow.tables.table import Given, TableInStep
from pipediag.capture.frameworks.tensorflow.tables.unfolded import (
    UnreadableGraphError,
    of_function,
)
from pipediag.capture.frameworks.tensorflow.traced_shapes import called_with
from pipediag.capture.runtime import KeptBatch, UnreadableStepError
from pipediag.session.recorded_tables import RecordedSoftmax
from pipediag.vocabulary import TablePart

_NOT_TRACED = "No traced function was seen in the step: it runs eagerly, so no graph tells."


class TracedTables:
    """Those of one loop; each table once, in the function that looks it up.

    Raises:
        UnreadableStepError: no function was traced, or its graph can't be read.
    """

    def __init__(self, functions: Iterable[Any]) -> None:
        traced = [(one, step) for one in functions if (step := _step_of(one)) is not None]
        if not traced:
            raise UnreadableStepError(_NOT_TRACED)
        self._traced = traced
        self._steps = steps = [step for _, step in traced]
        self.tables: Sequence[TableInStep] = _each_once(steps)
        labels = _labels(steps)
        self.vocabulary_operations = [name for name in labels if labels[name] == VOCABULARY]
        seen = {id(weight): one for step in steps for weight, one in step.softmaxes}
        for table in self.tables:
            table.use.operations = _by_part(labels, id(table.variable))
            table.softmax = seen.get(id(table.variable))
        for weight in seen.keys() - {id(table.variable) for table in self.tables}:
            seen[weight].update_operations = _by_part(labels, weight).get("update", [])
        self.softmaxes: Sequence[RecordedSoftmax] = list(seen.values())
        self.constant_bytes = sum(step.constant_bytes for step in steps)

    def draws_as_counted(self, *, batches_per_call: int, replicas: int, distributed: bool) -> bool:
        return all(
            draws_as_counted(
                step.unfolded,
                batches_per_call=batches_per_call,
                replicas=replicas,
                distributed=distributed,
            )
            for step in self._steps
        )

    def of_batch(self, batch: Any) -> Given:
        """By the operation that hands the step its batch."""
        from tensorflow.python.util import nest

        of_replicas = parts_by_replica(batch)
        if len(of_replicas) == 1:
            parts = handed_out(batch)
            of_replicas = [parts]
        else:
            parts = nest.flatten(batch, expand_composites=True)
        given: Given = {}
        for step in self._steps:
            given.update(drawn(step.unfolded, parts, of_replicas))
        return given

    def of_kept(self, batches: Sequence[KeptBatch]) -> Given:
        """By the operations that keep them."""
        given: Given = {}
        for step in self._steps:
            for one in batches:
                given.update(kept(step.unfolded, one))
        return given

    def of_call(self, function: Any, args: Iterable[Any], kwargs: dict[str, Any]) -> Given | None:
        """By the arguments of the function."""
        step = next((step for one, step in self._traced if one is function), None)
        return None if step is None else called(step.unfolded, tuple(args), kwargs)


def _each_once(steps: Sequence[Step]) -> list[TableInStep]:
    """Each table in the step that trains it, if one does; of a strategy's copies, the first."""
    found: dict[int, TableInStep] = {}
    for table in (one for step in steps for one in step.tables):
        whole = id(of_all_devices(table.variable))
        known = found.get(whole)
        if known is None or (known.use.gradient is None and table.use.gradient is not None):
            found[whole] = table
    return list(found.values())


def _labels(steps: Sequence[Step]) -> dict[str, Label | None]:
    """Of all functions; None for a name that means different things in two of them."""
    labels: dict[str, Label | None] = {}
    for step in steps:
        for name, label in step.labels().items():
            labels[name] = label if labels.setdefault(name, label) == label else None
    return labels


def _by_part(labels: dict[str, Label | None], table: int) -> dict[TablePart, list[str]]:
    found: dict[TablePart, list[str]] = {}
    for name, label in labels.items():
        if label is not None and label != VOCABULARY and label[0] == table:
            found.setdefault(label[1], []).append(name)
    return found


def _step_of(function: Any) -> Step | None:
    """The function as it was traced last for the largest batches: others end an epoch."""
    traced = list(function._list_all_concrete_functions())
    if not traced:
        return None
    # Of those alike, `max` takes the first.
    concrete = max(reversed(traced), key=_rows)
    try:
        return Step(of_function(concrete), _variables_of(concrete))
    except UnreadableGraphError as lack:
        raise UnreadableStepError(str(lack)) from lack


def _rows(concrete: Any) -> float:
    """Of all that it is called with; a number that is left open holds for any batch."""
    shapes = [one.shape for one in called_with(concrete.graph)]
    sizes = [shape[0] for shape in shapes if shape.rank]
    return math.inf if any(size is None for size in sizes) else float(sum(sizes))


def _variables_of(concrete: Any) -> Sequence[Any]:
    try:
        return tuple(concrete.graph.variables)
    except AssertionError as gone:
        raise UnreadableStepError("A variable of the step is gone.") from gone
