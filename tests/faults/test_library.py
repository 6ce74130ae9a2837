"""`pipediag.analyze` and `pipediag.watch` in a program: what follows is what follows without."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from .case import Case, Run

pytestmark = [pytest.mark.tensorflow, pytest.mark.faults]


def alike(folder: Path, program: str, without: dict[str, str], within: dict[str, str]) -> Run:
    """Run a program with words replaced in two ways; return the second, of the same facts."""
    runs = []
    for name, words in (("without", without), ("with", within)):
        text = dedent(program)
        for word, code in words.items():
            text = text.replace(word, dedent(code))
        (folder / name).mkdir()
        runs.append(Case(folder / name, {"main.py": text}).natively())
    native, other = runs
    assert len(native.facts) == 4, native.stderr
    assert (other.status, other.facts) == (native.status, native.facts), other.stderr
    return other


MODEL = """
    import hashlib
    import random

    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(7)

    def noisy(x, y):
        return x + tf.random.uniform(x.shape, seed=3), y

    x = np.random.rand(1200, 16).astype("float32")
    layers = [keras.layers.Input((16,)), keras.layers.Dense(8), keras.layers.Dropout(0.3),
              keras.layers.Dense(1)]
    model = keras.Sequential(layers)
    model.compile("adam", "mse", metrics=["mae"])
"""
FACTS = """
    weights = b"".join(w.tobytes() for w in model.get_weights())
    print("FACT weights", hashlib.sha256(weights).hexdigest())
    print("FACT optimizer", [float(np.sum(v)) for v in model.optimizer.variables])
    print("FACT draws", random.random(), np.random.rand(), keras.random.uniform(()).numpy())
"""

ANALYSED = """
    def make():
        dataset = tf.data.Dataset.from_tensor_slices((x, x.sum(1)))
        return dataset.shuffle(300).map(noisy).batch(4).prefetch(2)

    dataset = make()
    ANALYSIS
    print("FACT losses", model.fit(dataset, epochs=2, verbose=0).history)
"""
ANALYSIS = """
    import pipediag
    result = pipediag.analyze(make, model, epochs=9, budget=4)
    assert result.session.steps is not None, result
    assert result.session.script.outcome == "stopped", result
"""


def test_training_goes_on_as_if_nothing_had_been_analysed(tmp_path: Path) -> None:
    program = MODEL + ANALYSED + FACTS
    alike(tmp_path, program, {"ANALYSIS": "pass"}, {"ANALYSIS": ANALYSIS})


WATCHED = """
    from contextlib import nullcontext

    dataset = (tf.data.Dataset.from_tensor_slices((x, x.sum(1)))
               .shuffle(300).map(noisy).batch(4).cache("cached").prefetch(2))
    # The cache is whole once its end was asked for, which `fit` does not do: whether the
    # prefetch does is a matter of time.
    for _ in dataset:
        pass

    @tf.function
    def step(batch):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(batch[0], training=True)[:, 0] - batch[1]) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    batches = iter(dataset.repeat())
    WATCHING
    with watching:
        history = model.fit(dataset, epochs=2, verbose=0)
        losses = [float(step(next(batches))) for _ in range(400)]
    after = model.fit(dataset, epochs=1, verbose=0, callbacks=callbacks)
    CHECK
    print("FACT losses", history.history, after.history, losses[-3:])
"""
WITHOUT = {"WATCHING": "watching, callbacks = nullcontext(), []", "CHECK": "pass"}
WITH = {
    "WATCHING": """
        import pipediag
        watching, callbacks = pipediag.watch(), [pipediag.callback()]
    """,
    "CHECK": """
        assert watching.result.session.steps is not None, watching.result
        assert callbacks[0].result is not None, callbacks[0].result_missing
    """,
}


def test_training_ends_as_if_nothing_had_been_watched(tmp_path: Path) -> None:
    alike(tmp_path, MODEL + WATCHED + FACTS, WITHOUT, WITH)


BROKEN_OFF = """
    import gc
    import hashlib
    import tempfile
    import threading

    import keras
    import numpy as np
    import tensorflow as tf
    from tensorflow.python.eager import context, execute

    keras.utils.set_random_seed(7)
    analysed = False

    class Interrupted(keras.layers.Layer):
        def call(self, x):
            if analysed and WINDOW_IS_OPEN:
                raise KeyboardInterrupt
            return x

    ids = np.random.randint(0, 50, (4000, 4))
    y = np.random.rand(4000, 1).astype("float32")
    dataset = tf.data.Dataset.from_tensor_slices((ids, y)).batch(8)
    layers = [keras.layers.Embedding(50, 8), Interrupted(), keras.layers.Flatten(),
              keras.layers.Dense(1)]
    model = keras.Sequential(layers)
    model.compile("adam", "mse", run_eagerly=True)
    model.build((None, 4))
    ANALYSIS
    print("FACT callbacks", context.context().op_callbacks, execute.execute.__name__)
    print("FACT threads", [one.name for one in threading.enumerate()])
    tf.profiler.experimental.start(tempfile.mkdtemp())
    tf.profiler.experimental.stop(save=False)
    print("FACT a profiler of its own starts")
    losses = model.fit(dataset, steps_per_epoch=20, verbose=0).history
    weights = b"".join(w.tobytes() for w in model.get_weights())
    print("FACT training", losses, hashlib.sha256(weights).hexdigest())
"""
INTERRUPTED = """
    import pipediag
    from pipediag.capture.measuring.windows import Profiler

    analysed = True
    try:
        pipediag.analyze(dataset, model, epochs=9, budget=0)
    except KeyboardInterrupt:
        print("interrupted")
    analysed = False
"""
WINDOWS = {
    "stacks": 'any(one.name == "pipediag-stacks" for one in threading.enumerate())',
    "profile": "any(type(one) is Profiler and one.running for one in gc.get_objects())",
}


@pytest.mark.parametrize("window", WINDOWS)
def test_nothing_of_an_analysis_runs_on_that_ctrl_c_ends(tmp_path: Path, window: str) -> None:
    """Whichever window was open."""
    opened = {"WINDOW_IS_OPEN": WINDOWS[window]}
    without, within = opened | {"ANALYSIS": ""}, opened | {"ANALYSIS": INTERRUPTED}
    assert "interrupted" in alike(tmp_path, BROKEN_OFF, without, within).stdout
