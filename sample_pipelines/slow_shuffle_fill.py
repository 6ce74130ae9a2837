"""A large shuffle buffer behind a slow `map`: every epoch starts with a long wait.

Before the first batch of an epoch, the buffer is filled with two thousand decoded examples.
Shuffling the keys before they are decoded would need neither the wait nor the memory.
"""

import keras
import numpy as np
import tensorflow as tf

SAMPLES = 16_000

rng = np.random.default_rng(35)
sounds = rng.standard_normal((2000, SAMPLES), dtype=np.float32)
labels = rng.integers(0, 4, size=2000)


def spectrum(index):
    sound = tf.gather(sounds_in_memory, index % 2000)
    frames = tf.abs(tf.signal.stft(sound, frame_length=512, frame_step=128))
    return tf.reduce_mean(frames, axis=0), tf.gather(labels_in_memory, index % 2000)


sounds_in_memory = tf.constant(sounds)
labels_in_memory = tf.constant(labels)
dataset = tf.data.Dataset.range(8000)
dataset = dataset.map(spectrum, num_parallel_calls=tf.data.AUTOTUNE)  # pipediag: culprit
dataset = dataset.shuffle(2000)  # pipediag: shuffle
dataset = dataset.batch(16)

model = keras.Sequential(
    [
        keras.Input(shape=(257,)),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(4, activation="softmax"),
    ]
)
model.compile(optimizer="sgd", loss="sparse_categorical_crossentropy")
model.fit(dataset, epochs=5, verbose=2)  # pipediag: loop
