"""Entry point: python -m rank.main --data data"""

import argparse

import tensorflow as tf

from rank.input_pipeline import ImpressionReader
from rank.network import build


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="data")
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--epochs", type=int, default=4)
    args = parser.parse_args()
    tf.keras.utils.set_random_seed(11)
    reader = ImpressionReader(args.data, args.batch_size)
    model = build()
    model.compile(
        optimizer=tf.keras.optimizers.Adagrad(0.05),
        loss=tf.keras.losses.BinaryCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    model.fit(
        reader.dataset("train"),
        validation_data=reader.dataset("valid"),
        epochs=args.epochs,
        verbose=2,
    )


if __name__ == "__main__":
    main()
