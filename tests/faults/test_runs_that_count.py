"""Scripts under `--run-to-end` end with their native results, and nothing is tried in them."""

from __future__ import annotations

import pytest

from .conftest import MakeCase
from .slow_fits import HELPERS

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
    "a callback of the script's in each step": """
    from helpers import *

    class Counts(keras.callbacks.Callback):
        began = ended = 0
        def on_train_batch_begin(self, batch, logs=None):
            Counts.began += 1
        def on_train_batch_end(self, batch, logs=None):
            Counts.ended += 1

    model = mlp()
    dataset = slowly(tf.data.Dataset.from_tensor_slices((x, y))).batch(4)
    tell(model, model.fit(dataset, epochs=4, verbose=0, callbacks=[Counts()]))
    print("FACT calls", Counts.began, Counts.ended)
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
    "random numbers with a state in the step": """
    from helpers import *

    class Noisy(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(1)
        def call(self, row):
            return self.dense(row)
        def train_step(self, data):
            row, label = data
            with tf.GradientTape() as tape:
                noise = tf.random.normal(tf.shape(row), seed=11) * 0.1
                loss = tf.reduce_mean((self(row + noise) - label[:, None]) ** 2)
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
            return {"loss": loss}

    model = Noisy()
    model.compile("sgd")
    dataset = slowly(tf.data.Dataset.from_tensor_slices((x, y)).shuffle(200, seed=3)).batch(4)
    tell(model, model.fit(dataset, epochs=4, verbose=0))
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
    "a side effect in a helper": """
    from helpers import *

    def log(row):
        with open("calls.log", "a") as file:
            file.write("x")

    def logs_and_waits(row):
        log(row)
        return waits(row)

    rows = tf.data.Dataset.from_tensor_slices((x, y))
    model = mlp()
    tell(model, model.fit(slowly(rows, logs_and_waits).batch(4), epochs=4, verbose=0))
    print("FACT calls", os.path.getsize("calls.log"))
    """,
    "an iterator that can be gone through once": """
    from helpers import *

    class Stream:
        def __init__(self):
            self.count = 0
        def __iter__(self):
            return self
        def __next__(self):
            if self.count >= 2400:
                raise StopIteration
            self.count += 1
            return np.full(16, self.count % 7, "f"), np.float32(self.count % 3)

    stream = Stream()
    signature = (tf.TensorSpec([16]), tf.TensorSpec([]))
    dataset = tf.data.Dataset.from_generator(lambda: stream, output_signature=signature)
    model = mlp()
    tell(model, model.fit(slowly(dataset).batch(4), verbose=0))
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
