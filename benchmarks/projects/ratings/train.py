"""Train the two towers on ratings."""

import argparse

import tensorflow as tf
from recsys.data import ITEMS, USERS, load, split, training_dataset
from recsys.model import TwoTower
from recsys.recall import RecallAtTen


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ratings", default="ratings.npz")
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--epochs", type=int, default=4)
    args = parser.parse_args()
    tf.keras.utils.set_random_seed(1)
    users, items = load(args.ratings)
    train, test = split(users, items)
    model = TwoTower(USERS, ITEMS)
    model.compile(optimizer=tf.keras.optimizers.Adagrad(0.1))
    model.fit(
        training_dataset(*train, args.batch_size),
        epochs=args.epochs,
        verbose=2,
        callbacks=[RecallAtTen(*test, ITEMS)],
    )


if __name__ == "__main__":
    main()
