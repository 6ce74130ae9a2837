"""The towers of users and items."""

import tensorflow as tf

USERS, ITEMS, TOPICS = 8_000, 4_000, 20


class UserTower(tf.keras.Model):
    def __init__(self, dim):
        super().__init__()
        self.user = tf.keras.layers.Embedding(USERS, dim)
        self.device = tf.keras.layers.Embedding(3, 4)
        self.hour = tf.keras.layers.Embedding(24, 4)
        self.out = tf.keras.layers.Dense(dim)

    def call(self, batch):
        parts = [self.user(batch["user"]), self.device(batch["device"]), self.hour(batch["hour"])]
        return tf.math.l2_normalize(self.out(tf.concat(parts, axis=1)), axis=1)


class ItemTower(tf.keras.Model):
    def __init__(self, dim):
        super().__init__()
        self.item = tf.keras.layers.Embedding(ITEMS, dim)
        self.topic = tf.keras.layers.Embedding(TOPICS, 8)
        self.out = tf.keras.layers.Dense(dim)

    def call(self, batch):
        price = tf.math.log1p(batch["price"])[:, None]
        parts = [self.item(batch["item"]), self.topic(batch["topic"]), price]
        return tf.math.l2_normalize(self.out(tf.concat(parts, axis=1)), axis=1)
