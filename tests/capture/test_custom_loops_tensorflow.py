"""Loops that the user wrote, loops that only look, and what lies between epochs."""

from __future__ import annotations

import pytest

from tests.capture.captured import Captured
from tests.capture.conftest import Capturing

pytestmark = pytest.mark.tensorflow

STEPS = 120

SCRIPT = """
    import time
    import keras
    import numpy as np
    import tensorflow as tf

    tf.keras.utils.set_random_seed(5)
    rng = np.random.default_rng(5)
    x = rng.random((960, 4)).astype("float32")
    y = rng.random((960, 1)).astype("float32")
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(960, seed=1).batch(8)
    weights = tf.Variable(tf.zeros([4, 1]))

    def update(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(x @ weights - y))
        weights.assign_sub(0.01 * tape.gradient(loss, weights))

    compiled = tf.function(update)

    @tf.function
    def evaluated(x, y):
        return tf.reduce_mean(tf.square(x @ weights - y))

    @tf.function
    def from_iterator(iterator):
        x, y = next(iterator)
        update(x, y)

    @tf.function
    def by_number(x, y, number):
        update(x, y)
        return number

    for one, _ in dataset.take(1):  # preview
        print(one.shape)
    list(dataset)  # list

    for x, y in dataset:  # eager
        compiled(x, y)
        time.sleep(0.01)
    for x, y in dataset:  # held out
        evaluated(x, y)

    iterator = iter(dataset)  # iterator
    for _ in range(120):
        x, y = next(iterator)
        update(x, y)
        time.sleep(0.003)

    iterator = iter(dataset)  # taken by a function
    for _ in range(120):
        from_iterator(iterator)
        time.sleep(0.003)
    try:
        from_iterator(iterator)
    except tf.errors.OutOfRangeError:
        print("past the end")

    for number, (x, y) in enumerate(dataset):  # retracing
        by_number(x, y, number if number < 10 else 0)
        time.sleep(0.003)

    def rows():
        for x, y in dataset:  # inside a generator
            yield x, y

    spec = dataset.element_spec
    for x, y in tf.data.Dataset.from_generator(rows, output_signature=spec):  # generated
        compiled(x, y)
        time.sleep(0.01)

    def slowly(row):
        time.sleep(0.004)
        return row

    def costly(row):
        made = tf.numpy_function(slowly, [row], tf.float32)
        made.set_shape([3])
        return made, tf.reduce_sum(row)

    rows = np.random.default_rng(7).random((64, 3)).astype("float32")
    dataset = tf.data.Dataset.from_tensor_slices(rows).map(costly).shuffle(64).batch(4)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    model.fit(dataset, epochs=3, verbose=0)  # fit

    weight = tf.Variable(tf.ones((3, 1)))

    @tf.function
    def train(x):
        weight.assign_sub(0.01 * tf.reduce_mean(x) * tf.ones((3, 1)))

    for epoch in range(3):
        for x, y in dataset:  # own
            train(x)
"""


@pytest.fixture(scope="module")
def loops(capturing: Capturing) -> Captured:
    return capturing(SCRIPT, run_to_end=True)


def test_the_script_runs_to_its_end(loops: Captured) -> None:
    assert loops.status == 0, loops.stderr
    assert "past the end" in loops.stdout
    assert loops.recording.outcome == "finished"


@pytest.mark.parametrize(
    ("mark", "kind"),
    [
        ("eager", "eager"),
        ("iterator", "eager"),
        ("taken by a function", "tf_function"),
        ("retracing", "eager"),
    ],
)
def test_training_loops_are_found_and_measured(loops: Captured, mark: str, kind: str) -> None:
    loop = loops.loop(mark)

    assert (loop.role, loop.kind, loop.updates_variables) == ("training", kind, True)
    assert (loop.iterators, loop.batch_size) == (1, 8)
    assert loop.root_op_id == loops.recording.operations[2].id
    assert loop.steps == STEPS
    assert loop.elapsed_ns > 0
    assert loop.first_step_ns is not None
    windows = loops.windows(loop)
    assert [w.kind for w in windows if w.kind != "warmup"] == ["baseline", "stacks", "profile"]
    assert loops.kinds(loop) == {"warmup", "baseline", "stacks", "profile"}
    assert windows[-1].trace_directory is not None
    blocks = loops.baseline(loop).blocks
    assert sum(len(block.durations_ns) for block in blocks) == 20
    for block in blocks:
        # A function that takes its batch from the iterator does not tell how long it waits.
        waits = 0 if kind == "tf_function" else len(block.durations_ns)
        assert len(block.waits_ns) == waits
        assert block.starts_ns == sorted(block.starts_ns)
        if mark != "retracing":
            assert len(block.starts_ns) == len(block.durations_ns) == len(block.gaps_us)


@pytest.mark.parametrize(
    ("mark", "role"), [("preview", "preview"), ("list", "preparation"), ("held out", "validation")]
)
def test_loops_that_only_look_are_not_training(loops: Captured, mark: str, role: str) -> None:
    loop = loops.loop(mark)

    assert loop.role == role
    assert not loop.updates_variables
    assert loops.windows(loop) == []


def test_two_snapshots_enclose_the_baseline(loops: Captured) -> None:
    loop = loops.loop("eager")
    # Slow steps make several blocks, with a snapshot at the end of each.
    before, *_, after = [s for s in loops.recording.snapshots if s.loop_id == loop.id]

    assert before.iterator == after.iterator == 1
    assert after.iterator_steps - before.iterator_steps >= 20
    counts = {node.name: node.num_elements for node in after.nodes}
    assert counts["BatchV2"] >= after.iterator_steps
    assert counts["Shuffle"] > counts["BatchV2"]


def test_retraces_are_counted(loops: Captured) -> None:
    loop = loops.loop("retracing")

    assert loop.trace_count == 10
    assert loop.retrace_steps == list(range(2, 11))
    assert any(name.endswith(" by_number") for name in loop.step_functions)
    assert loops.loop("eager").trace_count == 1
    assert loops.loop("eager").retrace_steps == []


def test_what_a_generator_reads_is_no_loop_of_the_script(loops: Captured) -> None:
    generated = loops.loop("generated")

    assert loops.loops("inside a generator") == []
    assert (generated.role, generated.steps) == ("training", STEPS)
    assert loops.kinds(generated) == {"warmup", "baseline", "stacks", "profile"}


def test_stacks_name_the_line_that_holds_the_main_thread(loops: Captured) -> None:
    stacks = loops.recording.stacks[0]

    assert stacks.samples > 0
    assert any(line.file == str(loops.script) and line.thread == "main" for line in stacks.lines)


EPOCHS = 3
FILL_NS = 64 * 4_000_000


def test_a_call_of_keras_holds_the_wait_in_its_first_step(loops: Captured) -> None:
    loop = loops.loop("fit")
    assert len(loop.epoch_boundaries) == EPOCHS - 1
    assert all(boundary.handed_ns is None for boundary in loop.epoch_boundaries)
    assert all((boundary.first_step_ns or 0) >= FILL_NS for boundary in loop.epoch_boundaries)


def test_a_loop_that_asks_by_itself_waits_before_its_first_step(loops: Captured) -> None:
    loop = loops.loop("own")
    assert len(loop.epoch_boundaries) == EPOCHS - 1
    for boundary in loop.epoch_boundaries:
        assert boundary.handed_ns is not None
        # What is read ahead while the iterator is made is not waited for.
        assert boundary.handed_ns - boundary.start_ns >= FILL_NS


ONE_LINE = """
    import numpy as np
    import tensorflow as tf

    x = np.ones((240, 4), "float32")
    training = tf.data.Dataset.from_tensor_slices(x).shuffle(240).batch(8)
    held_out = tf.data.Dataset.from_tensor_slices(x).batch(8)
    weights = tf.Variable(tf.zeros([4, 1]))

    @tf.function
    def train(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ weights - 1) ** 2)
        weights.assign_sub(0.01 * tape.gradient(loss, weights))

    @tf.function
    def evaluate(x):
        return tf.reduce_mean((x @ weights - 1) ** 2)

    def run_epoch(dataset, step):
        for x in dataset:  # function
            step(x)

    for epoch in range(4):
        run_epoch(training, train)
        run_epoch(held_out, evaluate)

    for epoch in range(4):
        for data, step in [(training, train), (held_out, evaluate)]:
            for x in data:  # phases
                step(x)
"""


def test_one_line_that_trains_and_validates_is_two_loops(capturing: Capturing) -> None:
    run = capturing(ONE_LINE, run_to_end=True)
    assert run.status == 0, run.stderr
    for mark in ("function", "phases"):
        training, validation = run.loops(mark)
        assert (training.role, validation.role) == ("training", "validation")
        for loop in (training, validation):
            assert (loop.steps, loop.iterators, loop.planned_rounds) == (120, 4, 4)
        assert not run.windows(validation)


IN_PARTS = """
    import tensorflow as tf

    data = tf.data.Dataset.range(640).map(lambda i: tf.cast(i, tf.float32)).batch(4)
    weights = tf.Variable(1.0)

    @tf.function
    def train(x):
        weights.assign_sub(0.01 * tf.reduce_mean(x))

    for epoch in range(2):
        for step, x in enumerate(data):  # left
            if step >= 40:
                break
            train(x)

    batches = iter(data.repeat())  # asked
    for _ in range(50):
        train(next(batches))

    for x in data:  # whole
        train(x)
"""


def test_a_loop_that_takes_a_part_of_its_data_is_as_long_as_that(capturing: Capturing) -> None:
    run = capturing(IN_PARTS, run_to_end=True)
    assert run.status == 0, run.stderr
    found = [run.loops(mark)[0] for mark in ("left", "asked", "whole")]
    assert [loop.data_steps for loop in found] == [41, 50, 160]
    assert [loop.steps for loop in found] == [82, 50, 160]
