"""Steps and calls of a model that run as `tf.functions` while that is tried or timed."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.tensorflow

SCRIPT = """
    import json
    from unittest.mock import Mock
    import keras
    import tensorflow as tf
    from pipediag.capture.frameworks.keras.paired_calls import PairedCalls
    from pipediag.capture.loops.loop import Stage
    from pipediag.capture.guard import Guard
    from pipediag.capture.replay.replacing import attributes_set
    from pipediag.capture.replay.rewriting import other_code, traces
    from pipediag.session.edits import CompileFunction

    total = tf.Variable(0.0)

    def step(x, *, rate=2.0):
        total.assign_add(rate * x)
        return tf.executing_eagerly()

    def maker(rate, other):
        def closed(x):
            total.assign_add(rate * x + other)
            return tf.executing_eagerly()
        return closed

    class Trainer:
        def step(self, x):
            total.assign_add(x)
            return tf.executing_eagerly()

    def reads(x):
        return (total + x).numpy()

    failures = []

    def tried(function, called, *more):
        code = function.__code__
        change = CompileFunction(code.co_filename, code.co_firstlineno, code.co_name)
        code_of_it = other_code([change], {}, failures.append)
        total.assign(0.0)
        with attributes_set(*code_of_it):
            eager = called(tf.constant(3.0))
        assert function.__code__ is code
        return [bool(eager), float(total)]

    class Lengthy:
        def __init__(self):
            self.total = None
        @tf.function
        def step(self, x):
            if self.total is None:
                self.total = tf.Variable(0.0)
            self.total.assign_add(tf.reduce_sum(x))
            return self.total

    def lengths(lengthy):
        return [float(lengthy.step(tf.ones([length]))) for length in range(2, 8)]

    lengthy = Lengthy()
    lengths(lengthy)
    code = vars(Lengthy)["step"].python_function.__code__
    change = CompileFunction(code.co_filename, code.co_firstlineno, "step", reduce_retracing=True)
    relaxed = other_code([change], {}, lambda error: None)
    own = lengthy.step.experimental_get_tracing_count()
    with attributes_set(*relaxed):
        totals = lengths(lengthy)

    closed, trainer = maker(4.0, 1.0), Trainer()
    results = {
        "function": tried(step, step),
        "closed": tried(closed, closed),
        "method": tried(Trainer.step, trainer.step),
        "reads": tried(reads, reads),
        "own": own,
        "relaxed": traces(relaxed),
        "after": lengthy.step.experimental_get_tracing_count(),
        "totals": totals,
        "failures": len(failures),
    }

    predictions = []
    loop = Mock(id="loop_1", last_ns=0, set_aside_ns=0)
    last = Mock(stage=Stage.OWN)
    last.loop = Mock(record=loop, trains=False, interruption=None, last_ns=0)
    calls = PairedCalls(predictions, Mock(), Mock(last_here=last))
    calls.install(keras.Model, Guard(print))

    class Keeps(keras.Model):
        def __init__(self):
            super().__init__()
            self.seen = []
        def call(self, x, training=False):
            self.seen.append(1)
            return x + 1.0

    class Adds(keras.layers.Layer):
        def call(self, x):
            self.add_loss(tf.reduce_mean(x))
            return x

    inputs = keras.Input((3,))
    adding = keras.Sequential([Adds(), keras.layers.Dense(2)])
    model = keras.Model(inputs, keras.layers.Dense(2)(inputs))
    keeps, x = Keeps(), tf.ones([4, 3])
    for length in range(2, 22):
        model(tf.ones([length, 3]), training=False)
    results["aside"] = [loop.last_ns, loop.set_aside_ns]
    for _ in range(20):
        keeps(x)
    for _ in range(20):
        adding(x)
        total = float(sum(adding.losses))
    for _ in range(20):
        model(x, training=True)
    for _ in range(20):
        with tf.GradientTape():
            model(x)
    last.loop.trains = True
    for _ in range(20):
        model(x)
    last.loop.interruption = True
    for _ in range(20):
        model(x)
    class Validates(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            for _ in range(20):
                self.model(x, training=False)
    callback = Validates()
    callback.set_model(model)
    callback.on_epoch_end(0)
    class Decodes(keras.Model):
        def call(self, token, state, mask=None):
            return token + state, state * 2.0
    decodes, state = Decodes(), x
    for _ in range(20):
        token, state = decodes(x, state, None)
    class Ranks(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(3)
            self.asked, self.factor = [], 1.0
            self.count = tf.Variable(0.0, trainable=False)
        def call(self, x):
            return self.dense(x)
        def encode(self, x, *, scale=1.0):
            return self._vectors(x) * scale
        def _vectors(self, x):
            return self.dense(self.dense(x))
        def keeps(self, x):
            self.asked.append(1)
            return self.dense(x)
        def of_number(self, x, number):
            return self.dense(x) + number
        def scaled(self, x):
            return self.dense(x) * self.factor
        def counts(self, x):
            self.count.assign_add(1.0)
            return self.dense(x)
        def shows(self, x):
            print("rows", len(x))
            return self.dense(x)
        def sized(self, x):
            return self.dense(x) + tf.zeros((x.shape[0], 3))
        def with_size(self, x):
            return self.dense(x), 3
        def changed(self, x):
            x = x * 2.0
            return self.dense(x)
        def looped(self, x):
            for _ in range(2):
                x = self.dense(x)
            return x
        def on_epoch_end(self):
            self.factor = self.factor / 2.0
    ranks, states = Ranks(), None
    for _ in range(20):
        states = ranks.encode(x, scale=2.0)
    results["as_before"] = bool(tf.reduce_all(states == 2.0 * ranks.dense(ranks.dense(x))))
    for _ in range(20):
        ranks.keeps(x)
    results["before"] = len(predictions)
    ranks.factor = 3.0
    for number in range(20):
        ranks.of_number(x, number)
    for _ in range(20):
        ranks.scaled(x)
    for _ in range(20):
        ranks.counts(x)
    for _ in range(20):
        ranks.shows(x)
    for _ in range(20):
        ranks.sized(x)
    for _ in range(20):
        ranks.with_size(x)
    results["methods"] = {one.method: one.lacking for one in predictions[-6:]}
    for _ in range(20):
        ranks.changed(x)
    for _ in range(20):
        ranks.looped(x)
    results["untimed"] = len(predictions) == len(results["methods"]) + results["before"]
    results["calls"] = [
        [one.method or one.model, one.calls, len(one.other_ms), one.lacking] for one in predictions
    ]
    earlier, last.loop.interruption = len(predictions), None
    calls.install_metrics(keras.metrics.Metric, Guard(print))
    class Own(keras.metrics.Mean):
        def update_state(self, value):
            return super().update_state(value * 2.0)
    auc, own, metrics = keras.metrics.AUC(), Own(), {"mean": keras.metrics.Mean()}
    targets, scores = tf.constant([0.0, 1.0, 1.0]), tf.constant([0.2, 0.1, 0.9])
    for trains, functions in ((False, []), (True, ["train.py:3 step"])):
        last.loop.trains, loop.step_functions = trains, functions
        for _ in range(20):
            auc.update_state(targets, scores)
        for _ in range(20):
            own.update_state(scores)
    expected = keras.metrics.AUC()
    for _ in range(40):
        expected.update_state(targets, scores)
    results["sums"] = [float(auc.result()) == float(expected.result()), float(own.result())]
    last.stage = Stage.VARIANT
    for _ in range(20):
        metrics["mean"].update_state(scores)
    last.stage, loop.step_functions = Stage.OWN, []
    for _ in range(20):
        auc.update_state(targets, scores)
    for value in range(20):
        last.loop.trains = False
        own.update_state(value)
    results["metrics"] = [
        [one.model, one.calls, len(one.other_ms), one.lacking] for one in predictions[earlier:]
    ]
    print("RESULTS", json.dumps(results))
"""


def test_a_step_is_a_graph_while_that_is_tried(results: dict[str, Any]) -> None:
    assert results["function"] == [False, 6.0]
    assert results["closed"] == [False, 13.0]
    assert results["method"] == [False, 3.0]
    assert results["reads"] == [True, 0.0]
    assert results["failures"] == 1


def test_a_function_is_traced_for_all_shapes_while_that_is_tried(results: dict[str, Any]) -> None:
    assert results["own"] == results["after"]
    assert results["own"] >= 6
    assert results["relaxed"] == 2
    assert results["totals"] == [29.0, 32.0, 36.0, 41.0, 47.0, 54.0]


def test_calls_of_a_model_are_timed_unless_they_train_or_would_lose_something(
    results: dict[str, Any],
) -> None:
    evaluated, keeps, adds, trains, between_epochs, called_back, decodes, *_ = results["calls"]
    assert evaluated == between_epochs == ["model", 20, 8, None]
    assert called_back == ["self.model", 20, 8, None]
    assert decodes == ["decodes", 20, 8, None]
    assert (keeps[0], keeps[2]) == ("keeps", 0)
    assert "`self.seen`" in keeps[3]
    assert (adds[0], adds[2]) == ("adding", 0)
    assert "losses" in adds[3]
    assert (trains[0], trains[2]) == ("model", 0)
    assert "training" in trains[3]


def test_methods_of_a_model_that_call_layers_are_timed_as_a_whole(results: dict[str, Any]) -> None:
    encodes, keeps = results["calls"][-8:-6]
    assert encodes == ["encode", 20, 8, None]
    assert (keeps[0], keeps[2]) == ("keeps", 0)
    assert "`self.asked`" in keeps[3]
    assert results["as_before"]


@pytest.mark.parametrize(
    ("method", "why"),
    [
        ("of_number", "traced anew"),
        ("scaled", "`self.factor`"),
        ("counts", "`AssignAdd"),
        ("shows", "`print`"),
        ("sized", "raised"),
        ("with_size", "other values"),
    ],
)
def test_a_method_that_a_trace_would_change_is_not_timed(
    results: dict[str, Any], method: str, why: str
) -> None:
    assert why in results["methods"][method]


def test_a_method_that_has_set_its_arguments_or_calls_layers_in_a_loop_is_left_alone(
    results: dict[str, Any],
) -> None:
    assert results["untimed"]


def test_metrics_keep_the_values_of_their_own_updates_while_these_are_timed(
    results: dict[str, Any],
) -> None:
    assert results["sums"] == [True, pytest.approx(0.8)]
    # Neither an own class, whose Python may do more, nor steps that are eager or a trial's.
    timed, own_class, expected = results["metrics"]
    assert timed == ["auc", 40, 8, None]
    assert own_class[2] == 0
    assert expected[0] == "expected"


def test_pairs_of_calls_are_no_part_of_the_steps_of_an_evaluation(results: dict[str, Any]) -> None:
    later_ns, aside_ns = results["aside"]
    assert later_ns == aside_ns > 0
