"""An own training loop whose step runs eagerly: `@tf.function` was forgotten.

Each operation of the model, its gradients and the update is started from Python by itself.
"""

import keras
import numpy as np
import tensorflow as tf

ITEMS, EXAMPLES = 4_000, 40_000

rng = np.random.default_rng(70)
pairs = rng.integers(0, ITEMS, (EXAMPLES, 2))
ratings = rng.random(EXAMPLES, dtype=np.float32)
dataset = tf.data.Dataset.from_tensor_slices((pairs, ratings)).shuffle(EXAMPLES).batch(128)


class Trainer:
    def __init__(self):
        self.left = keras.layers.Embedding(ITEMS, 32)
        self.right = keras.layers.Embedding(ITEMS, 32)
        self.optimizer = keras.optimizers.Adagrad(0.1)
        self.loss = keras.losses.MeanSquaredError()
        self.mean = keras.metrics.Mean()

    def scores(self, pairs):
        return tf.reduce_sum(self.left(pairs[:, 0]) * self.right(pairs[:, 1]), axis=-1)

    def train_step(self, pairs, ratings):  # pipediag: step
        with tf.GradientTape() as tape:
            loss = self.loss(ratings, self.scores(pairs))
        variables = self.left.trainable_variables + self.right.trainable_variables
        gradients = tape.gradient(loss, variables)
        self.optimizer.apply_gradients(zip(gradients, variables, strict=True))
        self.mean.update_state(loss)
        return loss

    def fit(self, dataset, epochs):
        for epoch in range(epochs):
            for pairs, ratings in dataset:  # pipediag: loop
                self.train_step(pairs, ratings)
            print(f"epoch {epoch}: loss {float(self.mean.result()):.4f}")


Trainer().fit(dataset, epochs=12)
