"""Trains in several ways under `pipediag.watch` and its callback, and prints what came of it."""

# The tests start it in a process of its own, with the file to write to.
from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.data.ops import dataset_ops, iterator_ops
from tensorflow.python.eager.polymorphic_function import polymorphic_function
from tensorflow.python.framework import func_graph
from tensorflow.python.ops import resource_variable_ops

import pipediag

WINDOWS = {"steps": 15}
HOOKED = [
    iterator_ops.OwnedIterator,
    dataset_ops.DatasetV2,
    polymorphic_function.Function,
    func_graph,
    resource_variable_ops.BaseResourceVariable,
    keras.src.backend.tensorflow.trainer.TensorFlowTrainer,
    keras.src.trainers.epoch_iterator.EpochIterator,
    keras.src.callbacks.callback_list.CallbackList,
]


def attributes() -> list[dict[str, object]]:
    return [dict(vars(owner)) for owner in HOOKED]


def doubled(x, y):
    return x * 2.0, y


def made() -> tf.data.Dataset:
    features = np.ones((640, 4), "float32")
    dataset = tf.data.Dataset.from_tensor_slices((features, features.sum(1)))
    return dataset.map(doubled).batch(8)


def compiled() -> keras.Model:
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model


def reported(watching) -> dict[str, object]:
    result = watching.result
    if result is None:
        return {"missing": watching.result_missing}
    session = result.session
    return {
        "missing": watching.result_missing,
        "call": session.script.call,
        "path": session.script.path,
        "outcome": session.script.outcome,
        "status": session.script.status,
        "detail": session.script.detail,
        "steps": session.steps.count if session.steps else None,
        "kinds": [op.kind for op in session.pipeline.ops] if session.pipeline else None,
        "loops": [(loop.kind, loop.role, loop.line, loop.steps) for loop in session.loops],
        "breakdown": sorted(session.breakdown) if session.breakdown else None,
        "parts": [part.part for part in session.run.parts] if session.run else session.run_missing,
        "directory": None if result.directory is None else result.directory.name,
        "callbacks": [
            each.name for loop in session.loops if loop.keras for each in loop.keras.callbacks
        ],
    }


def main() -> None:
    before = attributes()
    variable = tf.Variable(tf.zeros((4, 1)))
    metric = keras.metrics.Mean()

    @tf.function
    def step(batch):
        x, _ = batch
        variable.assign_add(tf.reduce_mean(x) * tf.ones((4, 1)))

    @tf.function
    def look(batch):
        metric.update_state(tf.reduce_mean(tf.matmul(batch[0], variable)))

    # All of these are there before anything is measured.
    model, dataset = compiled(), made()
    batches = iter(dataset.repeat())
    for _ in range(3):
        step(next(batches))
        look(next(batches))

    with pipediag.watch("fit", **WINDOWS) as fit:
        model.fit(dataset, epochs=3, verbose=0)
    report = {"fit": reported(fit), "files": sorted(path.name for path in Path("fit").iterdir())}

    with pipediag.watch(**WINDOWS) as loop:
        with pipediag.watch() as within:
            for _ in range(200):
                step(next(batches))  # trains
        for batch in dataset:
            look(batch)  # looks
    report |= {"loop": reported(loop), "within": reported(within)}

    callback = pipediag.callback("callback", **WINDOWS)
    model.fit(dataset, epochs=3, verbose=0, callbacks=[callback])
    report["callback"] = reported(callback)

    raised = pipediag.watch(**WINDOWS)
    try:
        with raised:
            for number, batch in enumerate(dataset):
                step(batch)
                if number == 60:
                    raise ZeroDivisionError("mine")
    except ZeroDivisionError as error:
        report["error"] = str(error)
    report["raised"] = reported(raised)

    class Fails(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            raise ZeroDivisionError("mine")

    callback = pipediag.callback(**WINDOWS)
    with suppress(ZeroDivisionError):
        model.fit(dataset, epochs=3, verbose=0, callbacks=[callback, Fails()])
    with pipediag.watch(**WINDOWS) as following:
        model.fit(dataset, epochs=1, verbose=0)
    report["cut"], report["following"] = reported(callback), reported(following)
    again = pipediag.callback(**WINDOWS)
    with suppress(ZeroDivisionError):
        model.fit(dataset, epochs=3, verbose=0, callbacks=[pipediag.callback(**WINDOWS), Fails()])
    model.fit(dataset, epochs=3, verbose=0, callbacks=[again])
    report["again"] = reported(again)

    report["unhooked"] = [
        f"{owner}: {name}"
        for owner, was, now in zip(HOOKED, before, attributes(), strict=True)
        for name in was.keys() | now.keys()
        # Python makes annotations as soon as somebody asks for them.
        if was.get(name) is not now.get(name) and name != "__annotations__"
    ]
    report["marks"] = [key for key in vars(batches) if "pipediag" in key]
    Path(sys.argv[1]).write_text(json.dumps(report), encoding="utf-8")


main()
