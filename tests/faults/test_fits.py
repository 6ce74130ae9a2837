"""Fits that run to their end have native results; short ones are tried before they are over."""

from __future__ import annotations

import pytest

from .case import HELPERS
from .conftest import MakeCase

pytestmark = [pytest.mark.tensorflow, pytest.mark.faults]

AUGMENTED = """
    from helpers import *

    def augmented(row, label):
        return row + tf.random.uniform([16]) * 0.1, label

    dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(200).map(augmented)
    dataset = slowly(dataset).batch(4).prefetch(1)
    model = mlp(metrics=["mae"])
    logger = keras.callbacks.CSVLogger("log")
    tell(model, model.fit(dataset, epochs=4, verbose=0, callbacks=[logger]))
    print("FACT next pass", float(next(iter(dataset))[0][0, 0]))
"""


def test_a_run_that_counts_is_not_touched(make_case: MakeCase) -> None:
    case = make_case(AUGMENTED, helpers=HELPERS)
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
