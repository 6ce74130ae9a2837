"""Keras's callbacks and trainer in small, with code that lies in Keras's files."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

_FILE = "/usr/lib/site-packages/keras/src/toy.py"

_SOURCE = """
class Callback:
    def on_train_begin(self, logs=None): pass
    def on_train_end(self, logs=None): pass
    def on_epoch_begin(self, epoch, logs=None): pass
    def on_epoch_end(self, epoch, logs=None): pass
    def on_train_batch_begin(self, batch, logs=None): pass
    def on_train_batch_end(self, batch, logs=None): pass

class History(Callback):
    def on_train_begin(self, logs=None):
        self.epochs = []
    def on_epoch_end(self, epoch, logs=None):
        self.epochs.append(epoch)

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
    def on_train_batch_begin(self, batch, logs=None):
        for callback in self.callbacks:
            callback.on_train_batch_begin(batch, logs)
    def on_train_batch_end(self, batch, logs=None):
        for callback in self.callbacks:
            callback.on_train_batch_end(batch, logs)

class Trainer:
    def fit(self, callbacks, epochs=1):
        told = CallbackList(callbacks)
        told.on_train_begin()
        for epoch in range(epochs):
            told.on_epoch_begin(epoch)
            told.on_epoch_end(epoch, {"loss": 0.5})
        told.on_train_end()
        return self
    def evaluate(self, x):
        return x
"""


def toy_keras() -> Any:
    """Fresh classes, for a test to hook."""
    space: dict[str, Any] = {"__name__": "keras.src.toy"}
    exec(compile(_SOURCE, _FILE, "exec"), space)
    classes = {name: one for name, one in space.items() if name[0].isupper()}
    return SimpleNamespace(__file__=_FILE, **classes)
