"""Row-wise optimizers in what Keras does around a step: fit, saving, mixed precision, averages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.optimizers.cases import CASES, RATE, Case, batches
from tests.optimizers.reference import trained
from tests.optimizers.test_rules_tensorflow import apply_all, each_case, slices, start

pytestmark = pytest.mark.tensorflow

ROWS = 50
ADAM = CASES[0]


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


def fit(model: Any, epochs: int = 3) -> list[float]:
    fitted = model.fit(*examples(), batch_size=16, epochs=epochs, shuffle=False, verbose=0)
    losses: list[float] = fitted.history["loss"]
    return losses


def table_of(model: Any) -> np.ndarray:
    values: np.ndarray = model.get_layer("words").embeddings.numpy()
    return values


@pytest.mark.parametrize(
    ("policy", "xla"),
    [
        ("float32", True),
        ("mixed_float16", False),
        ("mixed_float16", True),
        ("mixed_bfloat16", False),
    ],
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


def test_a_step_whose_scaled_loss_overflows_changes_nothing() -> None:
    import keras
    import tensorflow as tf

    optimizer = keras.optimizers.LossScaleOptimizer(ADAM.lazy())
    table = keras.Variable(start((10, 3)))
    too_large = tf.IndexedSlices(tf.fill((2, 3), np.inf), tf.constant([1, 2]), tf.constant([10, 3]))
    (after,) = apply_all(optimizer, [table], [[too_large]])
    np.testing.assert_array_equal(after, start((10, 3)))
    assert optimizer.dynamic_scale.numpy() == 2.0**14


@each_case
def test_its_config_makes_it_anew(case: Case) -> None:
    import keras

    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.5)
    made = case.lazy(learning_rate=schedule, clipnorm=1.0)
    again = keras.optimizers.deserialize(keras.optimizers.serialize(made))
    assert type(again) is type(made)
    assert again.get_config() == made.get_config()
    assert case.arguments.items() <= again.get_config().items()


def test_a_schedule_sets_the_rate_of_each_step() -> None:
    import keras

    schedule = keras.optimizers.schedules.ExponentialDecay(RATE, 1, 0.5)
    sparse = batches(10, 3)
    table = keras.Variable(start((10, 3)))
    steps = [[slices(batch, 10)] for batch in sparse]
    (after,) = apply_all(ADAM.lazy(learning_rate=schedule), [table], steps)
    rates = [RATE * 0.5**step for step in range(5)]
    np.testing.assert_allclose(after, trained(ADAM.rule, start((10, 3)), sparse, rates), rtol=1e-4)


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # Keras' own.
def test_a_saved_model_goes_on_as_if_it_had_not_been_saved(tmp_path: Path) -> None:
    import keras

    model = model_with(ADAM.lazy())
    fit(model)
    model.save(tmp_path / "model.keras")
    model.save_weights(tmp_path / "model.weights.h5")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    weighted = model_with(ADAM.lazy())
    weighted.optimizer.build(weighted.trainable_variables)
    weighted.load_weights(tmp_path / "model.weights.h5")

    expected = fit(model)

    assert type(loaded.optimizer) is type(model.optimizer)
    np.testing.assert_allclose(fit(loaded), expected, rtol=1e-6)
    np.testing.assert_allclose(fit(weighted), expected, rtol=1e-6)
    np.testing.assert_allclose(table_of(loaded), table_of(model), rtol=1e-6)


def test_it_takes_over_the_moments_of_keras_own_optimizer() -> None:
    begun = model_with(ADAM.keras())
    fit(begun)
    model = model_with(ADAM.lazy())
    model.optimizer.build(model.trainable_variables)
    state: dict[str, np.ndarray] = {}
    begun.optimizer.save_own_variables(state)
    model.optimizer.load_own_variables(state)
    for ours, theirs in zip(model.optimizer.variables, begun.optimizer.variables, strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


def test_the_average_of_weights_is_of_all_rows() -> None:
    """It costs a pass over the table, as Keras keeps it."""
    import keras

    table = keras.Variable(start((10, 3)))
    optimizer = ADAM.lazy(use_ema=True, ema_momentum=0.9)
    first, second = ([slices(batch, 10)] for batch in batches(10, 3, steps=2))
    (after_one,) = apply_all(optimizer, [table], [first])
    optimizer.apply(second)
    average = 0.9 * after_one + 0.1 * table.numpy()
    optimizer.finalize_variable_values([table])
    np.testing.assert_allclose(table.numpy(), average, rtol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"gradient_accumulation_steps": 4}, "every update would be dense. Use larger batches"),
        ({"loss_scale_factor": 8.0}, "Wrap the optimizer in keras.optimizers.LossScaleOptimizer"),
    ],
)
def test_what_makes_gradients_dense_is_refused_with_what_to_do(
    arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        ADAM.lazy(**arguments)
