"""A thread that begins to train while another one's loop is held for trials."""

from __future__ import annotations

import pytest

from .conftest import MakeCase
from .slow_fits import HELPERS

pytestmark = [pytest.mark.tensorflow, pytest.mark.faults]

SCRIPT = """
    import threading
    from helpers import *

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

    UNDER_PIPEDIAG = os.path.basename(os.getcwd()) == "analysed"
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
    assert "another thread" in analysed.session.model_dump_json()
