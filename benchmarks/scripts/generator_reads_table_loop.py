"""A loop of its own over a generator that reads its whole CSV file before it yields a batch."""

import csv
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

ROWS, COLUMNS, BATCH, EPOCHS = 20_000, 101, 200, 10


def batches():
    with path.open(encoding="utf-8") as file:
        table = np.array([[float(cell) for cell in row] for row in csv.reader(file)], np.float32)
    for start in range(0, ROWS, BATCH):
        rows = table[start : start + BATCH]
        yield rows[:, 1:], rows[:, :1]


folder = tempfile.TemporaryDirectory()
path = Path(folder.name, "table.csv")
values = np.random.default_rng(203).standard_normal((100, COLUMNS)).round(4).tolist()
path.write_text("".join(",".join(map(str, row)) + "\n" for row in values) * (ROWS // 100))
specs = (tf.TensorSpec([None, COLUMNS - 1]), tf.TensorSpec([None, 1]))
dataset = tf.data.Dataset.from_generator(batches, output_signature=specs)
weights = tf.Variable(tf.zeros([COLUMNS - 1, 1]))


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(x @ weights - y))
    weights.assign_sub(0.01 * tape.gradient(loss, weights))


for _epoch in range(EPOCHS):
    for x, y in dataset:  # pipediag: loop
        train_step(x, y)
