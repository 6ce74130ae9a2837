"""Pipelines and a model as far as arms look at them."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from pipediag.capture.replay import NotReplayableError
from pipediag.capture.trying import arms
from tests.capture.runtimes import ToyRuntime


class Pipeline:
    """A dataset; its iterators are numbered in the order in which they are made."""

    element_spec = None
    rows = 4
    made = 0
    changes_of: ClassVar[dict[str, tuple[Any, ...]]] = {}
    """By iterator: what was changed of its pipeline."""

    def __init__(self, changes: tuple[Any, ...] = ()) -> None:
        self.changes = changes

    def iterator(self) -> str:
        Pipeline.made += 1
        name = f"iterator {Pipeline.made}"
        Pipeline.changes_of[name] = self.changes
        return name


class Pipelines(ToyRuntime):
    """Runs them."""

    def rows(self, batch: Any) -> int:
        return Pipeline.rows

    def pull(self, iterator: Any) -> Any:
        return f"batch of {iterator}"

    def unobserved(self, dataset: Pipeline) -> str:
        return dataset.iterator()


class Model:
    """One that can be compiled otherwise."""

    def __init__(self) -> None:
        self.used: list[dict[str, Any]] = []
        self.refuses = False

    def check(self, settings: dict[str, Any]) -> None:
        if settings and self.refuses:
            raise NotReplayableError("It can't be compiled so.")

    def use(self, settings: dict[str, Any]) -> None:
        self.used.append(settings)

    def on_elements(self, settings: dict[str, Any]) -> Any:
        moved = settings.get("moved_layers")
        return f"what {', '.join(moved)} does" if moved else None

    def batches_per_step(self, settings: dict[str, Any], own: int) -> int:
        return int(settings.get("steps_per_execution", own))


def played(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let arms be built of such pipelines."""
    monkeypatch.setattr(Pipeline, "made", 0)
    monkeypatch.setattr(Pipeline, "rows", 4)
    monkeypatch.setattr(arms, "rebuild", lambda _, changes, **__: Pipeline(changes))
