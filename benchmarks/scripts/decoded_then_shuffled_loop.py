"""A loop of its own: pictures are decoded in every epoch, above a shuffle that holds them all."""

import keras
import numpy as np
import tensorflow as tf

PICTURES, EPOCHS = 1000, 16

rng = np.random.default_rng(201)
coarse = rng.integers(0, 255, size=(20, 32, 32, 3)).astype(np.uint8)
jpegs = [tf.io.encode_jpeg(np.kron(one, np.ones((16, 16, 1), np.uint8))).numpy() for one in coarse]
pictures = [jpegs[index % 20] for index in range(PICTURES)]
labels = np.arange(PICTURES) % 20 % 5


def thumbnail(picture, label):
    image = tf.image.resize(tf.io.decode_jpeg(picture, channels=3), [32, 32], antialias=True)
    return tf.reshape(image, [32 * 32 * 3]) / 255.0, label


dataset = tf.data.Dataset.from_tensor_slices((pictures, labels))
dataset = dataset.map(thumbnail, num_parallel_calls=tf.data.AUTOTUNE)  # pipediag: culprit
dataset = dataset.shuffle(PICTURES).batch(20).prefetch(tf.data.AUTOTUNE)
model = keras.Sequential([keras.Input((3072,)), keras.layers.Dense(5)])
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = keras.optimizers.SGD(0.01)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x, training=True))
    optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
    return loss


for epoch in range(EPOCHS):
    for x, y in dataset:  # pipediag: loop
        loss = train_step(x, y)
    print(f"epoch {epoch}: loss {float(loss):.3f}")
