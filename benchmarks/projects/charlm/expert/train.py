"""Train a character-level language model."""

import argparse
import math

import keras

from lm.corpus import Corpus
from lm.model import build
from lm.sampling import WriteText
from lm.windows import Windows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="data")
    parser.add_argument("--length", type=int, default=40)
    parser.add_argument("--stride", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--units", type=int, default=48)
    parser.add_argument("--epochs", type=int, default=5)
    args = parser.parse_args()
    keras.utils.set_random_seed(1)

    corpus = Corpus(args.data)
    train = Windows(corpus, corpus.train_text(), args.length, args.stride, args.batch_size)
    valid = Windows(
        corpus, corpus.valid_text(), args.length, args.stride, args.batch_size, shuffle=False
    )
    model = build(args.length, corpus.size, args.units)
    model.compile(
        keras.optimizers.RMSprop(2e-3), "sparse_categorical_crossentropy", metrics=["accuracy"]
    )
    history = model.fit(
        train,
        validation_data=valid,
        epochs=args.epochs,
        callbacks=[WriteText(corpus, args.length)],
        verbose=2,
    )
    print(f"perplexity {math.exp(min(history.history['val_loss'])):.2f}")


if __name__ == "__main__":
    main()
