"""Train the click model of the search engine."""

import argparse
import logging
import os

import keras

from search.input import ClickLog
from search.model import click_model

log = logging.getLogger("train")


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="data")
    parser.add_argument("--out", default="out")
    parser.add_argument("--dim", type=int, default=16)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=1e-3)
    return parser.parse_args()


def main():
    args = parse_args()
    logging.basicConfig(level=logging.INFO)
    os.makedirs(args.out, exist_ok=True)
    clicks = ClickLog(args.data, args.batch_size)
    model = click_model(args.dim)
    model.compile(
        optimizer=keras.optimizers.Adam(args.lr),
        loss="binary_crossentropy",
        metrics=[keras.metrics.AUC(name="auc")],
    )
    history = model.fit(
        clicks.train(),
        validation_data=clicks.valid(),
        epochs=args.epochs,
        callbacks=[keras.callbacks.CSVLogger(os.path.join(args.out, "history.csv"))],
        verbose=2,
    )
    log.info("best AUC %.4f", max(history.history["val_auc"]))
    model.save_weights(os.path.join(args.out, "model.weights.h5"))


if __name__ == "__main__":
    main()
