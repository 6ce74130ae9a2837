"""Analyses a model, a step and a pipeline, and prints what came of it and what is left of it."""

# The tests start it in a process of its own, with the file to write to.
from __future__ import annotations

import json
import sys
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.data.ops import dataset_ops, iterator_ops
from tensorflow.python.eager.polymorphic_function import polymorphic_function

import pipediag

WINDOWS = {"steps": 15}
HOOKED = [
    (iterator_ops.OwnedIterator, "_next_internal"),
    (iterator_ops.OwnedIterator, "_create_iterator"),
    (dataset_ops.DatasetV2, "map"),
    (polymorphic_function.Function, "__call__"),
    (type(keras.Sequential()).__mro__[1], "fit"),
]


def owner_of(kind: type, name: str) -> type:
    return next(one for one in kind.__mro__ if name in vars(one))


def hooked_now() -> list[object]:
    return [vars(owner_of(kind, name))[name] for kind, name in HOOKED]


def doubled(x, y):
    return x * 2.0, y


def made() -> tf.data.Dataset:
    features = np.ones((640, 4), "float32")
    dataset = tf.data.Dataset.from_tensor_slices((features, features.sum(1)))
    return dataset.map(doubled).batch(8)  # made here


def fails(call) -> str:
    try:
        call()
    except (pipediag.PipediagError, TypeError, ZeroDivisionError) as error:
        return f"{type(error).__name__}: {error}"
    return "nothing was raised"


def reported(result: pipediag.Result) -> dict[str, object]:
    session = result.session
    return {
        "call": session.script.call,
        "outcome": session.script.outcome,
        "steps": session.steps.count if session.steps else None,
        "kinds": [op.kind for op in session.pipeline.ops] if session.pipeline else None,
        "lines": [op.line for op in session.pipeline.ops] if session.pipeline else None,
        "loops": [(loop.kind, loop.role, loop.line) for loop in session.loops],
        "breakdown": sorted(session.breakdown) if session.breakdown else None,
        "run_missing": session.run_missing,
        "epochs": session.run.epochs_planned if session.run else None,
        "verdict": result.verdict,
        "trials": sorted({one.trial.state for one in session.findings if one.trial}),
        "notes": session.notes,
    }


def main() -> None:
    before = hooked_now()
    variable = tf.Variable(tf.zeros((4, 1)))

    @tf.function
    def step(batch):
        x, _ = batch
        variable.assign_add(tf.reduce_mean(x) * tf.ones((4, 1)))

    def divides(batch):
        step(batch)
        return 1 / 0

    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    uncompiled = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    keras.utils.set_random_seed(7)
    unbuilt = keras.Sequential([keras.layers.Dense(1), keras.layers.Dropout(0.5)])
    unbuilt.compile("adam", "mse")
    keras.utils.set_random_seed(7)
    twin = keras.Sequential([keras.layers.Dense(1), keras.layers.Dropout(0.5)])
    twin.compile("adam", "mse")

    class Odd(keras.Model):
        def call(self, inputs):
            raise ValueError("no such input")

    odd = Odd()
    odd.compile("adam", "mse")
    model.compile("adam", "mse")
    step(next(iter(made())))
    kept = [*model.get_weights(), variable.numpy()]
    dataset = made()
    report = {
        "fit": reported(pipediag.analyze(dataset, model, epochs=90, budget=5, **WINDOWS)),
        "step": reported(pipediag.analyze(made, step, epochs=90, budget=0, **WINDOWS)),
        "input": reported(pipediag.analyze_input(made, budget=3, **WINDOWS)),
        "raised": fails(lambda: pipediag.analyze(made, divides, budget=0)),
        "uncompiled": fails(lambda: pipediag.analyze(made, uncompiled)),
        "unbuilt": reported(pipediag.analyze(dataset, unbuilt, epochs=90, budget=0, **WINDOWS)),
        "odd": fails(lambda: pipediag.analyze(made, odd, budget=0)),
        "no model": fails(lambda: pipediag.analyze(made, 3)),
        "no fit": fails(lambda: pipediag.analyze(made, step, callbacks=[])),
        "empty": fails(lambda: pipediag.analyze_input(lambda: made().take(0), budget=0)),
    }
    for one in (unbuilt, twin):
        one.fit(made(), verbose=0)
    pairs = zip(unbuilt.get_weights(), twin.get_weights(), strict=True)
    report["trained alike"] = all(bool((a == b).all()) for a, b in pairs)
    now = [*model.get_weights(), variable.numpy()]
    report["kept"] = all(bool((a == b).all()) for a, b in zip(kept, now, strict=True))
    report["optimizer"] = float(model.optimizer.iterations.numpy())
    report["unhooked"] = [a is b for a, b in zip(before, hooked_now(), strict=True)]
    Path(sys.argv[1]).write_text(json.dumps(report), encoding="utf-8")


main()
