"""What a step does to tables and to dense variables, compiled by XLA and not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.optimizers.cases import CASES, RATE, Case, batches
from tests.optimizers.reference import Sparse, trained

pytestmark = pytest.mark.tensorflow

each_case = pytest.mark.parametrize("case", CASES, ids=str)
each_compiler = pytest.mark.parametrize("xla", [False, True], ids=["plain", "xla"])
TABLES = ((10, 3), (14, 2))
KERNEL = (4, 3)


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
    """The variables' values after steps with these gradients."""
    import tensorflow as tf

    optimizer.build(variables)
    apply = tf.function(lambda gradients: optimizer.apply(gradients, variables), jit_compile=xla)
    for gradients in steps:
        apply(gradients)
    return [variable.numpy() for variable in variables]


@each_compiler
@each_case
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
        expected = trained(case.rule, start(shape), its_batches, [RATE] * 5)
        np.testing.assert_allclose(table, expected, rtol=2e-4, atol=1e-6)
        never = np.setdiff1d(np.arange(shape[0]), np.concatenate([ids for ids, _ in its_batches]))
        assert len(never) >= shape[0] // 2
        np.testing.assert_array_equal(table[never], start(shape)[never])


@each_compiler
def test_a_step_without_ids_changes_nothing(xla: bool) -> None:
    import keras

    table = keras.Variable(start((10, 3)))
    nothing = (np.empty(0, np.int64), np.empty((0, 3)))
    (after,) = apply_all(CASES[0].lazy(), [table], [[slices(nothing, 10)]], xla=xla)
    np.testing.assert_array_equal(after, start((10, 3)))


@each_compiler
def test_a_table_of_any_rank_and_narrow_ids_will_do(xla: bool) -> None:
    import keras
    import tensorflow as tf

    table = keras.Variable(start((10, 3, 2)))
    ids = np.array([4, 9, 4], np.int32)
    gradient = tf.IndexedSlices(tf.ones((3, 3, 2)), tf.constant(ids), tf.constant([10, 3, 2]))
    (after,) = apply_all(CASES[0].lazy(), [table], [[gradient]], xla=xla)
    changed = np.flatnonzero((after != start((10, 3, 2))).any(axis=(1, 2)))
    assert changed.tolist() == [4, 9]


@pytest.mark.parametrize(
    "arguments", [{}, {"weight_decay": 0.1}, {"global_clipnorm": 1.0}], ids=str
)
@each_case
def test_nothing_in_a_step_is_as_large_as_the_table(
    case: Case, arguments: dict[str, float]
) -> None:
    assert full_size_operations(case.lazy(**arguments)) == []


def test_that_would_be_seen_of_keras_own() -> None:
    assert full_size_operations(CASES[0].keras()) != []


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


def test_lookups_of_one_table_in_one_step_are_one_gradient() -> None:
    import keras
    import tensorflow as tf

    optimizer = CASES[0].lazy()
    table = keras.Variable(start((10, 3)))
    optimizer.build([table])
    first, second = np.array([1, 2, 2]), np.array([2, 5])

    @tf.function
    def step() -> None:
        with tf.GradientTape() as tape:
            looked_up = [tf.gather(table.value, ids) for ids in (first, second)]
            loss = tf.reduce_sum(looked_up[0]) + 2 * tf.reduce_sum(looked_up[1])
        gradient = tape.gradient(loss, table.value)
        assert isinstance(gradient, tf.IndexedSlices)
        optimizer.apply([gradient], [table])

    step()
    together = np.concatenate([first, second]), np.array([[1.0]] * 3 + [[2.0]] * 2) * np.ones(3)
    expected = trained(CASES[0].rule, start((10, 3)), [together], [RATE])
    np.testing.assert_allclose(table.numpy(), expected, rtol=1e-5)


def test_adagrad_gives_what_keras_gives_with_the_gradient_made_dense() -> None:
    """Where a row is named twice, Keras' own squares its values one by one."""
    import keras
    import tensorflow as tf

    case = next(case for case in CASES if case.keras_name == "Adagrad")
    steps = [[slices(batch, 10)] for batch in batches(10, 3)]
    dense = [[tf.convert_to_tensor(gradient)] for (gradient,) in steps]
    (lazy,) = apply_all(case.lazy(), [keras.Variable(start((10, 3)))], steps)
    (keras_own,) = apply_all(case.keras(), [keras.Variable(start((10, 3)))], dense)
    np.testing.assert_allclose(lazy, keras_own, rtol=1e-5)


@each_compiler
@pytest.mark.parametrize("clip", ["clipnorm", "clipvalue", "global_clipnorm"])
def test_clipping_is_that_of_the_summed_gradient(clip: str, xla: bool) -> None:
    import keras
    import tensorflow as tf

    case = next(case for case in CASES if case.keras_name == "SGD")
    steps = [[slices(batch, 10), start(KERNEL)] for batch in batches(10, 3)]
    dense = [[tf.convert_to_tensor(gradient), other] for gradient, other in steps]

    def after(optimizer: Any, gradients: list[list[Any]]) -> list[np.ndarray]:
        variables = [keras.Variable(start((10, 3))), keras.Variable(start(KERNEL))]
        return apply_all(optimizer, variables, gradients, xla=xla)

    lazy, keras_own = (
        after(case.lazy(**{clip: 0.5}), steps),
        after(case.keras(**{clip: 0.5}), dense),
    )
    for ours, theirs in zip(lazy, keras_own, strict=True):
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


def test_a_row_that_is_seen_once_moves_a_tenth_as_far_as_with_keras_adam() -> None:
    """As the docstring has it: Keras' Adam goes on moving it by its momentum."""
    import keras

    zero = (np.array([0]), np.zeros((1, 1)))
    once = (np.array([1]), np.ones((1, 1)))
    steps = [[slices(batch, 2)] for batch in [*[zero] * 300, once, *[zero] * 100]]

    def moved(optimizer: Any) -> float:
        (after,) = apply_all(optimizer, [keras.Variable(np.zeros((2, 1), np.float32))], steps)
        return -float(after[1, 0])

    assert moved(CASES[0].keras()) / moved(CASES[0].lazy()) == pytest.approx(10, rel=0.05)
