"""Loops in a tf.function, MirroredStrategy, short epochs, and a script that profiles itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.session.store import read_timeline
from tests.capture.captured import Captured
from tests.capture.conftest import Capturing

pytestmark = pytest.mark.tensorflow

IN_GRAPH = """
    import tensorflow as tf

    weights = tf.Variable(0.0)
    dataset = tf.data.Dataset.range(100).batch(16)

    @tf.function
    def epoch(batches):
        for x in batches:  # loop
            weights.assign_add(tf.reduce_mean(tf.cast(x, tf.float32)))

    for batch in dataset:
        print(batch.shape)
        break
    for _ in range(3):
        epoch(dataset)
        epoch(iter(dataset))
"""

MIRRORED = """
    import time
    import keras
    import numpy as np
    import tensorflow as tf

    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration(), tf.config.LogicalDeviceConfiguration()],
    )
    keras.utils.set_random_seed(1)
    strategy = tf.distribute.MirroredStrategy(["/CPU:0", "/CPU:1"])
    x = np.random.default_rng(1).random((960, 4)).astype("float32")
    dataset = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(8)  # pipeline

    class Slowly(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            time.sleep(0.01)

    with strategy.scope():
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        weights = tf.Variable(tf.zeros([4, 1]))
    model.fit(dataset, epochs=1, verbose=0, callbacks=[Slowly()])  # fit

    def update(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(x @ weights - y))
        gradient = tape.gradient(loss, weights)
        context = tf.distribute.get_replica_context()
        context.merge_call(
            lambda s, g: s.extended.update(
                weights, lambda v, g: v.assign_sub(0.1 * g), args=(s.reduce("SUM", g, axis=None),)
            ),
            args=(gradient,),
        )

    @tf.function
    def train(x, y):
        strategy.run(update, args=(x, y))

    distributed = strategy.experimental_distribute_dataset(dataset)
    for x, y in distributed:  # custom
        train(x, y)
        time.sleep(0.01)

    x = np.ones((24, 4), "float32")
    training = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(8)
    held_out = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(4)

    class Own(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            time.sleep(0.01)

        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 2:
                tf.profiler.experimental.start("own")  # profiler
            if epoch == 6:
                tf.profiler.experimental.stop()

    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    fitted = {"validation_data": held_out, "epochs": 60, "callbacks": [Own()]}
    model.fit(training, verbose=0, **fitted)  # epochs
"""


OWN_PROFILE_LATE = """
    import time
    import tensorflow as tf

    weights = tf.Variable(tf.zeros([4, 1]))

    @tf.function
    def train(x):
        weights.assign_add(tf.cast(tf.reduce_sum(x), tf.float32) * tf.ones([4, 1]))

    started = False
    for x in tf.data.Dataset.range(100000).batch(4):  # loop
        train(x)
        time.sleep(0.02)
        if not started and PROFILE_SEEN():
            started = True
            tf.profiler.experimental.start("own")  # profiler
            for _ in range(3):
                train(x)
            tf.profiler.experimental.stop()
            break
"""


@pytest.fixture(scope="module")
def in_graph(capturing: Capturing) -> Captured:
    return capturing(IN_GRAPH)


def test_a_loop_in_a_function_is_named_and_its_first_call_is_no_compiling(
    in_graph: Captured,
) -> None:
    assert in_graph.status == 0, in_graph.stderr
    (use,) = in_graph.recording.other_uses
    assert (use.file, use.line) == (str(in_graph.script), in_graph.line("loop"))
    assert all(one.role != "training" for one in in_graph.recording.loops)
    spans = read_timeline(in_graph.directory / "capture" / "timeline.jsonl").spans
    assert not any(span.kind == "first_call" for span in spans)


@pytest.fixture(scope="module")
def mirrored(capturing: Capturing) -> Captured:
    return capturing(MIRRORED, run_to_end=True)


@pytest.mark.parametrize(("mark", "kind"), [("fit", "keras"), ("custom", "distributed")])
def test_mirrored_loops(mirrored: Captured, mark: str, kind: str) -> None:
    assert mirrored.status == 0, mirrored.stderr
    loop = mirrored.loop(mark)

    assert (loop.kind, loop.role) == (kind, "training")
    # Keras draws a batch of distributed data ahead, to build by, which counts as a step.
    assert loop.steps == (121 if mark == "fit" else 120)
    assert (loop.replicas, loop.batch_size) == (2, 8)
    assert loop.root_op_id == mirrored.operation("pipeline", "batch").id
    assert mirrored.kinds(loop) == {"warmup", "baseline", "stacks", "profile"}


def test_windows_span_short_epochs_and_leave_out_the_boundaries(mirrored: Captured) -> None:
    loop = next(loop for loop in mirrored.loops("epochs") if loop.role == "training")
    baseline = mirrored.baseline(loop)

    assert (loop.steps, loop.planned_steps) == (180, 180)
    assert loop.boundaries == 60
    assert mirrored.kinds(loop) == {"warmup", "baseline", "stacks", "profile"}
    assert all(len(block.durations_ns) <= 2 for block in baseline.blocks)
    for block in baseline.blocks[:-1]:
        assert len(block.gaps_us) == len(block.durations_ns)
    # The window ends as a call begins; tf.data notes the gap before it once that asks for a batch.
    assert len(baseline.blocks[-1].gaps_us) >= len(baseline.blocks[-1].durations_ns) - 1


def own_profiles(captured: Captured) -> list[Path]:
    return list(captured.directory.glob("own/**/*.xplane.pb"))


def test_the_scripts_own_profiler_keeps_its_right(mirrored: Captured) -> None:
    (note,) = [one for one in mirrored.recording.notes if "profiler itself" in one]

    assert len(own_profiles(mirrored)) == 1
    assert f"{mirrored.script}:{mirrored.line('profiler')}: its steps were left out" in note


@pytest.fixture(scope="module")
def late_profile(capturing: Capturing) -> Captured:
    seen = "lambda: 'profile' in [w.kind for w in RECORDER.recording.windows]"
    find = (
        "import gc\n    from pipediag.capture.recorder import Recorder\n"
        "    RECORDER = next(o for o in gc.get_objects() if isinstance(o, Recorder))\n"
        f"    PROFILE_SEEN = {seen}\n"
    )
    return capturing(
        OWN_PROFILE_LATE.replace("    weights", f"    {find}    weights", 1), profile_steps=1000
    )


def test_our_profile_makes_room_for_the_scripts(late_profile: Captured) -> None:
    (note,) = [one for one in late_profile.recording.notes if "profiler itself" in one]
    loop = late_profile.loop("loop")
    profile = late_profile.windows(loop)[-1]

    assert late_profile.status == 0, late_profile.stderr
    assert len(own_profiles(late_profile)) == 1
    assert f":{late_profile.line('profiler')}: pipediag's profile was cut off" in note
    assert (profile.kind, profile.complete) == ("profile", False)
