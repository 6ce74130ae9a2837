"""Where pipediag hooks into Keras: epochs that can be held, their ends, calls, and optimizers.

Keras 2 is the package `keras` beside TensorFlow 2.14 and 2.15, and `tf_keras` after that.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from pipediag.capture.frameworks import Hook
from pipediag.capture.frameworks.keras.callbacks import CallbacksAtBatches, pass_through
from pipediag.capture.frameworks.keras.facts import watch_compile, watch_layers
from pipediag.capture.frameworks.keras.timed_calls import PredictTrials, TimedCalls
from pipediag.capture.watching.watchers import Watchers

KERAS_2 = ("tf_keras.src", "keras.src")

_EPOCHS = "telling epochs apart"
_OTHER_TRAINERS = {"jax": "JAXTrainer", "torch": "TorchTrainer"}


class KerasHooks:
    """The hooks on Keras, wherever each version keeps what is hooked."""

    def __init__(self, watchers: Watchers) -> None:
        self._guard = guard = watchers.guard
        self._conductor = conductor = watchers.conductor
        self._updates = watchers.updates
        self._held = watchers.held
        trials = PredictTrials(watchers.recorder.recording.predictions, watchers.timeline)
        self._timed = TimedCalls(
            watchers.timeline,
            guard,
            conductor.evaluated,
            conductor.fit_over,
            trials.called if watchers.held.makes_trials else None,
        )
        self._here = threading.local()
        """`over_ns`: the end of the last step so far of the epoch that a thread walks over."""

    def by_module(self) -> Iterator[tuple[str, Hook]]:
        """Yield each module that may be imported, with its hook."""
        yield "keras.src.trainers.epoch_iterator", self._on_epoch_iterator
        adapters = "keras.src.trainers.data_adapters"
        yield f"{adapters}.py_dataset_adapter", self._on_py_dataset_adapter
        yield "keras.src.trainers.trainer", self._on_trainer
        yield "keras.src.backend.tensorflow.trainer", self._on_tensorflow_trainer
        for backend, trainer in _OTHER_TRAINERS.items():
            yield f"keras.src.backend.{backend}.trainer", partial(self._on_other_trainer, trainer)
        yield "keras.src.callbacks.callback_list", self._on_callbacks
        for package in KERAS_2:
            yield f"{package}.layers.core.embedding", self._on_embedding
            yield f"{package}.engine.data_adapter", self._on_data_handler
            yield f"{package}.engine.training", self._on_keras_2_model
            yield f"{package}.callbacks", self._on_callbacks
            yield f"{package}.optimizers.legacy.optimizer_v2", self._on_legacy_optimizer

    def _on_other_trainer(self, name: str, module: Any) -> None:
        self._timed.time_methods(getattr(module, name))

    def _on_trainer(self, module: Any) -> None:
        watch_compile(module.Trainer, self._guard)

    def _on_keras_2_model(self, module: Any) -> None:
        watch_compile(module.Model, self._guard)
        self._timed.time_methods(module.Model)

    def _on_epoch_iterator(self, module: Any) -> None:
        # Keras 3.0 to 3.6 have none, and walk over the data in each backend's own way.
        if "_enumerate_iterator" in vars(module.EpochIterator):
            self._hold(module.EpochIterator, "_enumerate_iterator")

    def _on_tensorflow_trainer(self, module: Any) -> None:
        self._timed.time_methods(module.TensorFlowTrainer)
        # From Keras 3.7 on it is inherited, and made of what is hooked above.
        if "enumerate_epoch" in vars(module.TFEpochIterator):
            self._hold(module.TFEpochIterator, "enumerate_epoch")

    def _on_data_handler(self, module: Any) -> None:
        self._hold(module.DataHandler, "steps")

    def _hold(self, walker: type, method: str) -> None:
        """Repeat the step at which trials begin until they are over."""
        conductor, held, guard = self._conductor, self._held, self._guard
        original = vars(walker)[method]
        holds = guard.entry(
            "holding an epoch", lambda: conductor.holds_epoch, lambda: False, vital=True
        )

        begins = guard.entry(_EPOCHS, conductor.epoch_begins, vital=True)
        walked = guard.entry(_EPOCHS, conductor.epoch_ended, vital=True)

        def enumerate_and_hold(*args: Any, **kwargs: Any) -> Any:
            with held.in_epoch():
                here = self._here
                here.over_ns = None
                begins()
                for step in original(*args, **kwargs):
                    yield step
                    while holds():
                        yield step
                    here.over_ns = time.monotonic_ns()
                # Since then the epoch's iterator was let go, which can take a while.
                walked(here.over_ns)

        setattr(walker, method, guard.hook(original, enumerate_and_hold))

    def _on_py_dataset_adapter(self, module: Any) -> None:
        """End an epoch before its PyDataset does: that is the script's code, and no step."""
        conductor = self._conductor
        over = self._guard.entry(
            _EPOCHS,
            lambda *_, **__: conductor.epoch_ended(getattr(self._here, "over_ns", None)),
            vital=True,
        )
        original = module.PyDatasetAdapter.on_epoch_end
        module.PyDatasetAdapter.on_epoch_end = self._guard.before(original, over)

    def _on_callbacks(self, module: Any) -> None:
        # Other modules of the same names only pass it on: it is hooked where it is defined.
        if module.CallbackList.__module__ != module.__name__:
            return
        conductor, guard = self._conductor, self._guard
        for name, told in (
            ("on_epoch_begin", conductor.epoch_ended),
            ("on_epoch_end", conductor.epoch_over),
        ):
            at_epoch = guard.entry(_EPOCHS, lambda *_, told=told, **__: told(), vital=True)
            original = getattr(module.CallbackList, name)
            setattr(module.CallbackList, name, guard.before(original, at_epoch))
        at_batches, what = CallbacksAtBatches(self._held), "clocking callbacks and leaving them out"
        for name, enter in (
            ("on_train_batch_begin", at_batches.begin),
            ("on_train_batch_end", at_batches.end),
        ):
            pass_through(module.CallbackList, name, guard, what, enter)
        self._timed.time_callbacks(module.CallbackList)

    def _on_embedding(self, module: Any) -> None:
        watch_layers(module.Embedding, self._guard)

    def _on_legacy_optimizer(self, module: Any) -> None:
        self._updates.install_optimizer(module.OptimizerV2, "apply_gradients", self._guard)
