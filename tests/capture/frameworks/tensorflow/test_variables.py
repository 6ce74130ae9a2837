from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pipediag.capture.frameworks.tensorflow.framework import TensorFlowHooks
from pipediag.capture.guard import Guard
from pipediag.capture.watching.updates import UpdateWatch


class Base:
    trainable = True
    dtype = SimpleNamespace(is_floating=True)

    def assign(self, value: int) -> int:
        return value


class Resource(Base):
    pass


def test_writes_that_tensorflow_has_put_around_those_of_the_class_are_seen() -> None:
    """As its operations on weak tensors do with `ResourceVariable`, once they are imported."""
    originals = Base.assign
    Resource.assign = originals  # type: ignore[method-assign]
    updates = UpdateWatch()
    hooks: Any = SimpleNamespace(_with=SimpleNamespace(updates=updates), _guard=Guard(print))
    module = SimpleNamespace(BaseResourceVariable=Base, ResourceVariable=Resource)
    TensorFlowHooks._on_variables(hooks, module)

    assert Resource().assign(3) == 3
    assert updates.updated
