"""Sound clips turned into spectra on the fly, and shuffled whole: each epoch starts with a wait.

The buffer of the shuffle holds all clips, so that an epoch's first batch has to wait until the last
spectrum is computed. They are the same in every epoch: a cache above the shuffle would hold them.
"""

import keras
import numpy as np
import tensorflow as tf

CLIPS, SAMPLES, EPOCHS = 960, 16_000, 12

rng = np.random.default_rng(71)
sounds = rng.standard_normal((CLIPS, SAMPLES), dtype=np.float32)
labels = rng.integers(0, 8, size=CLIPS)


def log_mel(sound, label):
    spectrum = tf.abs(tf.signal.stft(sound, frame_length=640, frame_step=160, fft_length=1024))
    mel = tf.signal.linear_to_mel_weight_matrix(64, spectrum.shape[-1], 16_000, 60.0, 7600.0)
    return tf.math.log(spectrum @ mel + 1e-6)[:96], label


dataset = tf.data.Dataset.from_tensor_slices((sounds, labels))
dataset = dataset.map(log_mel, num_parallel_calls=tf.data.AUTOTUNE)  # pipediag: culprit
dataset = dataset.shuffle(CLIPS)  # pipediag: shuffle
dataset = dataset.batch(32).prefetch(tf.data.AUTOTUNE)

model = keras.Sequential(
    [
        keras.Input(shape=(96, 64)),
        keras.layers.Conv1D(96, 5, strides=2, activation="relu"),
        keras.layers.Conv1D(96, 5, strides=2, activation="relu"),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(8, activation="softmax"),
    ]
)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(dataset, epochs=EPOCHS, verbose=2)  # pipediag: loop
