"""A matrix product timed in a TensorFlow 1 session: no training, no batches, no loop.

There is nothing here for a training profiler to judge, and it should say so.
"""

import time

import numpy as np
import tensorflow as tf

tf.compat.v1.disable_eager_execution()

SIZE = 1000
rng = np.random.default_rng(11)
left = rng.random((SIZE, SIZE), dtype=np.float32)
right = rng.random((SIZE, SIZE), dtype=np.float32)

with tf.device("/CPU:0"):
    a = tf.compat.v1.placeholder(tf.float32, [SIZE, SIZE])
    b = tf.compat.v1.placeholder(tf.float32, [SIZE, SIZE])
    product = tf.matmul(a, b)

with tf.compat.v1.Session() as session:
    session.run(product, {a: left, b: right})
    start = time.perf_counter()
    for _ in range(10):
        result = session.run(product, {a: left, b: right})
    seconds = (time.perf_counter() - start) / 10

print(f"matrix product of {SIZE} x {SIZE}: {1000 * seconds:.1f} ms, trace {result.trace():.1f}")
