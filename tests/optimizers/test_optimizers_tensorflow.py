"""Row-wise optimizers: their steps beside the published rules in plain NumPy, and in Keras."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

Array = NDArray[np.float64]
Sparse = tuple[NDArray[np.int64], Array]
"""Indices, and a value for each."""
Slots = dict[str, Any]
"""Slots of a row by name, which start from 0."""

# Steps as they are published. Each gets the gradient, the learning rate and the number of the step,
# from 1; it changes the slots of a row and returns what to take from the row.


def adam(own: Slots, g: Array, rate: float, t: int, *, amsgrad: bool = False) -> Array:
    own["m"] = 0.9 * own["m"] + 0.1 * g
    own["v"] = 0.999 * own["v"] + 0.001 * g**2
    own["largest"] = np.maximum(own["largest"], own["v"])
    v = own["largest"] if amsgrad else own["v"]
    return rate * np.sqrt(1 - 0.999**t) / (1 - 0.9**t) * own["m"] / (np.sqrt(v) + 1e-7)


def adagrad(own: Slots, g: Array, rate: float, t: int) -> Array:
    own["sum"] = own.get("sum", 0.1) + g**2
    return rate * g / np.sqrt(own["sum"] + 1e-7)


def rmsprop(
    own: Slots, g: Array, rate: float, t: int, *, momentum: float = 0.0, centered: bool = False
) -> Array:
    own["v"] = 0.9 * own["v"] + 0.1 * g**2
    own["a"] = 0.9 * own["a"] + 0.1 * g
    scale = own["v"] - own["a"] ** 2 if centered else own["v"]
    own["s"] = momentum * own["s"] + rate * g / np.sqrt(scale + 1e-7)
    return own["s"]


def sgd(
    own: Slots, g: Array, rate: float, t: int, *, momentum: float = 0.0, nesterov: bool = False
) -> Array:
    own["m"] = momentum * own["m"] - rate * g
    return rate * g - momentum * own["m"] if nesterov else -own["m"]


RATE = 0.05


@dataclass(frozen=True)
class Case:
    """An optimizer by the name that it has in Keras, and the arguments that it is made with."""

    keras_name: str
    step: Callable[..., Array]
    arguments: dict[str, Any] = field(default_factory=dict)

    def trained(self, table: Array, batches: Iterable[Sparse]) -> Array:
        """Return the table after these batches."""
        table, slots = table.astype(float), defaultdict[int, Slots](lambda: defaultdict(float))
        options = dict(self.arguments)
        decay = RATE * options.pop("weight_decay", 0.0)
        for number, (indices, values) in enumerate(batches, start=1):
            for row in set(indices.tolist()):
                gradient = values[indices == row].astype(float).sum(axis=0)
                table[row] -= decay * table[row]
                table[row] -= self.step(slots[row], gradient, RATE, number, **options)
        return table

    def lazy(self, **more: Any) -> Any:
        import pipediag.optimizers as module

        kind = getattr(module, f"Lazy{self.keras_name}")
        return kind(**{"learning_rate": RATE, **self.arguments, **more})

    def keras(self, **more: Any) -> Any:
        import keras

        kind = getattr(keras.optimizers, self.keras_name)
        return kind(**{"learning_rate": RATE, **self.arguments, **more})

    def __str__(self) -> str:
        return " ".join([self.keras_name, *self.arguments])


CASES = (
    Case("Adam", adam),
    Case("Adam", adam, {"amsgrad": True}),
    Case("AdamW", adam, {"weight_decay": 0.3}),
    Case("Adagrad", adagrad),
    Case("RMSprop", rmsprop),
    Case("RMSprop", rmsprop, {"momentum": 0.5, "centered": True}),
    Case("SGD", sgd),
    Case("SGD", sgd, {"momentum": 0.5}),
    Case("SGD", sgd, {"momentum": 0.5, "nesterov": True}),
)


def batches(rows: int, dim: int, steps: int = 5, ids: int = 6) -> list[Sparse]:
    """Sparse gradients with repeated rows, rows that come back, and rows that never come."""
    random = np.random.default_rng(rows)
    return [
        (random.integers(0, rows // 2, ids), random.normal(size=(ids, dim))) for _ in range(steps)
    ]


pytestmark = pytest.mark.tensorflow

each_case = pytest.mark.parametrize("case", CASES, ids=str)
TABLES = ((10, 3), (14, 2))
KERNEL = (4, 3)


ADAM, SGD = CASES[0], CASES[6]


@pytest.fixture(autouse=True)
def _float32_afterwards() -> Iterator[None]:
    """Policies hold for the whole process."""
    yield
    import keras

    keras.config.set_dtype_policy("float32")


def start(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(7).normal(size=shape).astype(np.float32)


def slices(batch: Sparse, rows: int) -> Any:
    import tensorflow as tf

    indices, values = batch
    return tf.IndexedSlices(
        tf.constant(values, tf.float32), tf.constant(indices), tf.constant([rows, values.shape[1]])
    )


def apply_all(
    optimizer: Any, variables: list[Any], steps: list[list[Any]], *, xla: bool = False
) -> list[np.ndarray]:
    """Return the variables' values after steps with these gradients."""
    import tensorflow as tf

    optimizer.build(variables)
    apply = tf.function(lambda gradients: optimizer.apply(gradients, variables), jit_compile=xla)
    for gradients in steps:
        apply(gradients)
    return [variable.numpy() for variable in variables]


@pytest.mark.parametrize(
    ("case", "xla"),
    [*((case, False) for case in CASES), *((case, True) for case in CASES[1::4])],
    ids=str,
)
def test_tables_change_by_the_published_rule_and_dense_variables_as_by_keras(
    case: Case, xla: bool
) -> None:
    import keras

    sparse = [batches(*shape) for shape in TABLES]
    dense = [start(KERNEL) * number for number in range(1, 6)]
    tables = [keras.Variable(start(shape)) for shape in TABLES]
    kernel, kernel_of_keras = keras.Variable(start(KERNEL)), keras.Variable(start(KERNEL))
    steps = [
        [*(slices(batch, rows) for batch, (rows, _) in zip(pair, TABLES, strict=True)), gradient]
        for *pair, gradient in zip(*sparse, dense, strict=True)
    ]

    *after, kernel_after = apply_all(case.lazy(), [*tables, kernel], steps, xla=xla)
    (expected_kernel,) = apply_all(
        case.keras(), [kernel_of_keras], [[gradient] for gradient in dense], xla=xla
    )

    np.testing.assert_allclose(kernel_after, expected_kernel, rtol=2e-6)
    for table, shape, its_batches in zip(after, TABLES, sparse, strict=True):
        expected = case.trained(start(shape), its_batches)
        np.testing.assert_allclose(table, expected, rtol=2e-4, atol=1e-6)
        never = np.setdiff1d(np.arange(shape[0]), np.concatenate([ids for ids, _ in its_batches]))
        assert len(never) >= shape[0] // 2
        np.testing.assert_array_equal(table[never], start(shape)[never])


FUSED = (ADAM, CASES[1], CASES[2], Case("Adam", adam, {"beta_1": 0.0}))


@pytest.mark.parametrize("xla", [False, True], ids=["plain", "xla"])
@pytest.mark.parametrize("case", FUSED, ids=str)
def test_one_pass_over_a_table_gives_what_keras_gives_also_for_repeated_rows(
    case: Case, xla: bool
) -> None:
    import keras

    import pipediag.optimizers as ours

    dense = [start(KERNEL) * number for number in range(1, 6)]
    pairs = zip(batches(10, 3), dense, strict=True)
    steps = [[slices(batch, 10), gradient] for batch, gradient in pairs]
    fused = getattr(ours, f"Fused{case.keras_name}")(learning_rate=RATE, **case.arguments)
    after, expected = (
        apply_all(
            one, [keras.Variable(start((10, 3))), keras.Variable(start(KERNEL))], steps, xla=xla
        )
        for one in (fused, case.keras())
    )
    for mine, theirs in zip(after, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)
    again = keras.optimizers.deserialize(keras.optimizers.serialize(fused))
    assert (type(again), again.get_config()) == (type(fused), fused.get_config())


@pytest.mark.parametrize(
    "arguments", [{}, {"weight_decay": 0.1}, {"global_clipnorm": 1.0}], ids=str
)
@each_case
def test_nothing_in_a_step_is_as_large_as_the_table(
    case: Case, arguments: dict[str, float]
) -> None:
    assert full_size_operations(case.lazy(**arguments)) == []
    if case is ADAM:
        assert full_size_operations(case.keras(**arguments)) != []


def full_size_operations(optimizer: Any) -> list[str]:
    """Operations of an update whose result has as many rows as the table."""
    import keras
    import tensorflow as tf

    rows = 1009
    table = keras.Variable(np.zeros((rows, 2), np.float32))
    optimizer.build([table])

    @tf.function(input_signature=[tf.TensorSpec([None, 2]), tf.TensorSpec([None], tf.int64)])
    def apply(values: Any, indices: Any) -> None:
        optimizer.apply([tf.IndexedSlices(values, indices, tf.constant([rows, 2]))], [table])

    graph = apply.get_concrete_function().graph
    return [
        operation.name
        for operation in graph.get_operations()
        if any(result.shape[:1] == [rows] for result in operation.outputs)
    ]


@pytest.mark.parametrize("xla", [False, True], ids=["plain", "xla"])
@pytest.mark.parametrize("clip", ["clipnorm", "clipvalue", "global_clipnorm"])
def test_clipping_is_that_of_the_summed_gradient(clip: str, xla: bool) -> None:
    import keras
    import tensorflow as tf

    steps = [[slices(batch, 10), start(KERNEL)] for batch in batches(10, 3)]
    dense = [[tf.convert_to_tensor(gradient), other] for gradient, other in steps]
    after = []
    for make, gradients in ((SGD.lazy, steps), (SGD.keras, dense)):
        variables = [keras.Variable(start((10, 3))), keras.Variable(start(KERNEL))]
        after.append(apply_all(make(**{clip: 0.5}), variables, gradients, xla=xla))
    for ours, theirs in zip(*after, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-7)


def test_weight_decay_reaches_rows_of_the_batch_and_all_that_is_dense() -> None:
    import keras

    optimizer = CASES[7].lazy(weight_decay=0.2)
    kept = keras.Variable(start((10, 3)))
    optimizer.exclude_from_weight_decay([kept])
    variables = [keras.Variable(start((10, 3))), kept, keras.Variable(start(KERNEL))]
    zero = (np.array([2, 2, 5]), np.zeros((3, 3)))
    step = [slices(zero, 10), slices(zero, 10), np.zeros(KERNEL, np.float32)]

    table, kept_after, kernel = apply_all(optimizer, variables, [step])

    expected = start((10, 3))
    expected[[2, 5]] *= 1 - 0.2 * RATE
    np.testing.assert_allclose(table, expected, rtol=1e-6)
    np.testing.assert_array_equal(kept_after, start((10, 3)))
    np.testing.assert_allclose(kernel, start(KERNEL) * (1 - 0.2 * RATE), rtol=1e-6)


ROWS = 50


def examples() -> tuple[np.ndarray, np.ndarray]:
    """Ids of the lower half of a table, and whether most of them are even."""
    ids = np.random.default_rng(1).integers(0, ROWS // 2, (64, 5))
    return ids, (np.sum(ids % 2 == 0, axis=1) > 2).astype(np.float32)


def model_with(optimizer: Any, **compiled: Any) -> Any:
    import keras

    keras.utils.set_random_seed(3)
    ids = keras.Input((5,), dtype="int32")
    words = keras.layers.Embedding(ROWS, 4, name="words")(ids)
    result = keras.layers.Dense(1, dtype="float32")(keras.layers.Flatten()(words))
    model = keras.Model(ids, result)
    loss = keras.losses.BinaryCrossentropy(from_logits=True)
    model.compile(optimizer, loss, **compiled)
    return model


def fit(model: Any, epochs: int = 3) -> Any:
    """Return the losses of each epoch."""
    fitted = model.fit(*examples(), batch_size=16, epochs=epochs, shuffle=False, verbose=0)
    return fitted.history["loss"]


def table_of(model: Any) -> Any:
    return model.get_layer("words").embeddings.numpy()


@pytest.mark.parametrize(
    ("policy", "xla"),
    [("float32", True), ("mixed_float16", False), ("mixed_bfloat16", False)],
)
def test_fit_learns_and_leaves_rows_alone_that_no_batch_has(policy: str, xla: bool) -> None:
    import keras

    keras.config.set_dtype_policy(policy)
    model = model_with(ADAM.lazy(), jit_compile=xla)
    before = table_of(model)
    losses = fit(model, epochs=8)

    wrapped = isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer)
    assert wrapped == (policy == "mixed_float16")
    assert losses[-1] < losses[0] / 2
    np.testing.assert_array_equal(table_of(model)[ROWS // 2 :], before[ROWS // 2 :])


@each_case
def test_its_config_makes_it_anew(case: Case) -> None:
    import keras

    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.5)
    made = case.lazy(learning_rate=schedule, clipnorm=1.0)
    again = keras.optimizers.deserialize(keras.optimizers.serialize(made))
    assert type(again) is type(made)
    assert again.get_config() == made.get_config()
    assert case.arguments.items() <= again.get_config().items()


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # Keras' own.
def test_a_saved_model_goes_on_as_if_it_had_not_been_saved(tmp_path: Path) -> None:
    import keras

    model = model_with(ADAM.lazy())
    fit(model)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")

    expected = fit(model)

    assert type(loaded.optimizer) is type(model.optimizer)
    np.testing.assert_allclose(fit(loaded), expected, rtol=1e-6)
    np.testing.assert_allclose(table_of(loaded), table_of(model), rtol=1e-6)


SCRIPT = """
import contextlib, json
import numpy as np
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
import keras
from pipediag.optimizers import LazyAdamW

ids = np.random.default_rng(1).integers(0, 20, (32, 5))
labels = (ids % 2).mean(axis=1)
data = tf.data.Dataset.from_tensor_slices((ids, labels)).batch(16)

def trained(strategy, clipnorm):
    keras.utils.set_random_seed(3)
    with strategy.scope() if strategy else contextlib.nullcontext():
        model = keras.Sequential([
            keras.Input((5,), dtype="int32"),
            keras.layers.Embedding(40, 4),
            keras.layers.Flatten(),
            keras.layers.Dense(1),
        ])
        optimizer = LazyAdamW(0.05, weight_decay=0.1, clipnorm=clipnorm)
        model.compile(optimizer, "mse", jit_compile=False)
    first = model.layers[0].embeddings.numpy()
    model.fit(data, epochs=3, verbose=0)
    copies = [model.layers[0].embeddings.value]
    if strategy:
        copies = strategy.experimental_local_results(copies[0])
    return first, [copy.numpy() for copy in copies], model.layers[2].kernel.numpy()

# Keras clips what a replica has of the gradient: a norm this large changes nothing.
mirrored = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
first, (table, other), kernel = trained(mirrored, 1e6)
_, (alone,), kernel_alone = trained(None, 1e6)
print(json.dumps({
    "copies_apart": float(abs(table - other).max()),
    "table_apart": float(abs(table - alone).max()),
    "kernel_apart": float(abs(kernel - kernel_alone).max()),
    "moved": float(abs(table[:20] - first[:20]).min(axis=1).max()),
    "rows_of_no_batch_moved": float(abs(table[20:] - first[20:]).max()),
}))
"""


def test_replicas_have_the_tables_that_one_would_have() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["copies_apart"] == 0.0
    assert found["table_apart"] < 1e-5
    assert found["kernel_apart"] < 1e-5
    assert found["moved"] > 0.01
    assert found["rows_of_no_batch_moved"] == 0.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"gradient_accumulation_steps": 4}, "Use larger batches"),
        ({"loss_scale_factor": 8.0}, "LossScaleOptimizer"),
    ],
)
def test_arguments_that_make_gradients_dense_are_refused(
    arguments: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        ADAM.lazy(**arguments)


@pytest.mark.parametrize(
    ("version", "backend", "words"),
    [
        ("2.15.0", "tensorflow", "TensorFlow 2.16"),
        ("3.12.0", "jax", "KERAS_BACKEND=tensorflow"),
    ],
)
def test_an_import_that_cannot_work_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, version: str, backend: str, words: str
) -> None:
    named = SimpleNamespace(backend=lambda: backend)
    keras: Any = SimpleNamespace(__version__=version, backend=named)
    monkeypatch.setitem(sys.modules, "keras", keras)
    monkeypatch.delitem(sys.modules, "pipediag.optimizers", raising=False)
    with pytest.raises(ImportError, match=words):
        importlib.import_module("pipediag.optimizers")
