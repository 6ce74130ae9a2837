"""The embedding tables of a step that no function runs, told from the operations that it runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pipediag.capture.frameworks.tensorflow.tables.eager_graph import EagerGraph
from pipediag.capture.frameworks.tensorflow.tables.eager_operations import (
    MOST_OPERATIONS,
    EagerOperation,
    Place,
    SomeTensors,
    WholeStep,
)
from pipediag.capture.frameworks.tensorflow.tables.ids import (
    NotFromABatchError,
    cast_of,
    outside_functions,
    sources_of,
)
from pipediag.capture.frameworks.tensorflow.tables.listening import Listening
from pipediag.capture.frameworks.tensorflow.tables.step import Step
from pipediag.capture.frameworks.tensorflow.tables.table import Given, TableInStep
from pipediag.capture.frameworks.tensorflow.tables.unfolded import (
    At,
    Unfolded,
    UnreadableGraphError,
)
from pipediag.capture.runtime import KeptBatch, UnreadableStepError
from pipediag.session.recorded_tables import RecordedSoftmax

_NO_VARIABLE = "No operation of TensorFlow that ran in the step has to do with a variable."
_TOO_MANY = f"The step runs more than {MOST_OPERATIONS} operations one by one."


class EagerSteps:
    """Of one loop: the first step that ran what the one before it ran is read, and later ones tell
    their ids."""

    def __init__(self) -> None:
        self._step: EagerTables | None = None
        self._heard: WholeStep | SomeTensors = WholeStep()
        self._before: list[str] | None = None
        """What the step before ran."""
        self._listening: Listening | None = None

    def begin(self) -> None:
        """A step begins on this thread."""
        self._heard = WholeStep() if self._step is None else self._step.next_heard()
        self._listening = Listening(self._heard.told)
        self._listening.begin()

    def end(self) -> None:
        """It is over, or what is left of it does not matter."""
        if self._listening is not None:
            self._listening.end()

    def can_be_read(self) -> bool:
        """Whether the step that is over is as the loop's steps are: others come between epochs."""
        heard = self._heard
        assert self._listening is not None
        if self._listening.lack is not None or isinstance(heard, SomeTensors) or heard.too_many:
            return True
        before, self._before = self._before, [one.type for one in heard.operations]
        return before == self._before

    def read(self) -> EagerTables:
        """What the step that is over tells.

        Raises:
            UnreadableStepError: nothing.
        """
        heard, self._heard = self._heard, WholeStep()
        assert self._listening is not None
        if self._listening.lack is not None:
            raise UnreadableStepError(self._listening.lack)
        assert isinstance(heard, WholeStep)
        if heard.too_many:
            raise UnreadableStepError(_TOO_MANY)
        self._step = EagerTables(heard.operations)
        return self._step

    def given(self) -> Given | None:
        """What to compute the ids of the step from that is over; None where it is another one."""
        heard = self._heard
        return heard.found if isinstance(heard, SomeTensors) and heard.complete else None


class EagerTables:
    """Those of one step.

    Its operations have no names in a profile, so that none is told to be a part of a table's cost.

    Raises:
        UnreadableStepError: its operations can't be read as a graph.
    """

    vocabulary_operations: Sequence[str] = ()

    def __init__(self, operations: Sequence[EagerOperation]) -> None:
        graph = EagerGraph(operations)
        if not graph.variables:
            raise UnreadableStepError(_NO_VARIABLE)
        try:
            step = Step(Unfolded(graph.graph), graph.variables, _EagerTable)
        except UnreadableGraphError as lack:
            raise UnreadableStepError(str(lack)) from lack
        self._operations = operations
        self._graph = graph  # which TensorFlow's tensors do not keep
        self.tables: Sequence[TableInStep] = step.tables
        softmaxes = {id(weight): one for weight, one in step.softmaxes}
        for table in self.tables:
            table.softmax = softmaxes.get(id(table.variable))
            # When Python lets a tensor go, which the graph does not tell, decides on it.
            table.use.temporary_peak_bytes = None
        self.softmaxes: Sequence[RecordedSoftmax] = list(softmaxes.values())
        self.constant_bytes = 0
        """What is called by itself has them in no graph."""

    def next_heard(self) -> SomeTensors:
        """What is to be kept of a step that follows."""
        return SomeTensors(self._operations, self._places())

    def draws_as_counted(self, *, batches_per_call: int, replicas: int, distributed: bool) -> bool:
        """It draws none: Python does."""
        return batches_per_call == 1 and replicas == 1 and not distributed

    def of_batch(self, batch: Any) -> Given:  # noqa: ARG002
        """What runs tells the ids, and not the batch."""
        return {}

    def of_kept(self, batches: Sequence[KeptBatch]) -> Given:  # noqa: ARG002
        """No function of it keeps any."""
        return {}

    def of_call(self, function: Any, args: Iterable[Any], kwargs: dict[str, Any]) -> Given | None:  # noqa: ARG002
        return None

    def _places(self) -> Mapping[Any, Place]:
        return {
            at.key: self._graph.place(at.tensor)
            for table in self.tables
            if isinstance(table, _EagerTable)
            for at in table.needed
        }


class _EagerTable(TableInStep):
    """Its ids are those that were looked up, wherever they come from."""

    @property
    def needed(self) -> Iterator[At]:
        """What tells its ids."""
        if self.ids_missing is None:
            for lookup in self._followed:
                yield from self._computed_from(lookup.ids)

    def _computed_from(self, ids: At) -> Iterator[At]:
        yield from outside_functions(self._step, ids)
        cast = cast_of(self._step, ids)
        if cast is not None and cast.before is not None:
            yield from outside_functions(self._step, cast.before)

    def _made_of(self, ids: At) -> Iterator[At]:
        """As the batch has them, or else as the step makes them, drawn at random or in Python."""
        try:
            found = list(sources_of(self._step, ids))
        except NotFromABatchError:
            found = []
        return iter(found or list(outside_functions(self._step, ids)))
