"""Two towers with in-batch negatives."""

import tensorflow as tf


class TwoTower(tf.keras.Model):
    def __init__(self, users, items, dim=32):
        super().__init__()
        self.user_tower = tf.keras.Sequential(
            [tf.keras.layers.Embedding(users, dim), tf.keras.layers.Dense(dim)], name="user_tower"
        )
        self.item_tower = tf.keras.Sequential(
            [tf.keras.layers.Embedding(items, dim), tf.keras.layers.Dense(dim)], name="item_tower"
        )
        self.loss_tracker = tf.keras.metrics.Mean(name="loss")

    def call(self, pair):
        user, item = pair
        return tf.reduce_sum(self.user_tower(user) * self.item_tower(item), axis=-1)

    def train_step(self, batch):
        users, items = batch
        with tf.GradientTape() as tape:
            scores = tf.matmul(self.user_tower(users), self.item_tower(items), transpose_b=True)
            labels = tf.range(tf.shape(scores)[0])
            loss = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=scores)
            )
        variables = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        self.loss_tracker.update_state(loss)
        return {"loss": self.loss_tracker.result()}
