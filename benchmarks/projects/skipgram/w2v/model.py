import tensorflow as tf


class SkipGram(tf.keras.Model):
    def __init__(self, vocabulary, dim):
        super().__init__()
        self.target = tf.keras.layers.Embedding(vocabulary, dim)
        self.context = tf.keras.layers.Embedding(vocabulary, dim)

    def call(self, inputs):
        target, context = inputs
        return tf.einsum("bd,bkd->bk", self.target(target), self.context(context))
