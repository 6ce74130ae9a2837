"""Hooks into Keras: 3 on any backend, and 2 under each name that it has had.

Keras 2 is the package `keras` beside TensorFlow 2.14 and 2.15, and `tf_keras` after that.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from functools import partial
from itertools import product
from typing import Any

from pipediag.capture.callsites import call_site, defined_at, unwrap
from pipediag.capture.frameworks.keras import facts
from pipediag.capture.frameworks.keras.paired_calls import PairedCalls, see_ends_of_loops
from pipediag.capture.guard import Guard, nothing
from pipediag.capture.measuring.sampling import CALLBACK_CLOCK
from pipediag.capture.recorder import version_of
from pipediag.capture.timeline import Timeline
from pipediag.capture.watching.step_clock import Hook, Watchers
from pipediag.session.recording import RecordedEnvironment
from pipediag.session.timeline import Span
from pipediag.vocabulary import SpanKind

KERAS_2 = ("tf_keras.src", "keras.src")

_EPOCHS = "telling epochs apart"
_TIMED: dict[str, SpanKind] = {"fit": "fit", "evaluate": "evaluation", "predict": "evaluation"}
_TRAINERS = {"tensorflow": "TensorFlowTrainer", "jax": "JAXTrainer", "torch": "TorchTrainer"}
_POLICIES = (
    ("tf_keras.src.mixed_precision.policy", "global_policy"),
    ("keras.src.mixed_precision.policy", "global_policy"),
    ("keras.src.dtype_policies.dtype_policy", "dtype_policy"),
)
"""Modules in which each Keras has the type that layers compute in. Several may be imported."""
_SHOW_TRAINING = {
    "saving.saving_lib": ("save_model", "save_weights_only"),
    "saving.saving_api": ("save_model", "save_weights"),
    "legacy.saving.legacy_h5_format": ("save_model_to_hdf5", "save_weights_to_hdf5_group"),
    "layers.layer": ("Layer.get_weights",),
    "engine.base_layer": ("Layer.get_weights",),
    "engine.training": ("Model.get_weights",),
}
"""Functions by which a script saves or reads what it has trained, by module of any Keras."""


class Keras:
    """The hooks on Keras, wherever each version keeps what is hooked."""

    def __init__(self, watchers: Watchers) -> None:
        self._guard = guard = watchers.guard
        self._steps = steps = watchers.steps
        self._updates = watchers.updates
        self._held = watchers.held
        self._state = watchers.state
        self._timeline = watchers.timeline
        self._fit_over = guard.entry("leaving a `fit` that is over", steps.fit_over, vital=True)
        self._paired: PairedCalls | None = None
        self._predicted: Callable[..., None] | None = None
        if self._held.makes_trials:
            predictions = watchers.recorder.recording.predictions
            self._paired = PairedCalls(predictions, self._timeline, steps)
            self._predicted = guard.entry("timing `predict_on_batch`", self._paired.predicted)
        self._here = threading.local()
        """`over_ns`: the end of the last step so far of the epoch that a thread walks over."""

    def by_module(self) -> Iterator[tuple[str, Hook]]:
        guard, updates = self._guard, self._updates
        for package, (module, paths) in product(KERAS_2, _SHOW_TRAINING.items()):
            yield f"{package}.{module}", partial(self._state.show_before, paths)
        yield "keras.src.trainers.epoch_iterator", self._on_epoch_iterator
        adapters = "keras.src.trainers.data_adapters"
        yield f"{adapters}.py_dataset_adapter", self._on_py_dataset_adapter
        compiled = facts.COMPILED
        yield "keras.src.trainers.trainer", lambda m: compiled.watch(m.Trainer, "compile", guard)
        yield "keras.src.models.model", self._on_models
        yield "keras.src.metrics.metric", self._on_metrics
        for backend, trainer in _TRAINERS.items():
            yield f"keras.src.backend.{backend}.trainer", partial(self._on_trainer, trainer)
        yield "keras.src.callbacks.callback_list", self._on_callbacks
        for package in KERAS_2:
            yield (
                f"{package}.layers.core.embedding",
                lambda one: facts.MADE.watch(one.Embedding, "__init__", guard),
            )
            yield f"{package}.engine.data_adapter", lambda one: self._hold(one.DataHandler, "steps")
            yield f"{package}.engine.training", self._on_keras_2_model
            yield f"{package}.callbacks", self._on_callbacks
            yield (
                f"{package}.optimizers.legacy.optimizer_v2",
                lambda one: updates.install_optimizer(one.OptimizerV2, guard),
            )

    @staticmethod
    def describe(environment: RecordedEnvironment) -> None:
        environment.keras = version_of("keras") or version_of("tf_keras")
        environment.legacy_keras = "tf_keras" in sys.modules
        # JAX is only described: its training is seen through Keras's loops on tf.data.
        environment.jax = version_of("jax")
        backend = _backend()
        if backend is not None or environment.legacy_keras:
            environment.keras_backend = backend or "tensorflow"
        policies = (
            str(getattr(sys.modules[module], function)().name)
            for module, function in _POLICIES
            if module in sys.modules
        )
        mixed = (name for name in policies if name.startswith("mixed"))
        environment.mixed_precision = next(mixed, None)

    def _on_trainer(self, name: str, module: Any) -> None:
        self.time_methods(getattr(module, name))
        # From Keras 3.7 on it is inherited, and made of what is hooked below.
        walker = getattr(module, "TFEpochIterator", None)
        if walker is not None and "enumerate_epoch" in vars(walker):
            self._hold(walker, "enumerate_epoch")

    def time_methods(self, model_class: type) -> None:
        for method, kind in _TIMED.items():
            if method in vars(model_class):
                self._time_method(model_class, method, kind)

    def _time_method(self, owner: type, method: str, kind: SpanKind) -> None:
        original, timeline, what = vars(owner)[method], self._timeline, f"timing {method}"
        begins = self._guard.entry(what, lambda: timeline.begins(kind, method, call_site()))
        ended = self._guard.entry(what, self._call_ended)
        left = self._fit_over if kind == "fit" else nothing
        predicted = self._predicted if method == "predict" else None

        def timed(model: Any, *args: Any, **kwargs: Any) -> Any:
            span, start_ns = begins(), time.perf_counter_ns()
            try:
                result = original(model, *args, **kwargs)
                took_ns = time.perf_counter_ns() - start_ns
            finally:
                left()
                ended(span)
            if predicted is not None:
                predicted(took_ns, result, model, args, kwargs)
            return result

        self._guard.replace(owner, method, self._guard.hook(original, timed))

    def _call_ended(self, span: Span | None) -> None:
        self._timeline.ended(span)
        if span is not None and span.kind == "evaluation":
            self._steps.evaluated(span)

    def _on_keras_2_model(self, module: Any) -> None:
        facts.COMPILED.watch(module.Model, "compile", self._guard)
        self.time_methods(module.Model)
        self._on_models(module)

    def _on_models(self, module: Any) -> None:
        if _backend() not in (None, "tensorflow"):
            return
        if self._paired is not None:
            self._paired.install(module.Model, self._guard)
        else:
            see_ends_of_loops(module.Model, self._guard, self._steps)

    def _on_metrics(self, module: Any) -> None:
        if self._paired is not None and _backend() in (None, "tensorflow"):
            self._paired.install_metrics(module.Metric, self._guard)

    def _on_epoch_iterator(self, module: Any) -> None:
        # Keras 3.0 to 3.6 have none, and walk over the data in each backend's own way.
        if "_enumerate_iterator" in vars(module.EpochIterator):
            self._hold(module.EpochIterator, "_enumerate_iterator")

    def _hold(self, walker: type, method: str) -> None:
        """Repeat the step at which trials begin until they are over."""
        steps, held, guard = self._steps, self._held, self._guard
        original = vars(walker)[method]
        holds = guard.entry(
            "holding an epoch", lambda: steps.holds_epoch, lambda: False, vital=True
        )
        walked = guard.entry(_EPOCHS, steps.epoch_ended, vital=True)

        def enumerate_and_hold(*args: Any, **kwargs: Any) -> Any:
            with held.in_epoch():
                here = self._here
                here.over_ns = None
                for step in original(*args, **kwargs):
                    yield step
                    while holds():
                        yield step
                    here.over_ns = time.monotonic_ns()
                # Since then the epoch's iterator was let go, which can take a while.
                walked(here.over_ns)

        guard.replace(walker, method, guard.hook(original, enumerate_and_hold))

    def _on_py_dataset_adapter(self, module: Any) -> None:
        """End an epoch before its PyDataset does: that is the script's code, and no step."""

        def over(*_: Any, **__: Any) -> None:
            self._steps.epoch_ended(getattr(self._here, "over_ns", None))

        owner = module.PyDatasetAdapter
        self._guard.tell_before(owner, "on_epoch_end", _EPOCHS, over, vital=True)

    def _on_callbacks(self, module: Any) -> None:
        # Other modules of the same names only pass it on: it is hooked where it is defined.
        if module.CallbackList.__module__ != module.__name__:
            return
        owner, steps = module.CallbackList, self._steps
        for name, told in (
            ("on_epoch_begin", steps.epoch_ended),
            ("on_epoch_end", steps.epoch_over),
        ):
            tell = lambda *_, told=told, **__: told()  # noqa: E731
            self._guard.tell_before(owner, name, _EPOCHS, tell, vital=True)
        time_callbacks(owner, self._guard, self._timeline)


def _backend() -> str | None:
    """Return the name of Keras 3's backend; None for Keras 2, which knows TensorFlow alone."""
    configuration = sys.modules.get("keras.src.backend.config")
    return None if configuration is None else str(configuration.backend())


class TimedCallbacks(list[Any]):
    """Takes the place of the owner's list, and times each callback from its turn to the next one's.

    Callbacks and their classes stay as they are: the script may send them to other processes.
    """

    def __init__(
        self, owner: Any, begins: Callable[[Any], Any], ended: Callable[[Any], None]
    ) -> None:
        self._own: list[Any] = owner.callbacks
        super().__init__(self._own)
        self._owner, self._begins, self._ended = owner, begins, ended
        self._walking: Generator[Any, None, None] | None = None
        owner.callbacks = self

    def __iter__(self) -> Generator[Any, None, None]:
        self._walking = self._walk(super().__iter__())
        return self._walking

    def _walk(self, callbacks: Iterator[Any]) -> Generator[Any, None, None]:
        for callback in callbacks:
            began = self._begins(callback)
            try:
                yield callback
            finally:
                self._ended(began)

    def __reduce_ex__(self, _: Any) -> Any:
        """Copy the callbacks alone."""
        return list, (self[:],)

    def put_back(self) -> None:
        """Give the owner its own list again, with what has been added to it meanwhile."""
        if self._walking is not None:
            self._walking.close()  # a callback may have failed
        if self._owner.callbacks is self:
            self._own[:] = self[:]
            self._owner.callbacks = self._own


def time_callbacks(owner: type, guard: Guard, timeline: Timeline) -> None:
    """Time callbacks at the ends of epochs, and clock them at batches while stacks are taken."""

    def watch(
        method: str, what: str, wanted: Callable[[], bool], *times: Callable[..., Any]
    ) -> None:
        def enter(callback_list: Any, *_: Any, **__: Any) -> TimedCallbacks | None:
            # Another class than that of a list can't be replaced.
            is_list = type(getattr(callback_list, "callbacks", None)) is list
            return TimedCallbacks(callback_list, *times) if wanted() and is_list else None

        leaves = guard.entry(what, TimedCallbacks.put_back, TimedCallbacks.put_back)
        hook = guard.around(getattr(owner, method), guard.entry(what, enter), leaves)
        guard.replace(owner, method, hook)

    def begin(method: str, callback: Any) -> Span | None:
        hook = getattr(callback, method, None)
        plain = unwrap(hook)
        if getattr(plain, "__qualname__", "") == f"Callback.{method}" and not defined_at(hook):
            return None  # that of Keras's base class, which does nothing
        return timeline.begins("callback", type(callback).__name__, defined_at(hook))

    what = "timing callbacks"
    begins, ended = guard.entry(what, begin), guard.entry(what, timeline.ended)
    for method in ("on_train_begin", "on_epoch_begin", "on_epoch_end", "on_train_end"):
        # Within another callback all of this is that one's time.
        watch(method, what, lambda: not timeline.in_a_callback, partial(begins, method), ended)
    for method in ("on_train_batch_begin", "on_train_batch_end"):
        times = CALLBACK_CLOCK.turn_begins, CALLBACK_CLOCK.turn_ended
        watch(method, "clocking callbacks", lambda: CALLBACK_CLOCK.running, *times)
