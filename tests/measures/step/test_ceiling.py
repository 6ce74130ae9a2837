from __future__ import annotations

import numpy as np
import pytest

from pipediag.measures.bootstrap import Measured
from pipediag.measures.breakdown import measure_ceiling
from tests.factories import make_loop_time
from tests.records import make_breakdown


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


def test_it_is_the_breakdowns_own_whatever_was_rounded() -> None:
    wait = Measured(99.4449, np.array([99.4449]))
    ceiling = measure_ceiling(wait, make_breakdown(input_wait=99.44))
    assert ceiling.speedup_if_input_free == 100.0 / (100.0 - 99.44)


def test_the_whole_loop_gains_by_the_waits_between_epochs_as_well() -> None:
    """Of 20 s, 16 s are first batches, and half of 3 s of steps is waiting."""
    wait = Measured(50.0, np.array([50.0]))
    ceiling = measure_ceiling(wait, make_breakdown(input_wait=50.0), make_loop_time())
    assert ceiling.loop_speedup_if_input_free == pytest.approx(20.0 / 2.5)
    nothing_left = make_loop_time(steps_s=4.0, between_epochs_s=0.0)
    all_wait = measure_ceiling(
        Measured(99.8, np.array([99.8])), make_breakdown(input_wait=99.8), nothing_left
    )
    assert all_wait.loop_speedup_if_input_free is None


def test_free_input_still_creates_and_destroys_iterators() -> None:
    wait = Measured(50.0, np.array([50.0]))
    time = make_loop_time(making_s=0.5, between_epochs_s=0.5)
    ceiling = measure_ceiling(wait, make_breakdown(input_wait=50.0), time)
    assert ceiling.loop_speedup_if_input_free == pytest.approx(20.0 / 2.5)


def test_a_loop_gains_no_more_than_its_steps_where_no_first_batch_is_waited_for() -> None:
    wait = Measured(90.0, np.array([90.0]))
    time = make_loop_time(
        total_s=10.0, steps_s=7.0, first_batches_s=0.0, making_s=2.0, between_epochs_s=1.0
    )
    ceiling = measure_ceiling(wait, make_breakdown(input_wait=90.0), time)
    assert ceiling.speedup_if_input_free is not None
    assert ceiling.loop_speedup_if_input_free is not None
    assert ceiling.loop_speedup_if_input_free <= ceiling.speedup_if_input_free


def test_a_wait_for_a_first_batch_that_is_a_step_as_well_counts_once() -> None:
    """The mean step of 10 ms has 9 ms of them, and 0.5 ms of other waiting, of its steady 1 ms."""
    wait = Measured(95.0, np.array([95.0]))
    time = make_loop_time(step_ms=1.0)
    ceiling = measure_ceiling(wait, make_breakdown(input_wait=95.0), time)
    assert ceiling.loop_speedup_if_input_free == pytest.approx(20.0 / 2.5)
