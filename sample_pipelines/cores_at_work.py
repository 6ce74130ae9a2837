"""Random views of signals, made in parallel by all cores and prefetched.

Nothing in the pipeline is written badly, and nothing can be kept, as each epoch draws anew: only
more cores make it faster. A tf.data service has those of other hosts.
"""

import keras
import numpy as np
import tensorflow as tf

SAMPLES = 16_000

rng = np.random.default_rng(31)
sounds = rng.standard_normal((400, SAMPLES), dtype=np.float32)
labels = rng.integers(0, 4, size=400)


def view(sound, label):
    sound = sound * tf.random.uniform([], 0.7, 1.3) + tf.random.normal([SAMPLES], stddev=0.1)
    frames = tf.signal.stft(sound, frame_length=512, frame_step=64)
    return tf.math.log1p(tf.reduce_mean(tf.abs(frames), axis=0)), label


dataset = tf.data.Dataset.from_tensor_slices((sounds, labels))
dataset = dataset.shuffle(400)
dataset = dataset.map(view, num_parallel_calls=tf.data.AUTOTUNE)  # pipediag: culprit
dataset = dataset.batch(16)  # pipediag: place
dataset = dataset.prefetch(tf.data.AUTOTUNE)

model = keras.Sequential(
    [
        keras.Input(shape=(257,)),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(4, activation="softmax"),
    ]
)
model.compile(optimizer="sgd", loss="sparse_categorical_crossentropy")
model.fit(dataset, epochs=40, verbose=2)  # pipediag: loop
