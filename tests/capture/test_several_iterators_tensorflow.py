"""Steps that draw from two datasets, by `zip` or by `next`, with a validation after each epoch."""

from __future__ import annotations

import pytest

from tests.capture.captured import Captured
from tests.capture.conftest import Capturing

pytestmark = pytest.mark.tensorflow

SCRIPT = """
    import time
    import numpy as np
    import tensorflow as tf

    x = np.ones((480, 4), "float32")
    fast = tf.data.Dataset.from_tensor_slices(x).batch(8)
    asleep = lambda row: tf.py_function(lambda row: (time.sleep(0.02), row)[1], [row], tf.float32)
    slow = fast.map(asleep)  # asleep
    weights = tf.Variable(tf.zeros([4, 1]))

    @tf.function
    def train(one, other):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((one @ weights - 1) ** 2 + (other @ weights) ** 2)
        weights.assign_sub(0.01 * tape.gradient(loss, weights))

    for epoch in range(3):
        for one, other in zip(fast, slow):  # zip
            train(one, other)
        for one in fast:  # validation
            tf.reduce_mean(one @ weights).numpy()

    others = iter(slow.repeat())  # others
    for epoch in range(3):
        for one in fast:  # next
            train(one, next(others))
"""


@pytest.fixture(scope="module")
def run(capturing: Capturing) -> Captured:
    return capturing(SCRIPT, run_to_end=True)


@pytest.mark.parametrize("mark", ["zip", "next"])
def test_the_loop_is_measured_with_both_waits(run: Captured, mark: str) -> None:
    assert run.status == 0, run.stderr
    loop = run.loop(mark)
    assert (loop.role, loop.steps, loop.iterators) == ("training", 180, 3)
    assert len(loop.epoch_seams) == 2
    assert {"warmup", "baseline", "stacks", "profile"} <= run.kinds(loop)
    for block in run.baseline(loop).blocks:
        assert block.gaps_us == []
        assert len(block.waits_ns) == len(block.durations_ns)
    assert loop.untried is not None


@pytest.mark.parametrize("mark", ["zip", "next"])
def test_its_pipeline_is_the_one_that_is_waited_for(run: Captured, mark: str) -> None:
    above = run.recording.upstream(run.loop(mark).root_op_id)
    assert run.operation("asleep").id in {operation.id for operation in above}
    assert any(snapshot.loop_id == run.loop(mark).id for snapshot in run.recording.snapshots)


def test_what_is_drawn_from_beside_it_is_no_loop_that_evaluates(run: Captured) -> None:
    others = run.loop("others")
    assert (others.role, others.part_of) == ("other", run.loop("next").id)
    assert run.loop("validation").role == "validation"
    assert run.loop("validation").part_of is None
