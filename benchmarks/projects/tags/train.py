import argparse
import os

from tagrec import data
from tagrec.model import build


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="data")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    data.ensure(args.data)
    train = data.dataset(os.path.join(args.data, "train.csv"), args.batch_size, training=True)
    valid = data.dataset(os.path.join(args.data, "valid.csv"), args.batch_size)
    model = build()
    model.compile("adam", "mse")
    steps = 40_000 // args.batch_size
    model.fit(train, epochs=args.epochs, steps_per_epoch=steps, validation_data=valid, verbose=2)


if __name__ == "__main__":
    main()
