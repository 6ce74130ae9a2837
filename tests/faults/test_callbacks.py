"""Callbacks of the script's are told what they are told natively, and stay what they are."""

from __future__ import annotations

import pytest

from .conftest import MakeCase

pytestmark = [pytest.mark.tensorflow, pytest.mark.faults]

FITS = """
    import copy
    import hashlib
    import inspect
    import os
    import pickle
    import signal
    import threading
    import time
    import warnings

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        time.sleep(0.1)
        if os.fork() == 0:
            os._exit(0)
        os.wait()
    print("FACT fork", [str(one.message) for one in warned])

    import keras
    import numpy as np
    import tensorflow as tf

    told = []

    class Tells(keras.callbacks.Callback):
        def __init__(self, name):
            super().__init__()
            self.name = name

        def on_train_begin(self, logs=None):
            told.append((self.name, "begins"))

        def on_epoch_begin(self, epoch, logs=None):
            told.append((self.name, "epoch", epoch))

        def on_epoch_end(self, epoch, logs=None):
            told.append((self.name, "over", epoch, sorted(logs)))

        def on_train_end(self, logs=None):
            told.append((self.name, "ends"))

    class TellsMore(Tells):
        def on_epoch_end(self, epoch, logs=None):
            super().on_epoch_end(epoch, logs)
            told.append((self.name, "scores", len(self.model.predict(x[:8], verbose=0))))

    class Fails(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            raise ValueError("the script's own")

    def by_value(owner):
        # As a library has it that sends classes to other processes.
        return [
            (name, type(one).__name__, one.__code__.co_filename == __file__, one.__closure__)
            for name, one in sorted(vars(owner).items())
            if callable(one) and "super" not in inspect.getsource(one)
        ]

    keras.utils.set_random_seed(7)
    x = np.random.rand(64, 4).astype("float32")
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    note = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: told.append(epoch))
    callbacks = [Tells("one"), note, TellsMore("two"), keras.callbacks.EarlyStopping("loss")]
    arguments = {"batch_size": 8, "verbose": 0}
    print("FACT signature", inspect.signature(model.fit), inspect.signature(model.predict))
    model.fit(x, x.sum(1), epochs=3, validation_split=0.25, callbacks=callbacks, **arguments)
    print("FACT told", told)
    print("FACT classes", by_value(Tells), by_value(TellsMore), vars(note).keys())
    print("FACT copies", copy.deepcopy(callbacks[3]).monitor, type(pickle.dumps(Tells("three"))))
    try:
        model.fit(x, x.sum(1), callbacks=[Fails(), Tells("four")], **arguments)
    except ValueError as error:
        print("FACT error", error)
    print("FACT clone", keras.models.clone_model(model).count_params())

    def on_alarm(*_):
        print("FACT alarm", len(model.predict(x[:8], verbose=0)))

    signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    time.sleep(0.5)

    def trains():
        del told[:]
        model.fit(x, x.sum(1), epochs=2, callbacks=[Tells("in a thread")], **arguments)

    thread = threading.Thread(target=trains)
    thread.start()
    while thread.is_alive():
        model.predict(x[:8], verbose=0)
        time.sleep(0.05)
    print("FACT thread", told, [one.name for one in threading.enumerate()])
    weights = b"".join(w.tobytes() for w in model.get_weights())
    print("FACT weights", hashlib.sha256(weights).hexdigest())
"""


def test_callbacks_and_calls_are_those_of_a_native_run(make_case: MakeCase) -> None:
    analysed = make_case(FITS).alike("--run-to-end", "--budget", "0", facts=10)
    run = analysed.session.run
    assert run.total_s + run.pipediag_s == pytest.approx(analysed.session.wall_s, abs=1e-3)
    assert not [note for note in analysed.session.notes if "error of its own" in note]
