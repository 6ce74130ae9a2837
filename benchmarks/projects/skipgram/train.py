"""Skip-gram with negative sampling, own loop."""

import argparse
import time

import tensorflow as tf
from w2v.corpus import make_corpus, noise_distribution, pairs
from w2v.model import SkipGram


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vocabulary", type=int, default=8_000)
    parser.add_argument("--sentences", type=int, default=3_000)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    corpus = make_corpus(args.sentences, args.vocabulary)
    noise = noise_distribution(corpus, args.vocabulary)
    dataset = tf.data.Dataset.from_generator(
        lambda: pairs(corpus, noise, window=3, negatives=5, seed=1),
        output_signature=(
            tf.TensorSpec((), tf.int64),
            tf.TensorSpec((6,), tf.int64),
        ),
    )
    dataset = dataset.batch(args.batch_size, drop_remainder=True)
    model = SkipGram(args.vocabulary, args.dim)
    optimizer = tf.keras.optimizers.Adam(1e-3)
    labels = tf.one_hot(tf.zeros(args.batch_size, tf.int32), 6)

    @tf.function
    def train_step(target, context):
        with tf.GradientTape() as tape:
            logits = model((target, context))
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels, logits))
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    for epoch in range(args.epochs):
        started, total, steps = time.time(), 0.0, 0
        for target, context in dataset:
            total += train_step(target, context)
            steps += 1
        print(f"epoch {epoch} loss {float(total) / steps:.4f} in {time.time() - started:.1f} s")


if __name__ == "__main__":
    main()
