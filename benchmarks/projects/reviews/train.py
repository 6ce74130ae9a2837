import argparse

import tensorflow as tf
from sentiment.data import make_dataset, make_vectorizer, read
from sentiment.model import build_model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--train", default="data/train.jsonl")
    parser.add_argument("--test", default="data/test.jsonl")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=64)
    args = parser.parse_args()
    tf.keras.utils.set_random_seed(0)
    texts, labels = read(args.train)
    test_texts, test_labels = read(args.test)
    vectorizer = make_vectorizer(texts, 10_000, 120)
    train_ds = make_dataset(texts, labels, vectorizer, args.batch_size, shuffle=True)
    test_ds = make_dataset(test_texts, test_labels, vectorizer, args.batch_size)
    model = build_model(10_000, 32)
    model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    model.fit(train_ds, validation_data=test_ds, epochs=args.epochs, verbose=2)


if __name__ == "__main__":
    main()
