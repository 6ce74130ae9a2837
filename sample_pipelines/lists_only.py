"""A script that reads datasets into lists and trains nothing.

Six thousand batches pass through a loop, but no variable ever changes. There is no training
step to judge, and a profiler should say so.
"""

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(59)
values = rng.standard_normal((60_000, 8), dtype=np.float32)
dataset = tf.data.Dataset.from_tensor_slices(values).batch(10)

sums = [float(tf.reduce_sum(batch)) for batch in dataset]
largest = []
for batch in dataset.take(500):
    largest.append(float(tf.reduce_max(batch)))
print(f"{len(sums)} sums, mean {np.mean(sums):.4f}; largest of the first 500: {max(largest):.3f}")
