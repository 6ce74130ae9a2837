"""Keras's calls and callbacks are timed, and go on as they would: with a `fit` of the same shape."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from pipediag.capture.frameworks.keras.timed_calls import TimedCalls
from pipediag.capture.guard import Guard
from tests.capture.timeline.stage import TimelineStage

KERAS = "/usr/lib/site-packages/keras/src/callbacks/callback.py"


def keras_function(source: str, name: str) -> FunctionType:
    """A function whose code lies in Keras."""
    space: dict[str, Any] = {}
    exec(compile(source, KERAS, "exec"), space)
    return space[name]  # type: ignore[no-any-return]


class Callback:
    """Keras's base class: its hooks do nothing."""

    calls: list[str]

    def __init__(self) -> None:
        self.calls = []


class _Keras:
    source = """
class Callback:
    def on_train_begin(self, logs=None): pass
    def on_train_end(self, logs=None): pass
    def on_epoch_begin(self, epoch, logs=None): pass
    def on_epoch_end(self, epoch, logs=None): pass

class LambdaCallback(Callback):
    def __init__(self, on_epoch_end):
        self.on_epoch_end = on_epoch_end

class History(Callback):
    def on_train_begin(self, logs=None):
        self.history = []
    def on_epoch_end(self, epoch, logs=None):
        self.history.append(epoch)

class CallbackList(Callback):
    def __init__(self, callbacks):
        self.callbacks = list(callbacks)
    def on_train_begin(self, logs=None):
        for callback in self.callbacks:
            callback.on_train_begin(logs)
    def on_train_end(self, logs=None):
        for callback in self.callbacks:
            callback.on_train_end(logs)
    def on_epoch_begin(self, epoch, logs=None):
        for callback in self.callbacks:
            callback.on_epoch_begin(epoch, logs)
    def on_epoch_end(self, epoch, logs=None):
        for callback in self.callbacks:
            callback.on_epoch_end(epoch, logs)

class Trainer:
    def fit(self, callbacks, epochs=1):
        told = CallbackList(callbacks)
        told.on_train_begin()
        for epoch in range(epochs):
            told.on_epoch_begin(epoch)
            told.on_epoch_end(epoch, {"loss": 0.5})
        told.on_train_end()
        return self
    def evaluate(self, x, *, batch_size=None):
        return x
    def summary(self):
        return "model"
"""
