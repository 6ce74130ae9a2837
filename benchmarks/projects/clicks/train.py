"""Train the click model: python train.py --data data --epochs 3"""

import argparse
import os

import tensorflow as tf
from clickmodel.data import make_dataset
from clickmodel.model import build_model


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="data")
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    return parser.parse_args()


def main():
    args = parse_args()
    tf.keras.utils.set_random_seed(3)
    train = make_dataset(os.path.join(args.data, "clicks-0[0-6].csv"), args.batch_size)
    validation = make_dataset(
        os.path.join(args.data, "clicks-07.csv"), args.batch_size, training=False
    )
    model = build_model(args.learning_rate)
    history = model.fit(train, validation_data=validation, epochs=args.epochs, verbose=2)
    print("final auc", round(history.history["val_auc"][-1], 4))


if __name__ == "__main__":
    main()
