"""`pipediag.analyze` that Ctrl-C or an error ends in the middle: nothing of it runs on in the
program, whichever window was open."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from .case import Case

pytestmark = [pytest.mark.tensorflow, pytest.mark.faults]

PROGRAM = """
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
ANALYSIS = """
    import pipediag
    from pipediag.capture.measuring.profiler import Profiler

    analysed = True
    try:
        pipediag.analyze(dataset, model, epochs=9, budget=0)
    except KeyboardInterrupt:
        print("interrupted")
    analysed = False
"""
WINDOWS = {
    "stacks": 'any(one.name == "pipediag-stacks" for one in threading.enumerate())',
    "look": "context.context().op_callbacks",
    "profile": "any(type(one) is Profiler and one.running for one in gc.get_objects())",
}


def text(window: str, analysis: str) -> dict[str, str]:
    program = dedent(PROGRAM).replace("WINDOW_IS_OPEN", WINDOWS[window])
    return {"main.py": program.replace("ANALYSIS", dedent(analysis))}


@pytest.mark.parametrize("window", WINDOWS)
def test_nothing_of_it_runs_on(tmp_path: Path, window: str) -> None:
    for name in ("without", "with"):
        (tmp_path / name).mkdir()
    native = Case(tmp_path / "without", text(window, "")).natively()
    analysed = Case(tmp_path / "with", text(window, ANALYSIS)).natively()

    assert len(native.facts) == 4, native.stderr
    assert "interrupted" in analysed.stdout, analysed.stderr
    assert (analysed.status, analysed.facts) == (native.status, native.facts), analysed.stderr
