"""The training loop with an in-batch softmax."""

import time

import numpy as np
import tensorflow as tf

from retrieval.towers import ItemTower, UserTower


class Trainer:
    def __init__(self, config, items):
        self.config = config
        self.users = UserTower(config.dim)
        self.items = ItemTower(config.dim)
        self.optimizer = tf.keras.optimizers.Adagrad(config.learning_rate)
        self.all_items = {
            "item": tf.constant(items["item"].values, tf.int32),
            "topic": tf.constant(items["topic"].values, tf.int32),
            "price": tf.constant(items["price"].values, tf.float32),
        }
        self.recall = tf.keras.metrics.Mean()

    @tf.function
    def train_step(self, batch):
        with tf.GradientTape() as tape:
            logits = tf.matmul(self.users(batch), self.items(batch), transpose_b=True)
            labels = tf.range(tf.shape(logits)[0])
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels, logits / self.config.temperature
            )
            loss = tf.reduce_mean(losses)
        weights = self.users.trainable_variables + self.items.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return loss

    @tf.function
    def hits(self, batch):
        scores = tf.matmul(self.users(batch), self.items(self.all_items), transpose_b=True)
        return tf.math.in_top_k(batch["item"], scores, self.config.top)

    def fit(self, dataset, valid):
        for epoch in range(self.config.epochs):
            began, losses = time.time(), []
            self.recall.reset_state()
            for step, batch in enumerate(dataset):
                losses.append(self.train_step(batch))
                if step % 20 == 0:
                    self.recall.update_state(tf.cast(self.hits(batch), tf.float32))
            print(
                f"epoch {epoch + 1}: loss {np.mean(losses):.4f}, "
                f"train recall {self.recall.result():.4f}, valid recall {self.evaluate(valid):.4f}, "
                f"{time.time() - began:.1f} s"
            )

    def evaluate(self, valid):
        found = [self.hits(batch).numpy() for batch in valid]
        return float(np.concatenate(found).mean())
