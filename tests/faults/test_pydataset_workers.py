"""A PyDataset read by workers in a trial: afterwards it is as if nobody else had read it."""

from __future__ import annotations

import pytest

from .conftest import MakeCase
from .test_trials_while_it_goes_on import ran

pytestmark = [pytest.mark.tensorflow, pytest.mark.faults]

HARMLESS = """
    import threading
    from helpers import *

    class Stored(keras.utils.PyDataset):
        def __len__(self):
            return 150
        def __getitem__(self, index):
            time.sleep(0.02)
            rows = slice(4 * index, 4 * index + 4)
            return x[rows], y[rows]

    model = mlp()
    tell(model, model.fit(Stored(), epochs=2, verbose=0))
    print("FACT threads", sorted(t.name for t in threading.enumerate() if "Pool" in t.name))
"""

COUNTED = """
    from helpers import *

    class Stored(keras.utils.PyDataset):
        seen = 0
        def __len__(self):
            return 150
        def __getitem__(self, index):
            self.count()
            time.sleep(0.01)
            rows = slice(4 * index, 4 * index + 4)
            return x[rows] + self.seen % 3, y[rows]
        def count(self):
            self.seen += 1

    model, stored = mlp(), Stored()
    tell(model, model.fit(stored, epochs=2, verbose=0))
    print("FACT seen", stored.seen)
"""


def test_one_that_only_reads_is_tried_and_left_as_it_was(make_case: MakeCase) -> None:
    _, analysed = ran(make_case, HARMLESS, "--budget", "40")
    session = analysed.session
    assert session.trials is not None, session.trials_missing
    assert any(block.arm.startswith("pydataset-workers") for block in session.trials.blocks)


def test_one_that_counts_is_not_read_by_a_trial(make_case: MakeCase) -> None:
    _, analysed = ran(make_case, COUNTED, "--budget", "5")
    assert analysed.session.trials is None
    assert "self.count" in str(analysed.session.trials_missing)
