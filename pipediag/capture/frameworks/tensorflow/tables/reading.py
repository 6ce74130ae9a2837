"""The embedding tables of the steps of a loop, read from the functions traced for them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pipediag.capture.frameworks.tensorflow.distributed import parts_by_replica
from pipediag.capture.frameworks.tensorflow.tables.copies import beside, copies_of, of_all_devices
from pipediag.capture.frameworks.tensorflow.tables.draws import (
    HANDED_OUT,
    HANDS_OUT,
    draws_as_counted,
    hands_out_to_all,
)
from pipediag.capture.frameworks.tensorflow.tables.ids import (
    NotFromABatchError,
    cast_of,
    compute,
    handed_out_there,
    sources_of,
)
from pipediag.capture.frameworks.tensorflow.tables.lookups import Lookup, lookups_in
from pipediag.capture.frameworks.tensorflow.tables.masks import masks_zero
from pipediag.capture.frameworks.tensorflow.tables.parts import (
    Place,
    TableParts,
    event_names,
    once,
)
from pipediag.capture.frameworks.tensorflow.tables.softmax import softmaxes_in
from pipediag.capture.frameworks.tensorflow.tables.unfolded import (
    At,
    Frame,
    Unfolded,
    UnreadableGraphError,
)
from pipediag.capture.frameworks.tensorflow.tables.vocabulary import over_a_vocabulary
from pipediag.capture.frameworks.tensorflow.tables.work import (
    WholeTable,
    WholeTables,
    Writes,
    bytes_behind,
    writes_of,
)
from pipediag.capture.frameworks.tensorflow.traced_shapes import called_with
from pipediag.capture.graph_constants import constant_bytes
from pipediag.capture.step_tables import LookedUp, Passage, UnreadableStepError
from pipediag.session.recorded_tables import RecordedSoftmax, RecordedTableUse, RecordedVariable
from pipediag.tensorflow_names import LOOKUP
from pipediag.vocabulary import SparseOrDense, TablePart

Given = dict[tuple[int, str, int], Any]
_Label = tuple[int, TablePart]
"""Which table, by the id of its variable, and which part of what it costs."""
_VOCABULARY: Any = ("vocabulary",)
_NOT_TRACED = "No traced function was seen in the step: it runs eagerly, so no graph tells."
_NO_MATCH = "A batch has another structure than the step was traced for."


class TracedTables:
    """Those of one loop; each table once, in the function that looks it up.

    Raises:
        UnreadableStepError: no function was traced, or its graph can't be read.
    """

    def __init__(self, functions: Iterable[Any]) -> None:
        self._steps = [step for one in functions if (step := _step_of(one)) is not None]
        if not self._steps:
            raise UnreadableStepError(_NOT_TRACED)
        self.tables: Sequence[TracedTable] = _each_once(self._steps)
        labels = _labels(self._steps)
        self.vocabulary_operations = [name for name in labels if labels[name] == _VOCABULARY]
        seen = {id(weight): one for step in self._steps for weight, one in step.softmaxes}
        for table in self.tables:
            table.use.operations = _by_part(labels, id(table.variable))
            table.softmax = seen.get(id(table.variable))
        for weight in seen.keys() - {id(table.variable) for table in self.tables}:
            seen[weight].update_operations = _by_part(labels, weight).get("update", [])
        self.softmaxes: Sequence[RecordedSoftmax] = list(seen.values())
        self.constant_bytes = sum(step.constant_bytes for step in self._steps)

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

        parts, of_replicas = nest.flatten(batch, expand_composites=True), parts_by_replica(batch)
        given: Given = {}
        for step in self._steps:
            given.update(step.handed_out(parts, of_replicas))
        return given

    def of_call(self, function: Any, args: Iterable[Any], kwargs: dict[str, Any]) -> Given | None:
        """By the arguments of the function."""
        step = next((one for one in self._steps if one.function is function), None)
        return None if step is None else step.called(tuple(args), kwargs)


class _Step:
    """One traced function."""

    def __init__(self, function: Any, concrete: Any, unfolded: Unfolded) -> None:
        self.function = function
        self.unfolded = unfolded
        self._concrete = concrete
        lookups: dict[int, list[Lookup]] = {}
        for lookup in lookups_in(unfolded):
            lookups.setdefault(id(lookup.handle), []).append(lookup)
        variables = {id(one.handle): one for one in _variables_of(concrete)}
        writes = writes_of(unfolded)
        whole = WholeTables(unfolded)
        self.softmaxes = list(softmaxes_in(unfolded, variables))
        self.tables = [
            TracedTable(unfolded, variables[handle], found, writes, whole)
            for handle, found in lookups.items()
            if handle in variables and _is_a_table(variables[handle], writes)
        ]
        _join_copies(self.tables)
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

    def labels(self) -> dict[str, _Label | None]:
        """What operations are, by the names that a profile may have for them."""
        parts = [(id(table.variable), table.parts(self._whole)) for table in self.tables]
        labels: dict[Place, _Label | None] = once([*parts, *self._updates_of_weights()])
        for place in over_a_vocabulary(self.unfolded, self._weights):
            labels.setdefault(place, _VOCABULARY)
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

    def handed_out(self, parts: list[Any], of_replicas: list[list[Any]]) -> Given:
        """What stands for the parts of a batch that the step draws itself: all of them together,
        or one replica after the other."""
        given: Given = {}
        drawn = 0
        for frame, op in self.unfolded.operations:
            if op.type == HANDED_OUT or hands_out_to_all(self.unfolded, frame, op):
                # A strategy has some for the part of one replica, or for what is there at all.
                if _are_of(op.outputs, parts):
                    given.update(_standing_for(frame, op, parts))
            elif op.type == HANDS_OUT and not _finds_the_end(frame, of_replicas):
                of_replica = of_replicas[drawn % len(of_replicas)]
                if not _are_of(op.outputs, of_replica):
                    raise UnreadableStepError(_NO_MATCH)
                given.update(_standing_for(frame, op, of_replica))
                drawn += 1
        return given

    def called(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Given:
        from tensorflow.python.util import nest

        graph = self._concrete.graph
        flat = nest.flatten((args, kwargs), expand_composites=True)
        parts = [one for one in flat if hasattr(one, "dtype") and hasattr(one, "shape")]
        inputs = called_with(graph)
        if len(parts) != len(inputs) or any(
            tensor.dtype != _dtype(part) or not tensor.shape.is_compatible_with(part.shape)
            for tensor, part in zip(inputs, parts, strict=True)
        ):
            raise UnreadableStepError(_NO_MATCH)
        root = self.unfolded.root
        return {At(root, tensor).key: part for tensor, part in zip(inputs, parts, strict=True)}


def _finds_the_end(frame: Frame, of_replicas: list[list[Any]]) -> bool:
    """Whether a strategy draws there where it knows that nothing is left."""
    return len(of_replicas) > 1 and frame.within is not None


def _are_of(tensors: Sequence[Any], parts: list[Any]) -> bool:
    """Whether these could be parts of the batch."""
    return [one.dtype for one in tensors] == [one.dtype for one in parts]


def _standing_for(frame: Frame, op: Any, parts: list[Any]) -> Given:
    pairs = zip(op.outputs, parts, strict=True)
    return {At(frame, tensor).key: part for tensor, part in pairs}


class TracedTable:
    """One table in one traced function."""

    def __init__(
        self,
        step: Unfolded,
        variable: Any,
        lookups: list[Lookup],
        writes: Writes,
        whole: WholeTables,
    ) -> None:
        self.variable = of_all_devices(variable)
        self._step = step
        self._lookups = lookups
        self._handle = variable.handle
        self._shape = shape = tuple(variable.shape.as_list())
        self.record = RecordedVariable(
            layer=variable.name.removesuffix(":0"),
            rows=shape[0],
            dim=math.prod(shape[1:]),
            dtype=variable.dtype.base_dtype.name,
            trainable=bool(variable.trainable),
            slots=0,
            mask_zero=masks_zero(step, lookups),
        )
        work = whole.of(variable.handle, shape)
        self.use = _use_of(variable, work, lookups, writes, step.handles())
        self.softmax: RecordedSoftmax | None = None
        self.passage: Passage | None = None
        self.ids_missing: str | None = None
        self._copies: list[TracedTable] = []
        try:
            self.passage = _passage(step, lookups)
            self._sources = {one.key for each in lookups for one in sources_of(step, each.ids)}
        except NotFromABatchError as lack:
            self.ids_missing = f"The ids can't be computed from a batch: {lack}."

    def parts(self, whole: WholeTables) -> dict[Place, TablePart]:
        """Which operations of the step are which part of what it costs."""
        return TableParts(self._step, whole, self._handle, self._shape).by_place()

    def joins(self, copy: TracedTable) -> None:
        """Count the lookups of another replica with its own."""
        self._copies.append(copy)
        if copy.ids_missing is not None:
            self.passage, self.ids_missing = None, copy.ids_missing

    def answers(self, given: Given) -> bool:
        """Whether all that its ids are computed from is there, of all replicas."""
        return self._sources <= given.keys() and all(one.answers(given) for one in self._copies)

    def looked_up(self, given: Given) -> list[LookedUp]:
        """Computed as the step computes them, those of all replicas."""
        found = []
        # Where a loop is written out several times, each turn looks up a batch of its own.
        branch = self._lookups[0].branch
        for lookup in (one for one in self._lookups if one.branch is branch):
            cast = cast_of(self._step, lookup.ids)
            before = cast.before if cast else None
            found.append(
                LookedUp(
                    compute(self._step, lookup.ids, given).numpy(),
                    None if before is None else compute(self._step, before, given).numpy(),
                )
            )
        return found + [one for copy in self._copies for one in copy.looked_up(given)]


def _join_copies(tables: Sequence[TracedTable]) -> None:
    """Have the first of a strategy's copies tell of all of them."""
    firsts: dict[int, TracedTable] = {}
    for table in tables:
        first = firsts.setdefault(id(table.variable), table)
        if first is not table:
            first.joins(table)


def _each_once(steps: Sequence[_Step]) -> list[TracedTable]:
    """Each table in the step that trains it, if one does; of a strategy's copies, the first."""
    found: dict[int, TracedTable] = {}
    for table in (one for step in steps for one in step.tables):
        whole = id(of_all_devices(table.variable))
        known = found.get(whole)
        if known is None or (known.use.gradient is None and table.use.gradient is not None):
            found[whole] = table
    return list(found.values())


def _labels(steps: Sequence[_Step]) -> dict[str, _Label | None]:
    """Of all functions; None for a name that means different things in two of them."""
    labels: dict[str, _Label | None] = {}
    for step in steps:
        for name, label in step.labels().items():
            labels[name] = label if labels.setdefault(name, label) == label else None
    return labels


def _by_part(labels: dict[str, _Label | None], table: int) -> dict[TablePart, list[str]]:
    found: dict[TablePart, list[str]] = {}
    for name, label in labels.items():
        if label is not None and label != _VOCABULARY and label[0] == table:
            found.setdefault(label[1], []).append(name)
    return found


def _step_of(function: Any) -> _Step | None:
    """The function as it was traced last for the largest batches: others end an epoch."""
    traced = list(function._list_all_concrete_functions())
    if not traced:
        return None
    # Of those alike, `max` takes the first.
    concrete = max(reversed(traced), key=_rows)
    try:
        return _Step(function, concrete, Unfolded(concrete))
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


def _is_a_table(variable: Any, writes: Writes) -> bool:
    """Not so a slot of an optimizer or a metric's counts, which a step writes too."""
    if not variable.dtype.is_floating or not variable.shape.is_fully_defined():
        return False
    trained = variable.trainable or variable.handle not in writes
    return bool(trained and variable.shape.rank >= 1 and variable.shape[0] > 1)


def _use_of(
    variable: Any,
    work: WholeTable,
    lookups: list[Lookup],
    writes: Writes,
    handles: dict[int, Any],
) -> RecordedTableUse:
    own = id(variable.handle)
    slots = [
        handles[other]
        for other in work.variables
        if other != own
        and other in handles
        and handles[other] in writes
        and beside(variable, handles[other])
    ]
    changed = {own, *map(id, slots)}
    return RecordedTableUse(
        variable=variable.name,
        device=variable.device,
        lookups=len(lookups),
        copied_on_lookup=any(lookup.read is not None for lookup in lookups),
        copies=_copies(lookups) if own in writes.rows else 0,
        exchanged=_exchanged(variable, work) if variable.handle in writes else None,
        gradient=_gradient(work, own, writes) if variable.handle in writes else None,
        gradient_spread=work.spread,
        writes_rows=bool(changed & writes.rows),
        writes_whole=bool(changed & writes.whole),
        whole_table_operations=dict(sorted(work.operations.items())),
        temporary_bytes=work.temporary_bytes,
        temporary_peak_bytes=work.temporary_peak_bytes,
        slots=len(slots),
        slot_bytes=sum(map(bytes_behind, slots)),
    )


def _exchanged(variable: Any, work: WholeTable) -> SparseOrDense | None:
    if copies_of(variable) < 2:
        return None
    return "dense" if work.exchanged else "sparse"


def _copies(lookups: list[Lookup]) -> int:
    """Reads of the whole variable; XLA takes the rows of it alone."""
    return len({one.read.key for one in lookups if one.read is not None and not one.compiled})


def _gradient(work: WholeTable, own: int, writes: Writes) -> SparseOrDense:
    """Rows that are written, or spread over the table first, came as rows."""
    came_as_rows = work.spread or own in writes.rows
    return "sparse" if came_as_rows and not work.dense_gradient else "dense"


def _passage(step: Unfolded, lookups: list[Lookup]) -> Passage:
    """How the ids come; of several ways, that of the first, and any float on one of them."""
    dtypes, vocabularies = [], []
    for lookup in lookups:
        branch = lookup.branch
        if branch is not None and not handed_out_there(step, lookup):
            raise NotFromABatchError(f"they are looked up within `{branch.within}` of the graph")
        for source in sources_of(step, lookup.ids):
            dtypes.append(source.tensor.dtype.name)
        vocabularies += _vocabularies(step, lookup.ids)
    casts = [cast.through for one in lookups if (cast := cast_of(step, one.ids)) is not None]
    if not dtypes:
        raise NotFromABatchError("they do not come from the batch")
    return Passage(dtypes[0], casts[0] if casts else None, tuple(vocabularies))


def _vocabularies(step: Unfolded, ids: At) -> list[Any]:
    """Handles of the tables of tokens on the way of the ids."""
    found, seen, waiting = [], set(), [step.source(ids)]
    while waiting:
        at = waiting.pop()
        if at.key in seen:
            continue
        seen.add(at.key)
        if at.op.type in LOOKUP:
            handle = step.captured(At(at.frame, at.op.inputs[0]))
            if handle is not None:
                found.append(handle)
        waiting.extend(step.source(one) for one in at.inputs())
    return found


def _dtype(value: Any) -> Any:
    from tensorflow.python.framework import dtypes

    return dtypes.as_dtype(value.dtype)
