"""Eager steps of a loop that are made once more as `tf.functions`."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.capture.frameworks.tensorflow.paired_steps import _LOSSES, expected_kinds
from tests.capture.conftest import Capturing

pytestmark = pytest.mark.tensorflow

SCRIPT = """
    import json
    from dataclasses import asdict
    from unittest.mock import Mock
    import keras
    import numpy as np
    import tensorflow as tf
    from keras.src.optimizers import base_optimizer
    from tensorflow.python.eager import backprop
    from pipediag.capture.frameworks.tensorflow.paired_steps import PairedSteps
    from pipediag.capture.guard import Guard
    from pipediag.capture.loops.loop import Stage

    guard = Guard(print)
    interrupted, last = [], Mock(stage=Stage.OWN, element_spec=None)
    clock = Mock(last_here=last, interrupted_by_us=lambda *span: interrupted.append(span))

    def followed():
        loop = Mock(kind="eager", graph_step=None)
        last.loop.record = loop
        paired = PairedSteps(clock)
        paired.install_tape(backprop, guard)
        paired.install_optimizer("BaseOptimizer", guard, base_optimizer)
        return loop

    def data():
        rng = np.random.default_rng(3)
        for n in range(20):
            length = 4 + n % 3
            x = tf.constant(rng.random((8, length)), tf.float32)
            yield x, tf.reduce_sum(x, axis=1, keepdims=True)

    seen, settings = [], {"weight": 0.5}

    class Keeps(keras.layers.Layer):
        def call(self, x):
            seen.append(1)
            return x

    class Draws(keras.layers.Layer):
        def call(self, x):
            return x * np.random.random()

    class Static(keras.layers.Layer):
        def call(self, x):
            return x + tf.constant(0.0, shape=x.shape)

    class Halves(keras.layers.Layer):
        def call(self, x):
            return x / (x.shape[1] // 2)

    def halved(length):
        last.element_spec = tf.TensorSpec((None, length))
        scale, optimizer = tf.Variable(1.0), keras.optimizers.SGD(0.01)
        halves = Halves()
        for number in range(20):
            x = tf.random.uniform((8, 4))
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(halves(x) * scale)
            optimizer.apply_gradients([(tape.gradient(loss, scale), scale)])
        last.element_spec = None

    def of_one_length():
        scale, optimizer = tf.Variable(1.0), keras.optimizers.SGD(0.01)
        static = Static()
        for number in range(20):
            x = tf.random.uniform((8 if number < 15 else 5, 4))
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(static(x) * scale)
            optimizer.apply_gradients([(tape.gradient(loss, scale), scale)])

    def of_one_length_at_first():
        scale, optimizer = tf.Variable(1.0), keras.optimizers.SGD(0.01)
        static = Static()
        for number in range(30):
            x = tf.random.uniform((8, 4 if number < 25 else 5))
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(static(x) * scale)
            optimizer.apply_gradients([(tape.gradient(loss, scale), scale)])

    def trained(layer=None):
        keras.utils.set_random_seed(7)
        scale = tf.Variable(1.0)
        optimizer = keras.optimizers.Adam(0.01)
        count, total = 0, 0.0
        for x, y in data():
            rate = 0.01 * 0.9 ** count
            with tf.GradientTape() as tape:
                mean = tf.reduce_mean(x, axis=1, keepdims=True)
                if layer is not None:
                    mean = layer(mean)
                loss = tf.reduce_mean((mean * scale - y) ** 2) + rate * scale
            grads = tape.gradient(loss, [scale])
            optimizer.apply_gradients(zip(grads, [scale]))
            total += float(loss)
            count += 1
        return float(scale), total, float(optimizer.iterations)

    class Noise(keras.layers.Layer):
        def call(self, x):
            return x + tf.random.normal(tf.shape(x))

    class Prints(keras.layers.Layer):
        def call(self, x):
            tf.print("mean", tf.reduce_mean(x))
            return x

    def of_two():
        for x, y in data():
            one, other = tf.Variable(1.0), tf.Variable(1.0)
            optimizer = keras.optimizers.SGD(0.01)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(x) * one
            optimizer.apply_gradients([(tape.gradient(loss, one), one)])
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(x) * other
            keras.optimizers.SGD(0.01).apply_gradients([(tape.gradient(loss, other), other)])

    def by_rows():
        scale, optimizer, total = tf.Variable(1.0), keras.optimizers.SGD(0.01), 0.0
        for x, y in data():
            with tf.GradientTape() as tape:
                rows = x.shape[0]
                loss = tf.reduce_sum(x * scale) / rows
            optimizer.apply_gradients([(tape.gradient(loss, scale), scale)])
            total += float(loss) * rows

    class Trainer:
        def __init__(self, mean):
            self.mean, self.optimizer = mean, keras.optimizers.SGD(0.01)

        def train(self):
            scale = tf.Variable(1.0)
            for x, y in data():
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean(x) * scale
                grads = tape.gradient(loss, [scale])
                self.mean(loss)
                self.optimizer.apply(grads, [scale])

    def with_a_metric():
        mean = keras.metrics.Mean()
        Trainer(mean).train()
        return int(mean.count)

    def on_batches_of_a_trial():
        last.stage = Stage.VARIANT
        result = trained(Static())
        last.stage = Stage.OWN
        return result

    def by_number():
        scale, optimizer = tf.Variable(1.0), keras.optimizers.SGD(0.01)
        for number in range(20):
            with tf.GradientTape() as tape:
                loss = (scale - number) ** 2
            optimizer.apply_gradients([(tape.gradient(loss, scale), scale)])

    alone = trained()
    results = {"alone": alone, "noise alone": trained(Noise())}
    for name, run in {
        "plain": trained,
        "noise": lambda: trained(Noise()),
        "keeps": lambda: trained(Keeps()),
        "static": lambda: trained(Static()),
        "of a length by chance": lambda: halved(None),
        "of a fixed length": lambda: halved(4),
        "of one length": of_one_length,
        "of one length at first": of_one_length_at_first,
        "draws": lambda: trained(Draws()),
        "by number": by_number,
        "by rows": by_rows,
        "metric": with_a_metric,
        "callback": lambda: Trainer(lambda loss: None).train(),
        "prints": lambda: trained(Prints()),
        "of two": of_two,
        "of a trial": on_batches_of_a_trial,
    }.items():
        loop = followed()
        results[name] = run(), asdict(loop.graph_step), len(interrupted)
        guard.put_back()
        interrupted.clear()
    print("RESULTS", json.dumps(results))
"""


@pytest.fixture(scope="module")
def results(capturing: Capturing) -> dict[str, Any]:
    # More than the script has: it must not be stopped when enough were measured.
    return capturing(SCRIPT, steps=10_000).results


def test_steps_are_timed_both_ways_and_leave_what_the_script_made(results: dict[str, Any]) -> None:
    values, step, interrupted = results["plain"]
    assert values == results["alone"]
    assert step["lacking"] is None
    assert (len(step["own_ms"]), len(step["other_ms"])) == (8, 8)
    assert step["numbers"] == ["rate"]
    assert step["relaxed"]
    assert interrupted == 1 + 2 * 9


def test_another_shape_that_comes_later_is_counted(results: dict[str, Any]) -> None:
    _, step, _ = results["of one length at first"]
    assert (len(step["other_ms"]), step["lacking"]) == (8, None)
    assert (step["relaxed"], step["shapes"], step["traces"]) == (False, 2, 2.0)


def test_batches_that_the_script_would_not_have_had_tell_nothing(results: dict[str, Any]) -> None:
    values, step, _ = results["of a trial"]
    assert values == results["alone"]
    assert (step["lacking"], step["other_ms"]) == (None, [])


def test_a_model_for_one_length_has_a_trace_for_each(results: dict[str, Any]) -> None:
    values, step, _ = results["static"]
    assert values == results["alone"]
    assert (len(step["other_ms"]), step["lacking"]) == (8, None)
    assert (step["relaxed"], step["shapes"], step["traces"]) == (False, 3, 3.0)


@pytest.mark.parametrize(
    ("counts", "kinds"),
    [([], 0.0), ([9, 7], 2.0), ([5, 1], 2.0), ([1, 1, 1], 6.0), ([2, 1, 1], 3.5)],
)
def test_kinds_that_were_not_seen_are_expected_by_those_seen_once(
    counts: list[int], kinds: float
) -> None:
    assert expected_kinds(counts) == kinds


@pytest.mark.parametrize(
    ("line", "reads"),
    [
        ("total += sum(model.losses)", True),
        ("loss_of = tf.keras.losses.BinaryCrossentropy()", False),
        ("from keras.losses import BinaryCrossentropy", False),
    ],
)
def test_losses_of_layers_are_no_module(line: str, reads: bool) -> None:
    assert bool(_LOSSES.search(line)) is reads


def test_random_numbers_stay_as_they_were(results: dict[str, Any]) -> None:
    values, step, _ = results["noise"]
    assert values == results["noise alone"]
    assert len(step["other_ms"]) == 8


def test_a_model_for_one_size_of_batches_has_a_trace_for_each(results: dict[str, Any]) -> None:
    _, step, _ = results["of one length"]
    assert not step["relaxed"]
    assert len(step["other_ms"]) == 8


def test_a_step_ends_with_apply_and_updates_its_metric_once(results: dict[str, Any]) -> None:
    count, step, _ = results["metric"]
    assert (count, step["lacking"]) == (20, None)
    assert len(step["other_ms"]) == 8


@pytest.mark.parametrize(
    ("name", "relaxed"), [("of a length by chance", False), ("of a fixed length", True)]
)
def test_a_model_that_computes_with_a_length_is_relaxed_if_the_data_fix_it(
    results: dict[str, Any], name: str, relaxed: bool
) -> None:
    _, step, _ = results[name]
    assert (step["lacking"], step["relaxed"]) == (None, relaxed)
    assert len(step["other_ms"]) == 8


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("keeps", "seen"),
        ("draws", "numpy.random"),
        ("by number", "int"),
        ("by rows", "`rows`"),
        ("callback", "`self.mean`"),
        ("prints", "PrintV2"),
        ("of two", "several tapes"),
    ],
)
def test_a_step_whose_python_would_run_once_is_not_timed(
    results: dict[str, Any], name: str, word: str
) -> None:
    _, step, _ = results[name]
    assert step["other_ms"] == []
    assert word in step["lacking"]
