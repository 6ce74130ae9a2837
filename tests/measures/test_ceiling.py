from __future__ import annotations

import numpy as np

from pipediag.measures.ceiling import measure_ceiling
from pipediag.measures.input_wait import Measured
from tests.factories import make_breakdown


def test_the_ceiling_is_step_over_consumer_time() -> None:
    wait = Measured(75.0, np.array([74.0, 75.0, 76.0]))
    ceiling = measure_ceiling(wait, make_breakdown(input_wait=75.0, dispatch=20.0, python=5.0))
    assert ceiling.speedup_if_input_free == 4.0
    assert ceiling.ci95 is not None
    assert ceiling.ci95[0] < 4.0 < ceiling.ci95[1]
    assert ceiling.next_bottleneck == "dispatch"


def test_unattributed_time_names_no_next_bottleneck() -> None:
    wait = Measured(50.0, np.array([50.0]))
    ceiling = measure_ceiling(wait, make_breakdown(input_wait=50.0))
    assert ceiling.next_bottleneck is None


def test_a_step_of_waiting_alone_has_no_ceiling() -> None:
    ceiling = measure_ceiling(Measured(100.0, np.array([100.0])), make_breakdown(input_wait=100.0))
    assert ceiling.speedup_if_input_free is None
    assert "input wait alone" in (ceiling.missing or "")
