"""A thread that begins to train while another one's loop is held for trials."""

from __future__ import annotations

import pytest

from .conftest import MakeCase

pytestmark = [pytest.mark.tensorflow, pytest.mark.faults]

SCRIPT = """
    import hashlib
    import os
    import threading
    import time

    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(7)
    x = np.random.rand(600, 16).astype("float32")
    y = x.sum(1)

    def waits(row):
        time.sleep(0.001)
        return row

    def read(row, label):
        return tf.ensure_shape(tf.numpy_function(waits, [row], tf.float32), [16]), label

    def mlp():
        model = keras.Sequential([keras.layers.Dense(8), keras.layers.Dense(1)])
        model.compile("adam", "mse")
        model.build((None, 16))
        return model

    def held_or_late():
        give_up_at = time.monotonic() + (60 if UNDER_PIPEDIAG else 1)
        while time.monotonic() < give_up_at:
            if any(one.name == "pipediag-step-limit" for one in threading.enumerate()):
                time.sleep(1)
                return
            time.sleep(0.01)

    def train_beside():
        held_or_late()
        history = beside.fit(x, y, batch_size=20, epochs=3, shuffle=False, verbose=0)
        told.append(history.history["loss"])

    def digest(model):
        weights = b"".join(np.ascontiguousarray(w).tobytes() for w in model.get_weights())
        return hashlib.sha256(weights).hexdigest(), int(model.optimizer.iterations)

    UNDER_PIPEDIAG = os.path.basename(os.getcwd()) == "analysed"
    main, beside, told = mlp(), mlp(), []
    beside.train_on_batch(x[:20], y[:20])
    thread = threading.Thread(target=train_beside)
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).map(read).batch(4).prefetch(1)
    thread.start()
    main.fit(dataset, epochs=5, verbose=0)
    thread.join()
    print("FACT main", digest(main))
    print("FACT beside", told, digest(beside))
"""


def test_what_it_trains_is_what_it_trains_natively(make_case: MakeCase) -> None:
    case = make_case(SCRIPT)
    native, analysed = case.natively(), case.analysed("--run-to-end", "--budget", "20")

    assert native.facts
    assert (analysed.status, analysed.facts) == (native.status, native.facts), analysed.stderr
    assert "another thread" in analysed.session.model_dump_json()
