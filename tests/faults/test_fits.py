"""Fits that run to their end have native results; of others the right one is tried and stopped."""

from __future__ import annotations

import pytest

from .case import HELPERS
from .conftest import MakeCase

pytestmark = [pytest.mark.tensorflow, pytest.mark.faults]

SCRIPTS = {
    "random numbers in the pipeline and a log": """
    from helpers import *

    def augmented(row, label):
        return row + tf.random.uniform([16]) * 0.1, label

    dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(200).map(augmented)
    dataset = slowly(dataset).batch(4).prefetch(1)
    model = mlp(metrics=["mae"])
    logger = keras.callbacks.CSVLogger("log")
    tell(model, model.fit(dataset, epochs=4, verbose=0, callbacks=[logger]))
    print("FACT next pass", float(next(iter(dataset))[0][0, 0]))
""",
    "a training function that counts in Python": """
    from helpers import *

    class Counting(keras.Sequential):
        calls = 0
        def make_train_function(self, force=False):
            super().make_train_function(force)
            trains = self.train_function
            def trains_and_counts(iterator):
                Counting.calls += 1
                return trains(iterator)
            self.train_function = trains_and_counts

    model = Counting([keras.layers.Dense(8), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    dataset = slowly(tf.data.Dataset.from_tensor_slices((x, y))).batch(4)
    tell(model, model.fit(dataset, epochs=4, verbose=0))
    print("FACT calls", Counting.calls)
    """,
    "a generator with a state of its own": """
    from helpers import *

    rng = np.random.default_rng(3)

    class Source:
        seen = 0
        def __call__(self):
            for _ in range(600):
                self.count()
                yield rng.normal(size=16).astype("f"), np.float32(self.seen % 5)
        def count(self):
            self.seen += 1

    source = Source()
    signature = (tf.TensorSpec([16]), tf.TensorSpec([]))
    dataset = slowly(tf.data.Dataset.from_generator(source, output_signature=signature))
    model = mlp()
    tell(model, model.fit(dataset.batch(4), epochs=4, verbose=0))
    print("FACT seen", source.seen, rng.random())
    """,
    "a cache in a file": """
    from helpers import *

    dataset = slowly(tf.data.Dataset.from_tensor_slices((x, y))).cache("kept").shuffle(100).batch(2)
    model = mlp()
    tell(model, model.fit(dataset, epochs=6, verbose=0))
    print("FACT sum", float(dataset.reduce(0.0, lambda s, e: s + tf.reduce_sum(e[0]))) // 1)
""",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_run_that_counts_is_not_touched(make_case: MakeCase, name: str) -> None:
    case = make_case(SCRIPTS[name], helpers=HELPERS)
    native, analysed = case.natively(), case.analysed("--run-to-end", "--budget", "12")

    assert native.facts
    assert (analysed.status, analysed.facts) == (native.status, native.facts), analysed.stderr
    assert analysed.files == native.files
    session = analysed.session
    assert session.trials is None
    assert "`--rerun`" in str(session.trials_missing)


TWO_THREADS = """
    import threading
    from helpers import *

    def train_beside():
        history = beside.fit(x, y, batch_size=20, epochs=3, shuffle=False, verbose=0)
        told.append(history.history["loss"])

    main, beside, told = mlp(), mlp(), []
    beside.train_on_batch(x[:20], y[:20])
    thread = threading.Thread(target=train_beside)
    dataset = slowly(tf.data.Dataset.from_tensor_slices((x, y))).batch(4).prefetch(1)
    thread.start()
    main.fit(dataset, epochs=5, verbose=0)
    thread.join()
    print("FACT main", digest(main))
    print("FACT beside", told, digest(beside))
"""


def test_a_thread_that_trains_beside_the_measured_loop_is_native(make_case: MakeCase) -> None:
    analysed = make_case(TWO_THREADS, helpers=HELPERS).alike("--run-to-end", "--budget", "20")
    assert analysed.session.trials is None


SHORT = """
    from helpers import *

    x, y = x[:EXAMPLES], y[:EXAMPLES]

    def augmented(row, label):
        for _ in range(20):
            row = tf.sin(row)
        return row + tf.random.uniform([16]) * 0.1, label

    dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(50).map(augmented).batch(4)
    held_out = tf.data.Dataset.from_tensor_slices((x[:8], y[:8])).batch(4)
    model = mlp(metrics=["mae"])
    history = model.fit(dataset, epochs=EPOCHS, validation_data=held_out, verbose=0)
    tell(model, history)
    print("FACT again", history.model.evaluate(held_out, verbose=0))
    print("FACT next pass", float(next(iter(dataset))[0][0, 0]))
"""


@pytest.mark.parametrize("examples", ["80", "100", "120"])
def test_a_short_fit_is_tried_before_it_is_over(make_case: MakeCase, examples: str) -> None:
    script = SHORT.replace("EXAMPLES", examples).replace("EPOCHS", "1")
    session = make_case(script, helpers=HELPERS).analysed("--budget", "8").session

    assert session.trials is not None, session.trials_missing
    assert session.trials.consumer == "training"


def test_a_short_fit_that_runs_to_its_end_has_its_native_results(make_case: MakeCase) -> None:
    script = SHORT.replace("EXAMPLES", "40").replace("EPOCHS", "3")
    analysed = make_case(script, helpers=HELPERS).alike("--budget", "8", "--run-to-end")
    assert analysed.session.script.outcome == "finished"
    assert analysed.session.trials is None


REHEARSAL = """
    import time

    import keras
    import numpy as np
    import tensorflow as tf

    x = np.random.rand(600, 16).astype("float32")

    def train(sleep_s, epochs):
        def slow(row):
            time.sleep(sleep_s)
            return row

        def row(a, b):
            return tf.ensure_shape(tf.numpy_function(slow, [a], tf.float32), [16]), b

        dataset = tf.data.Dataset.from_tensor_slices((x, x.sum(1))).map(row).batch(5)
        model = keras.Sequential([keras.layers.Dense(8), keras.layers.Dense(1)])
        model.compile("adam", "mse")
        model.fit(dataset, epochs=epochs, verbose=0)

    train(0.001, 1)
    train(0.005, 400)
"""


def test_the_longer_of_two_fits_is_diagnosed_and_ends_the_look(make_case: MakeCase) -> None:
    analysed = make_case(REHEARSAL).analysed("--budget", "0")
    session = analysed.session
    assert [loop.planned_steps for loop in session.loops] == [120, 48_000], analysed.stderr
    short, long = session.loops
    assert (short.diagnosed, long.diagnosed) == (False, True)
    assert short.steps == 120
    complete = {(window.loop_id, window.kind) for window in session.windows if window.complete}
    assert (short.id, "repeat") not in complete
    assert {(long.id, "baseline"), (long.id, "repeat")} <= complete
    assert session.script.outcome == "stopped"
