"""Two `fit` calls in one script: a short warm start on frozen layers, then the long one.

The second call is the expensive one and the one to look at. Its dense layers are the work.
"""

import keras
import numpy as np
import tensorflow as tf

FEATURES = 256

rng = np.random.default_rng(51)
features = rng.standard_normal((12_800, FEATURES), dtype=np.float32)
labels = (features[:, :1] > 0).astype("float32")
small = tf.data.Dataset.from_tensor_slices((features[:3200], labels[:3200])).batch(64)
full = tf.data.Dataset.from_tensor_slices((features, labels)).shuffle(12_800).batch(128)

body = keras.Sequential(
    [
        keras.Input(shape=(FEATURES,)),
        keras.layers.Dense(1024, activation="relu"),
        keras.layers.Dense(1024, activation="relu"),
    ]
)
model = keras.Sequential([body, keras.layers.Dense(1, activation="sigmoid")])

body.trainable = False
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(small, epochs=2, verbose=2)  # pipediag: first

body.trainable = True
model.compile(optimizer=keras.optimizers.SGD(0.01), loss="binary_crossentropy")
model.fit(full, epochs=12, verbose=2)  # pipediag: loop
