"""`model_each_fold.py` with one model, whose weights are set back before each fold."""

import keras
import numpy as np

ROWS, FEATURES, FOLDS = 3072, 48, 8

rng = np.random.default_rng(72)
features = rng.standard_normal((ROWS, FEATURES), dtype=np.float32)
targets = np.tanh(features[:, :4].sum(axis=1, keepdims=True)).astype("float32")
folds = np.array_split(rng.permutation(ROWS), FOLDS)


def build_model():
    inputs = keras.Input(shape=(FEATURES,))
    x = keras.layers.Dense(128)(inputs)
    for _ in range(3):
        skipped = x
        x = keras.layers.Dense(128, activation="gelu")(keras.layers.LayerNormalization()(x))
        x = keras.layers.Dropout(0.1)(x)
        x = keras.layers.Add()([x, skipped])
    model = keras.Model(inputs, keras.layers.Dense(1)(x))
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="mse", metrics=["mae"])
    return model


model = build_model()
model.optimizer.build(model.trainable_variables)
initial = model.get_weights()
fresh = [variable.numpy() for variable in model.optimizer.variables]

for number, held_out in enumerate(folds):
    kept = np.concatenate([fold for other, fold in enumerate(folds) if other != number])
    model.set_weights(initial)
    for variable, value in zip(model.optimizer.variables, fresh, strict=True):
        variable.assign(value)
    model.fit(features[kept], targets[kept], batch_size=128, epochs=30, verbose=0)  # pipediag: loop
    _, error = model.evaluate(features[held_out], targets[held_out], verbose=0)
    print(f"fold {number}: mean absolute error {error:.3f}")
