"""The embedding tables, and the losses over many classes, in the graph of one step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pipediag.capture.frameworks.tensorflow.tables.copies import of_all_devices
from pipediag.capture.frameworks.tensorflow.tables.lookups import Lookup, lookups_in
from pipediag.capture.frameworks.tensorflow.tables.parts import (
    Place,
    TableParts,
    event_names,
    once,
)
from pipediag.capture.frameworks.tensorflow.tables.softmax import softmaxes_in
from pipediag.capture.frameworks.tensorflow.tables.table import (
    TableInStep,
    is_a_table,
    join_copies,
)
from pipediag.capture.frameworks.tensorflow.tables.unfolded import Unfolded
from pipediag.capture.frameworks.tensorflow.tables.vocabulary import over_a_vocabulary
from pipediag.capture.frameworks.tensorflow.tables.work import WholeTables, writes_of
from pipediag.capture.pipelines.functions import constant_bytes
from pipediag.vocabulary import TablePart

Label = tuple[int, TablePart]
"""Which table, by the id of its variable, and which part of what it costs."""
VOCABULARY: Any = ("vocabulary",)
"""The label of what computes a number for each of many classes."""


class Step:
    """One graph, with the variables that it may read and write."""

    def __init__(
        self,
        unfolded: Unfolded,
        variables_in_graph: Sequence[Any],
        kind: type[TableInStep] = TableInStep,
    ) -> None:
        self.unfolded = unfolded
        lookups: dict[int, list[Lookup]] = {}
        for lookup in lookups_in(unfolded):
            lookups.setdefault(id(lookup.handle), []).append(lookup)
        variables = {id(one.handle): one for one in variables_in_graph}
        writes = writes_of(unfolded)
        whole = WholeTables(unfolded)
        self.softmaxes = list(softmaxes_in(unfolded, variables))
        self.tables = [
            kind(unfolded, variables[handle], found, writes, whole)
            for handle, found in lookups.items()
            if handle in variables and is_a_table(variables[handle], writes)
        ]
        join_copies(self.tables)
        # A function that is called twice is written once.
        graphs = {id(frame.graph): frame.graph for frame in unfolded.frames}
        self.constant_bytes = sum(
            constant_bytes(graph.get_operations()) for graph in graphs.values()
        )
        self._whole = whole
        self._weights = {tuple(one.shape.as_list()) for one in variables.values()}
        multiplied = {id(weight) for weight, _ in self.softmaxes}
        self._of_softmaxes = [
            one for one in variables.values() if id(of_all_devices(one)) in multiplied
        ]

    def labels(self) -> dict[str, Label | None]:
        """What operations are, by the names that a profile may have for them."""
        parts = [(id(table.variable), table.parts(self._whole)) for table in self.tables]
        labels: dict[Place, Label | None] = once([*parts, *self._updates_of_weights()])
        for place in over_a_vocabulary(self.unfolded, self._weights):
            labels.setdefault(place, VOCABULARY)
        return event_names(self.unfolded, labels)

    def _updates_of_weights(self) -> Iterator[tuple[int, dict[Place, TablePart]]]:
        """Of those that a softmax is taken over and that are no tables."""
        known = {id(table.variable) for table in self.tables}
        for one in self._of_softmaxes:
            whole = of_all_devices(one)
            if id(whole) not in known:
                shape = tuple(one.shape.as_list())
                parts = TableParts(self.unfolded, self._whole, one.handle, shape).by_place()
                yield id(whole), {at: part for at, part in parts.items() if part == "update"}
