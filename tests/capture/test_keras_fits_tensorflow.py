"""Keras `fit` on every kind of source, in one script that runs to its end."""

from __future__ import annotations

import pytest

from tests.capture.captured import Captured
from tests.capture.conftest import Capturing

pytestmark = pytest.mark.tensorflow

SCRIPT = """
    import time
    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(7)
    rng = np.random.default_rng(7)
    x = rng.integers(0, 50, (640, 3))
    y = rng.random((640, 1)).astype("float32")
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(8)

    class Rows(keras.utils.PyDataset):
        batch_size = 8

        def __len__(self):
            return 80

        def __getitem__(self, index):
            rows = slice(8 * index, 8 * index + 8)
            return x[rows], y[rows]

    def batches():
        for index in range(30):
            yield x[8 * index : 8 * index + 8], y[8 * index : 8 * index + 8]

    class Slowly(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):  # hook
            time.sleep(0.003)

    class Quietly(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            pass

    normal = keras.layers.Normalization()
    normal.adapt(dataset.map(lambda x, y: tf.cast(x, tf.float32)))  # adapt
    for _ in dataset.take(1):  # preview
        pass

    model = keras.Sequential(
        [
            keras.Input((3,)),
            keras.layers.Embedding(50, 4, name="table"),
            keras.layers.Flatten(),
            keras.layers.Dense(1),
        ]
    )
    model.compile("adam", "mse")
    callbacks = [Slowly(), Quietly()]
    model.fit(dataset, validation_data=dataset, epochs=2, verbose=0, callbacks=callbacks)  # dataset
    model.fit(x, y, batch_size=8, epochs=2, verbose=0, callbacks=[Slowly()])  # arrays
    model.fit(Rows(workers=2), epochs=2, verbose=0, callbacks=[Slowly()])  # rows
    model.fit(batches(), epochs=1, verbose=0, callbacks=[Slowly()])  # generator
    endless = dataset.repeat()
    model.fit(endless, steps_per_epoch=30, epochs=5, verbose=0, callbacks=[Slowly()])  # steps
    model.evaluate(dataset, verbose=0)  # evaluate
    model.predict(dataset, verbose=0)  # predict
"""

# The generator's 30 steps end before its windows do.
MEASURED = ["dataset", "arrays", "rows", "steps"]


@pytest.fixture(scope="module")
def fits(capturing: Capturing) -> Captured:
    return capturing(SCRIPT, run_to_end=True)


def test_the_script_runs_to_its_end(fits: Captured) -> None:
    assert fits.status == 0, fits.stderr
    assert fits.recording.notes == []


@pytest.mark.parametrize(
    ("mark", "adapter", "source", "steps"),
    [
        ("dataset", "TFDatasetAdapter", "_BatchDataset", 160),
        ("arrays", "ArrayDataAdapter", "ndarray", 160),
        ("rows", "PyDatasetAdapter", "Rows", 160),
        ("generator", "GeneratorDataAdapter", "generator", 30),
        ("steps", "TFDatasetAdapter", "_RepeatDataset", 150),
    ],
)
def test_each_fit_is_a_training_loop(
    fits: Captured, mark: str, adapter: str, source: str, steps: int
) -> None:
    loop = next(loop for loop in fits.loops(mark) if loop.role == "training")

    assert (loop.kind, loop.updates_variables, loop.batch_size) == ("keras", True, 8)
    assert (loop.keras.data_adapter, loop.keras.source) == (adapter, source)
    assert (loop.keras.model, loop.keras.optimizer) == ("Sequential", "Adam")
    assert loop.steps == steps
    assert loop.planned_steps == {"dataset": 160, "steps": 150}.get(mark, loop.planned_steps)
    if mark == "steps":
        assert (loop.keras.epochs, loop.keras.steps_per_epoch) == (5, 30)
    if mark == "rows":
        assert (loop.keras.workers, loop.keras.use_multiprocessing) == (2, False)
        assert loop.keras.source_file == str(fits.script)
    tables = {(v.layer, v.rows, v.dim, v.trainable) for v in fits.recording.variables}
    assert tables == {("table", 50, 4, True)}


@pytest.mark.parametrize("mark", MEASURED)
def test_each_fit_is_measured(fits: Captured, mark: str) -> None:
    loop = next(loop for loop in fits.loops(mark) if loop.role == "training")

    assert fits.kinds(loop) == {"warmup", "baseline", "stacks", "profile"}
    baseline = fits.baseline(loop)
    assert sum(len(block.durations_ns) for block in baseline.blocks) == 20
    for block in baseline.blocks:
        # Keras switches tf.data's autotune off for a PyDataset with workers, and its model with it.
        assert len(block.gaps_us) == (0 if mark == "rows" else len(block.durations_ns))
    assert loop.autotune_enabled is (mark != "rows")


def test_a_fit_that_ended_too_early_keeps_its_steps(fits: Captured) -> None:
    loop = fits.loop("generator")
    last = fits.windows(loop)[-1]

    assert not last.complete
    assert last.reason == "the loop ended before this window was full"


def test_a_validation_inside_fit_is_told_apart(fits: Captured) -> None:
    training, validation = sorted(fits.loops("dataset"), key=lambda loop: loop.role)

    assert (training.role, validation.role) == ("training", "validation")
    assert not validation.updates_variables
    assert fits.windows(validation) == []


@pytest.mark.parametrize(
    ("mark", "role"),
    [
        ("adapt", "adapt"),
        ("preview", "preview"),
        ("evaluate", "evaluate"),
        ("predict", "predict"),
    ],
)
def test_other_phases_are_not_training(fits: Captured, mark: str, role: str) -> None:
    loop = fits.loop(mark)

    assert loop.role == role
    assert not loop.updates_variables
    assert fits.windows(loop) == []


def test_callbacks_of_the_user(fits: Captured) -> None:
    training = next(loop for loop in fits.loops("dataset") if loop.role == "training")
    slowly, quietly = training.keras.callbacks

    assert (slowly.name, slowly.batch_hooks) == ("Slowly", ["on_train_batch_end"])
    assert (slowly.file, slowly.line) == (str(fits.script), fits.line("hook"))
    assert (quietly.name, quietly.batch_hooks) == ("Quietly", [])


def test_environment(fits: Captured) -> None:
    environment = fits.recording.environment

    assert environment.keras_backend == "tensorflow"
    assert environment.tensorflow is not None
    assert environment.keras is not None
    assert not environment.legacy_keras
    assert {loop.keras.legacy for loop in fits.recording.loops if loop.keras} == {False}
    assert [device.kind for device in environment.devices] == ["CPU"]


STAGES = """
    import keras
    import numpy as np
    import tensorflow as tf

    data = tf.data.Dataset.from_tensor_slices((np.ones((400, 3)), np.ones((400, 1)))).batch(8)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    for rate, count in [(0.1, 1), (0.01, 3)]:
        model.fit(data, epochs=count, verbose=0)  # stages
    for size in (10, 10, 40, 40, 40):
        model.fit(data.take(size), epochs=2, verbose=0)  # sizes
"""


def test_a_longer_fit_of_a_loop_has_the_rounds_that_are_left(capturing: Capturing) -> None:
    run = capturing(STAGES, run_to_end=True)
    assert run.status == 0, run.stderr
    assert [loop.planned_rounds for loop in run.loops("stages")] == [None, None]
    assert [loop.planned_rounds for loop in run.loops("sizes")] == [5, 3]
