"""Sentences in batches of one length each, so that the step is traced for each new length."""

import clock
import keras
import numpy as np
import tensorflow as tf
from clock.loops import LoopClock

clock.run.imported()

rng = np.random.default_rng(13)
LENGTHS = range(20, 40, 4)
lengths = rng.choice(LENGTHS, size=3200)
sentences = [rng.integers(1, 5000, size=length) for length in lengths]
labels = rng.integers(0, 2, size=len(sentences)).astype("float32")
signature = (tf.TensorSpec((None,), tf.int64), tf.TensorSpec((), tf.float32))
dataset = tf.data.Dataset.from_generator(
    lambda: zip(sentences, labels, strict=True), output_signature=signature
)
dataset = dataset.shuffle(3200).bucket_by_sequence_length(
    lambda ids, _: tf.shape(ids)[0],
    bucket_boundaries=[length + 1 for length in LENGTHS],
    bucket_batch_sizes=[16] * (len(LENGTHS) + 1),
    drop_remainder=True,
)

model = keras.Sequential(
    [
        keras.layers.Embedding(5000, 64),
        keras.layers.GRU(48),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
optimizer = keras.optimizers.SGD(0.05)
loss_of = keras.losses.BinaryCrossentropy()


@tf.function
def train_step(ids, targets):
    with tf.GradientTape() as tape:
        loss = loss_of(targets[:, tf.newaxis], model(ids, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


own = LoopClock(clock.run)
for _ in range(4):
    own.epoch_begins()
    for ids, targets in dataset:
        own.batch_in_hand()
        train_step(ids, targets)
        own.step_over(ids.shape[1])
    own.epoch_over()
own.over()
