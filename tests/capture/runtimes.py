"""A framework without anything behind it: batches are lists, and iterators are Python's."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any

from pipediag.capture.runtime import (
    DatasetFacts,
    IteratorModel,
    StepTables,
    UnreadableStepError,
)


class ToyCancellation:
    """Of a call that heeds it."""

    def __init__(self) -> None:
        self.lack: str | None = None
        self.started = False
        self.context = nullcontext()

    def start(self) -> None:
        self.started = True


class ToyRuntime:
    """Runs steps at once, and has no devices."""

    def __init__(self) -> None:
        self.no_models: str | None = "A toy tells nothing while it runs."
        self.models: list[IteratorModel] = []
        """What pipelines will tell, in turn."""
        self.tables: StepTables | None = None
        self.others: str | None = None

    def rows(self, batch: Any) -> int | None:
        return len(batch)

    def pull(self, iterator: Iterator[Any]) -> Any:
        return next(iterator)

    def repeated(self, batch: Any, element_spec: Any) -> Any:
        return itertools.repeat(batch)

    def handed_once(self, batches: Sequence[Any], element_spec: Any) -> Any:
        return iter(batches)

    def not_handed_once(self, iterator: Any, element_spec: Any, batches: int) -> str | None:
        return None

    def step_tables(self, functions: Sequence[Any]) -> StepTables:
        if self.tables is None:
            raise UnreadableStepError("A toy has no tables.")
        return self.tables

    def unobserved(self, dataset: Any) -> Any:
        return iter(dataset)

    def describe_dataset(self, dataset: Any) -> DatasetFacts:
        return DatasetFacts("a list")

    def model_of(self, iterator: Any) -> IteratorModel | None:
        return self.models.pop(0) if self.models else None

    def other_processes(self) -> str | None:
        return self.others

    def cancellation(self) -> ToyCancellation:
        return ToyCancellation()

    def clock(self) -> ToyRuntime:
        return self

    def settled_ns(self, now_ns: int) -> int:
        return now_ns
