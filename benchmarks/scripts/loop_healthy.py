"""A loop of one's own on a pipeline that keeps ahead of it."""

import keras
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(107)
features = rng.standard_normal((8192, 64), dtype=np.float32)
dataset = tf.data.Dataset.from_tensor_slices((features, features[:, :1]))
dataset = dataset.shuffle(8192).batch(256, drop_remainder=True).prefetch(2)
dense = [keras.layers.Dense(1024, activation="relu") for _ in range(2)]
model = keras.Sequential([keras.Input(shape=(64,)), *dense, keras.layers.Dense(1)])
optimizer = keras.optimizers.SGD(0.01)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)


for _ in range(1000):
    for x, y in dataset:  # pipediag: loop
        train_step(x, y)
