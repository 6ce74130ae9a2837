"""MirroredStrategy with a loop of its own over `experimental_distribute_dataset`.

Two replicas (logical CPU devices where there are no two GPUs) share each global batch. The
replicas' matrix products are the work.
"""

import keras
import numpy as np
import tensorflow as tf

if len(tf.config.list_physical_devices("GPU")) < 2:
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration(), tf.config.LogicalDeviceConfiguration()],
    )
    devices = ["/CPU:0", "/CPU:1"]
else:
    devices = ["/GPU:0", "/GPU:1"]

GLOBAL_BATCH = 256
FEATURES = 512

rng = np.random.default_rng(3)
features = rng.standard_normal((12_800, FEATURES), dtype=np.float32)
targets = features[:, :1] * 2.0 + 1.0
dataset = tf.data.Dataset.from_tensor_slices((features, targets))
dataset = dataset.shuffle(12_800).batch(GLOBAL_BATCH, drop_remainder=True)

strategy = tf.distribute.MirroredStrategy(devices)
distributed = strategy.experimental_distribute_dataset(dataset)
with strategy.scope():
    model = keras.Sequential(
        [
            keras.Input(shape=(FEATURES,)),
            keras.layers.Dense(1024, activation="relu"),
            keras.layers.Dense(512, activation="relu"),
            keras.layers.Dense(1),
        ]
    )
    optimizer = keras.optimizers.SGD(0.01)
    optimizer.build(model.trainable_variables)


def replica_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(model(x, training=True) - y)) / GLOBAL_BATCH
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


@tf.function
def train_step(x, y):
    losses = strategy.run(replica_step, args=(x, y))
    return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)


for epoch in range(15):
    for x, y in distributed:  # pipediag: loop
        loss = train_step(x, y)
    print(f"epoch {epoch}: loss {float(loss):.4f}")
