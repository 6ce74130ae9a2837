"""Cancelling a call, with TensorFlow's module played in the shapes that it has had."""

from __future__ import annotations

import sys
import threading
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import Any

import pytest

from pipediag.capture.frameworks.tensorflow.cancellation import OfOneCall


class FakeCancellation:
    """What stands for a call's, and tells when it was cancelled."""

    def __init__(self) -> None:
        self.lack: str | None = None
        self.started = False
        self.context: AbstractContextManager[None] = nullcontext()
        self.cancelled = threading.Event()

    def start(self) -> None:
        self.started = True
        self.cancelled.set()


class Manager:
    cancelled = False

    def start_cancel(self) -> None:
        self.cancelled = True


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module of TensorFlow 2.12, which has managers and no contexts."""
    package, module = ModuleType("eager"), ModuleType("cancellation")
    module.CancellationManager = Manager  # type: ignore[attr-defined]
    package.cancellation = module  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tensorflow.python.eager", package)
    monkeypatch.setitem(sys.modules, "tensorflow.python.eager.cancellation", module)
    return module


def grow_contexts(module: Any, active: Manager | None) -> list[Manager]:
    entered: list[Manager] = []

    def context(manager: Manager) -> AbstractContextManager[None]:
        entered.append(manager)
        return nullcontext()

    module.CancellationManagerContext, module.context = context, lambda: active
    return entered


def test_a_call_is_made_inside_a_context(module: ModuleType) -> None:
    entered = grow_contexts(module, active=None)
    cancellation = OfOneCall()
    with cancellation.context:
        cancellation.start()

    assert (cancellation.lack, cancellation.started) == (None, True)
    assert [manager.cancelled for manager in entered] == [True]


def test_a_tensorflow_without_contexts_says_what_that_means(module: ModuleType) -> None:
    cancellation = OfOneCall()
    with cancellation.context:
        pass

    assert cancellation.lack is not None
    assert "no way to cancel" in cancellation.lack


def test_a_context_of_the_scripts_own_is_left_alone(module: ModuleType) -> None:
    entered = grow_contexts(module, active=Manager())
    cancellation = OfOneCall()

    assert cancellation.lack is not None
    assert "left alone" in cancellation.lack
    assert entered == []
