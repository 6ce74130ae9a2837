"""Clock of the loops of Keras."""

from __future__ import annotations

from itertools import pairwise
from statistics import fmean, median

import keras

from clock import RunClock


class FitClock(keras.callbacks.Callback):
    """Callback that comes first, in all of a model's `fit`, `evaluate` and `predict`.

    Keras asks for a batch within the step. So the wait for an epoch's first batch is what its first
    step took more than the median of the others, and in the first epoch that step has also built
    the function. Its wait is that of the later epochs, or `first_wait` seconds where a cache makes
    these shorter. There is no hook at a batch's end, as it would keep Keras from running ahead.
    """

    def __init__(self, run: RunClock, first_wait: float | None = None) -> None:
        super().__init__()
        self._run = run
        self._first_wait = first_wait
        self._built: set[str] = set()
        self._epochs: list[list[float]] = []
        self._batches: list[float] = []
        self._fitting = False

    def on_train_begin(self, logs=None):
        self._epochs, self._fitting = [], True
        self._run.training_begins()

    def on_epoch_begin(self, epoch, logs=None):
        self._run.at("epoch_start")
        self._batches = []

    def on_train_batch_begin(self, batch, logs=None):
        self._batches.append(self._run.at("steps"))

    def on_epoch_end(self, epoch, logs=None):
        self._epoch_over("epoch_end")

    def on_train_end(self, logs=None):
        self._settle_steps()
        self._fitting = False
        self._run.training_over()

    def on_test_begin(self, logs=None):
        if self._fitting:
            self._epoch_over("evaluation")
        self._batches = []

    def on_test_batch_begin(self, batch, logs=None):
        self._batches.append(self._run.at("evaluation"))

    def on_test_end(self, logs=None):
        self._evaluated("evaluate", "epoch_end" if self._fitting else "evaluation")

    def on_predict_begin(self, logs=None):
        self._batches = []

    def on_predict_batch_begin(self, batch, logs=None):
        self._batches.append(self._run.at("evaluation"))

    def on_predict_end(self, logs=None):
        self._evaluated("predict", "evaluation")

    def _epoch_over(self, part: str) -> None:
        now = self._run.at(part)
        if self._batches:
            self._epochs.append(durations([*self._batches, now]))
            self._batches = []

    def _evaluated(self, method: str, part: str) -> None:
        batches, self._batches = durations([*self._batches, self._run.at(part)]), []
        if method not in self._built and len(batches) > 1:
            self._run.move(batches[0] - median(batches[1:]), "evaluation", "compile")
        self._built.add(method)

    def _settle_steps(self) -> None:
        steady = median([step for epoch in self._epochs for step in epoch[1:]])
        waits = [max(0.0, epoch[0] - steady) for epoch in self._epochs]
        if "fit" not in self._built:
            usual = self._first_wait
            if usual is None:
                usual = fmean(waits[1:]) if len(waits) > 1 else 0.0
            built = max(0.0, waits[0] - usual)
            self._run.move(built, "steps", "compile")
            waits[0] -= built
        self._built.add("fit")
        self._run.move(sum(waits), "steps", "epoch_start")


def durations(moments: list[float]) -> list[float]:
    """Return the seconds from each moment to the next."""
    return [later - earlier for earlier, later in pairwise(moments)]
