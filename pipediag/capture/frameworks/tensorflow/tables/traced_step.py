"""The embedding tables of a step, and the losses over many classes, read from its graph."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pipediag.capture.frameworks.tensorflow.tables.lookups import (
    Given,
    Lookup,
    NotFromABatchError,
    cast_of,
    compute,
    draws_one_batch,
    given_by_batch,
    given_by_call,
    lookups_in,
    masks_zero,
    sources_of,
    vocabularies_of,
)
from pipediag.capture.frameworks.tensorflow.tables.step_graph import (
    Key,
    StepGraph,
    arguments_of,
    of_all_devices,
)
from pipediag.capture.frameworks.tensorflow.tables.timed_operations import (
    Kind,
    Place,
    agreed,
    event_names,
    only_for_metrics,
    over_many_classes,
    softmaxes_in,
    work_on_table,
)
from pipediag.capture.frameworks.tensorflow.tables.whole_tables import WholeTables, Writes
from pipediag.capture.pipelines.functions import constant_bytes
from pipediag.capture.runtime import LookedUp, UnreadableStepError
from pipediag.session.recorded_loops import RecordedVariable, Softmax

_Label = tuple[Kind, int | None]
"""Kind of work of an operation, and its table, by the id of the variable."""
_VOCABULARY: _Label = ("vocabulary", None)
_METRICS: _Label = ("metrics", None)
_NOT_TRACED = (
    "The step runs eagerly, so no graph shows which tables it reads and writes: run it in a "
    "`tf.function`, or without `run_eagerly`, and analyse the script again."
)


class TableInStep:
    """One embedding table in the graph of one step: what the step does with it, by which ids."""

    def __init__(
        self,
        step: StepGraph,
        variable: Any,
        lookups: list[Lookup],
        writes: Writes,
        whole: WholeTables,
    ) -> None:
        self.variable = of_all_devices(variable)
        self._step = step
        shape = tuple(variable.shape.as_list())
        self.record = RecordedVariable(
            layer=variable.name.removesuffix(":0"),
            rows=shape[0],
            dim=math.prod(shape[1:]),
            dtype=variable.dtype.base_dtype.name,
            trainable=bool(variable.trainable),
            mask_zero=masks_zero(step, lookups),
        )
        self.use = whole.use_of(variable, lookups, writes)
        self.softmax: Softmax | None = None
        """The loss that is taken over all of its rows, where it serves as output weights."""
        self.ids_missing: str | None = None
        """Reason why its ids can't be computed from a batch."""
        self.cast_through: str | None = None
        """The narrowest float type that they pass on their way."""
        self.vocabularies: set[int] = set()
        """Tables of tokens that give the ids, by the ids of their handles."""
        self.ids_incomplete: str | None = None
        """Reason why some of its lookups are not counted."""
        self._followed: list[Lookup] = []
        """Lookups whose ids a batch tells."""
        self._needed: set[Key] = set()
        """What its ids are computed from."""
        self._follow(lookups)

    def _follow(self, lookups: list[Lookup]) -> None:
        """Find what tells the ids of each lookup; of one with ids drawn at random, nothing does."""
        lacks: list[str] = []
        for lookup in lookups:
            try:
                sources = sources_of(self._step, lookup)
            except NotFromABatchError as lack:
                lacks.append(str(lack))
                continue
            self._followed.append(lookup)
            self._needed |= {one.key for one in sources}
            self.vocabularies |= {id(one) for one in vocabularies_of(self._step, lookup.ids)}
        if not self._needed:
            why = lacks[0] if lacks else "they do not come from the batch"
            self.ids_missing = f"The ids can't be computed from a batch: {why}."
            return
        casts = (cast_of(self._step, one.ids) for one in self._followed)
        self.cast_through = next((cast[0] for cast in casts if cast), None)
        if lacks:
            self.ids_incomplete = (
                f"{len(lacks)} of {len(lookups)} lookups could not be followed, as their ids can't "
                f"be computed from a batch: {lacks[0]}."
            )

    def answers(self, given: Given) -> bool:
        """Return True if its ids can be computed from this."""
        return self._needed <= given.keys()

    def looked_up(self, given: Given) -> list[LookedUp]:
        """Compute the ids as the step computes them."""
        found = []
        for lookup in self._followed:
            _, before = cast_of(self._step, lookup.ids) or (None, None)
            found.append(
                LookedUp(
                    compute(self._step, lookup.ids, given).numpy(),
                    None if before is None else compute(self._step, before, given).numpy(),
                )
            )
        return found


class Step:
    """One graph, with the variables that it may read and write."""

    def __init__(self, graph: StepGraph, variables_in_graph: Sequence[Any]) -> None:
        self.graph = graph
        lookups: dict[int, list[Lookup]] = {}
        for lookup in lookups_in(graph):
            lookups.setdefault(id(lookup.handle), []).append(lookup)
        variables = {id(one.handle): one for one in variables_in_graph}
        writes = Writes.of(graph)
        self._whole = WholeTables(graph)
        self.softmaxes = list(softmaxes_in(graph, variables))
        self.tables = [
            TableInStep(graph, variables[handle], found, writes, self._whole)
            for handle, found in lookups.items()
            if handle in variables and _is_a_table(variables[handle], writes)
        ]
        # A function that is called twice is written once.
        graphs = {id(frame.graph): frame.graph for frame in graph.frames}
        self.constant_bytes = sum(constant_bytes(one.get_operations()) for one in graphs.values())
        self._variables = variables.values()

    def labels(self) -> dict[str, _Label | None]:
        """Return what operations do, by the names that a profile may have for them."""
        labels: dict[Place, _Label | None] = agreed(self._on_whole_variables())
        for place in only_for_metrics(self.graph):
            labels.setdefault(place, _METRICS)
        weights = {tuple(one.shape.as_list()) for one in self._variables}
        for place in over_many_classes(self.graph, weights):
            labels.setdefault(place, _VOCABULARY)
        return event_names(self.graph, labels)

    def _on_whole_variables(self) -> Iterator[tuple[Place, _Label]]:
        """Yield work on all of a table; that on weights of a softmax that are none is passes of
        their update alone, and the vocabulary's."""
        tables = {id(table.variable) for table in self.tables}
        multiplied = {id(weight) for weight, _ in self.softmaxes}
        for one in self._variables:
            variable = id(of_all_devices(one))
            if variable not in tables | multiplied:
                continue
            for place, kind in work_on_table(self.graph, self._whole, one):
                if variable in tables:
                    yield place, (kind, variable)
                elif kind == "pass":
                    yield place, _VOCABULARY


def _is_a_table(variable: Any, writes: Writes) -> bool:
    """Return False for an optimizer's slot or a metric's counts, which a step writes too."""
    if not variable.dtype.is_floating or not variable.shape.is_fully_defined():
        return False
    trained = variable.trainable or variable.handle not in writes
    return bool(trained and variable.shape.rank >= 1 and variable.shape[0] > 1)


class TracedTables:
    """The embedding tables of a loop, read from the functions traced for its steps: each table
    once, in the function that looks it up.

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
        # A name that means different things in two functions is nobody's.
        labels = agreed(one for step in steps for one in step.labels().items())
        names: dict[_Label | None, list[str]] = {}
        for name, label in labels.items():
            names.setdefault(label, []).append(name)
        self.vocabulary_operations = names.get(_VOCABULARY, [])
        self.metric_operations = names.get(_METRICS, [])
        seen = {id(weight): one for step in steps for weight, one in step.softmaxes}
        for table in self.tables:
            table.use.pass_operations = names.get(("pass", id(table.variable)), [])
            table.use.copy_operations = names.get(("copy", id(table.variable)), [])
            table.softmax = seen.get(id(table.variable))
        self.softmaxes: Sequence[Softmax] = list(seen.values())
        self.constant_bytes = sum(step.constant_bytes for step in steps)

    def draws_one_batch(self) -> bool:
        """Return True if a call draws one batch from one iterator, or is given its batch."""
        return all(draws_one_batch(step.graph) for step in self._steps)

    def of_batch(self, batch: Any) -> Given:
        """Return what to compute ids from, where the step draws its batch itself."""
        from tensorflow.python.data.util import structure

        # An iterator hands out a ragged or a sparse tensor as a single one that holds all of it.
        parts = structure.to_tensor_list(structure.type_spec_from_value(batch), batch)
        return {key: at for s in self._steps for key, at in given_by_batch(s.graph, parts).items()}

    def of_call(self, function: Any, args: Iterable[Any], kwargs: dict[str, Any]) -> Given | None:
        """Return the same, of a call with a batch; None if it is no step."""
        step = next((step for one, step in self._traced if one is function), None)
        return None if step is None else given_by_call(step.graph, tuple(args), kwargs)


def _each_once(steps: Sequence[Step]) -> list[TableInStep]:
    """Return each table in the step that trains it, if one does; of a strategy's copies, the
    first."""
    found: dict[int, TableInStep] = {}
    for table in (one for step in steps for one in step.tables):
        known = found.get(id(table.variable))
        if known is None or (known.use.gradient is None and table.use.gradient is not None):
            found[id(table.variable)] = table
    return list(found.values())


def _step_of(function: Any) -> Step | None:
    """Read the function as it was traced last for the largest batches: others end an epoch."""
    traced = list(function._list_all_concrete_functions())
    if not traced:
        return None
    # `max` takes the first of several that are alike.
    concrete = max(reversed(traced), key=_rows)
    try:
        variables = tuple(concrete.graph.variables)
    except AssertionError as gone:
        raise UnreadableStepError("A variable of the step is gone.") from gone
    return Step(StepGraph(concrete), variables)


def _rows(concrete: Any) -> float:
    """Return the rows of all arguments; a number that is left open holds for any batch."""
    shapes = [one.shape for one in arguments_of(concrete.graph)]
    sizes = [shape[0] for shape in shapes if shape.rank]
    return math.inf if any(size is None for size in sizes) else float(sum(sizes))
