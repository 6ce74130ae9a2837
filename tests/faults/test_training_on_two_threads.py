"""A thread that trains while another one's loop is measured."""

from __future__ import annotations

import pytest

from .conftest import MakeCase
from .slow_fits import HELPERS

pytestmark = [pytest.mark.tensorflow, pytest.mark.faults]

SCRIPT = """
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


def test_what_it_trains_is_what_it_trains_natively(make_case: MakeCase) -> None:
    case = make_case(SCRIPT, helpers=HELPERS)
    native, analysed = case.natively(), case.analysed("--run-to-end", "--budget", "20")

    assert native.facts
    assert (analysed.status, analysed.facts) == (native.status, native.facts), analysed.stderr
    assert analysed.session.trials is None
