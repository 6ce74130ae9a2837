"""Trains for long under `pipediag.watch(every=...)`, and writes what came of it."""

# The test starts it in a process of its own, with the file to write to.
from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.data.ops import dataset_ops, iterator_ops
from tensorflow.python.eager.polymorphic_function import polymorphic_function

import pipediag

WINDOWS = {"steps": 15, "warmup": 5, "profile_steps": 5}
HOOKED = [
    iterator_ops.OwnedIterator,
    dataset_ops.DatasetV2,
    polymorphic_function.Function,
    keras.src.backend.tensorflow.trainer.TensorFlowTrainer,
    keras.src.trainers.epoch_iterator.EpochIterator,
    keras.src.callbacks.callback_list.CallbackList,
]
BEFORE = [dict(vars(owner)) for owner in HOOKED]
LIMIT_S = 200
OUT = Path("out")


def replaced() -> list[str]:
    """What is not as it was."""
    return [
        f"{owner.__name__}.{name}"
        for owner, was in zip(HOOKED, BEFORE, strict=True)
        for name in was.keys() | vars(owner).keys()
        if was.get(name) is not vars(owner).get(name) and name != "__annotations__"
    ]


def listed() -> int:
    """How many measurements are in the list."""
    index = OUT / "intervals.csv"
    return len(index.read_text().splitlines()) - 1 if index.exists() else 0


class UntilListed(keras.callbacks.Callback):
    """Ends the training once so many measurements are in the list."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count, self.until = count, time.monotonic() + LIMIT_S

    def on_train_batch_end(self, batch, logs=None):
        if batch % 10 == 0 and (listed() >= self.count or time.monotonic() > self.until):
            self.model.stop_training = True


def main() -> None:
    features = np.ones((640, 4), "float32")
    dataset = tf.data.Dataset.from_tensor_slices((features, features.sum(1))).batch(8).repeat()
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    threads = threading.enumerate()

    # A loop of the program's own, which is measured once: the next time is far away.
    until = time.monotonic() + LIMIT_S
    with pipediag.watch(OUT, every="1h", tensorboard="logs", **WINDOWS) as own:
        for x, y in dataset:
            model.train_on_batch(x, y)
            if listed() or time.monotonic() > until:
                break
        report = {"between": replaced(), "threads": threading.enumerate() == threads}
        steps = sum(1 for _ in dataset.take(20))
    report |= {"unseen": steps, "first": str(own.result.directory)}

    # One `fit`, which is measured twice while it runs.
    callbacks = [
        pipediag.callback(OUT, every="1s", tensorboard="logs", **WINDOWS),
        UntilListed(3),
    ]
    model.fit(dataset, epochs=1, steps_per_epoch=10**7, verbose=0, callbacks=callbacks)
    report |= {"after": replaced(), "last": str(callbacks[0].result.directory)}
    report["points"] = [
        (event.step, value.tag, value.simple_value)
        for file in sorted(Path("logs/pipediag").iterdir(), key=lambda file: file.stat().st_mtime)
        for event in tf.compat.v1.train.summary_iterator(str(file))
        for value in event.summary.value
    ]
    Path(sys.argv[1]).write_text(json.dumps(report), encoding="utf-8")


main()
