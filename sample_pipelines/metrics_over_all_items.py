"""A retrieval model whose training step ranks each item among all 40,000.

The loss needs the items of the batch alone; the metric multiplies each user by the whole table.
"""

import keras
import numpy as np
import tensorflow as tf

USERS, ITEMS = 20_000, 40_000

rng = np.random.default_rng(41)
users = rng.integers(0, USERS, 40_000)
items = rng.integers(0, ITEMS, 40_000)


class Retrieval(keras.Model):
    def __init__(self):
        super().__init__()
        self.users = keras.layers.Embedding(USERS, 32)
        self.items = keras.layers.Embedding(ITEMS, 32)
        self.loss_mean = keras.metrics.Mean(name="loss")
        self.top = keras.metrics.SparseTopKCategoricalAccuracy(k=100, name="top_100")

    def call(self, user):
        return self.users(user)

    def train_step(self, data):
        user, item = data
        with tf.GradientTape() as tape:
            wanted, offered = self.users(user), self.items(item)
            scores = tf.matmul(wanted, offered, transpose_b=True)
            labels = tf.range(tf.shape(user)[0])
            loss = keras.losses.sparse_categorical_crossentropy(labels, scores, from_logits=True)
            loss = tf.reduce_mean(loss)
        weights = self.trainable_variables
        self.optimizer.apply(tape.gradient(loss, weights), weights)
        self.loss_mean.update_state(loss)
        self.top.update_state(item, tf.matmul(wanted, self.items.embeddings, transpose_b=True))
        return {metric.name: metric.result() for metric in self.metrics}


dataset = tf.data.Dataset.from_tensor_slices((users, items)).shuffle(40_000).batch(512)
dataset = dataset.prefetch(tf.data.AUTOTUNE)

model = Retrieval()
model.compile(optimizer=keras.optimizers.SGD(0.1))
model.fit(dataset, epochs=12, verbose=2)  # pipediag: loop
