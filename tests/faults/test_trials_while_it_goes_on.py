"""Trials under `--run-to-end`: a script ends with its native results, or no trial is made in it."""

from __future__ import annotations

import pytest

from .case import Run
from .conftest import MakeCase
from .slow_fits import HELPERS

pytestmark = [pytest.mark.tensorflow, pytest.mark.faults]

TRIED = """
    from helpers import *

    def augmented(row, label):
        return row + tf.random.uniform([16]) * 0.1, label

    dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(BUFFER).map(augmented)
    dataset = slowly(dataset).batch(4).prefetch(1)
    model = mlp(metrics=["mae"])
    logger = keras.callbacks.CSVLogger("log")
    tell(model, model.fit(dataset, epochs=4, verbose=0, callbacks=[logger]))
    print("FACT next pass", float(next(iter(dataset))[0][0, 0]))
"""


def ran(make_case: MakeCase, text: str, *options: str) -> tuple[Run, Run]:
    case = make_case(text, helpers=HELPERS)
    native, analysed = case.natively(), case.analysed("--run-to-end", *options)
    assert native.facts
    assert (analysed.status, analysed.facts) == (native.status, native.facts), analysed.stderr
    assert analysed.files == native.files
    return native, analysed


# A long buffer may be made shorter for trials, which makes that shuffle anew; a short one never is.
@pytest.mark.parametrize("buffer", [200, 20])
def test_a_fit_in_which_trials_are_made_has_its_native_results(
    make_case: MakeCase, buffer: int
) -> None:
    _, analysed = ran(make_case, TRIED.replace("BUFFER", str(buffer)), "--budget", "12")
    session = analysed.session
    assert session.trials is not None, session.trials_missing
    assert session.trials.consumer == "training"


REFUSED = {
    "a callback of the script's in each step": (
        """
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
        None,
    ),
    "a training function that counts in Python": (
        """
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
        None,
    ),
    "random numbers with a state in the step": (
        """
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
        None,
    ),
    "a generator with a state of its own": (
        """
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
        "self.count",
    ),
    "a side effect in a helper": (
        """
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
        "log",
    ),
    "an iterator that can be gone through once": (
        """
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
        "only once",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_where_that_cannot_be_shown_no_trial_is_made(make_case: MakeCase, name: str) -> None:
    body, named = REFUSED[name]
    _, analysed = ran(make_case, "\n        from helpers import *\n" + body, "--budget", "6")
    if named is None:
        # Its pipeline alone may be tried when it is over.
        trials = analysed.session.trials
        assert trials is None or trials.consumer != "training"
    else:
        assert analysed.session.trials is None
        assert "No trial was made" in str(analysed.session.trials_missing)
        assert named in str(analysed.session.trials_missing)


IN_A_FILE = """
    from helpers import *

    dataset = slowly(tf.data.Dataset.from_tensor_slices((x, y))).cache("kept").shuffle(100).batch(2)
    model = mlp()
    tell(model, model.fit(dataset, epochs=6, verbose=0))
    print("FACT sum", float(dataset.reduce(0.0, lambda s, e: s + tf.reduce_sum(e[0]))) // 1)
"""


def test_trials_leave_a_cache_in_a_file_to_the_script(make_case: MakeCase) -> None:
    _, analysed = ran(make_case, IN_A_FILE, "--budget", "6")
    assert any(name.startswith("kept") for name in analysed.files)


# Read from its start later than that, the pipeline hangs: the script's own pass is under way then.
HANGS = """
    from helpers import *

    def hangs_later(i):
        while i == 0 and time.time() - began > 9:
            time.sleep(1)
        time.sleep(0.001)
        return i

    dataset = tf.data.Dataset.range(25_000).map(
        lambda i: tf.ensure_shape(tf.numpy_function(hangs_later, [i], tf.int64), [])
    )
    dataset = dataset.map(lambda i: (tf.ones([16]) * tf.cast(i % 3, tf.float32), 0.0)).batch(4)
    model = mlp()
    began = time.time()
    tell(model, model.fit(dataset, verbose=0))
    print("FACT to the end")
"""


def test_a_trial_that_hangs_gives_the_script_back(make_case: MakeCase) -> None:
    _, analysed = ran(make_case, HANGS, "--budget", "15")
    assert "did not come back" in analysed.session.model_dump_json()
