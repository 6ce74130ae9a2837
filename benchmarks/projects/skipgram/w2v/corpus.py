"""A corpus and its skip-gram pairs with negative samples."""

import numpy as np


def make_corpus(sentences, vocabulary, seed=8):
    rng = np.random.default_rng(seed)
    return [
        rng.zipf(1.25, rng.integers(8, 25)).clip(max=vocabulary - 1).astype(np.int64)
        for _ in range(sentences)
    ]


def noise_distribution(corpus, vocabulary):
    counts = np.bincount(np.concatenate(corpus), minlength=vocabulary).astype(float)
    weights = counts**0.75
    return weights / weights.sum()


def pairs(corpus, noise, window, negatives, seed):
    rng = np.random.default_rng(seed)
    vocabulary = len(noise)
    for sentence in corpus:
        for position, center in enumerate(sentence):
            reach = int(rng.integers(1, window + 1))
            left = max(0, position - reach)
            for other in range(left, min(len(sentence), position + reach + 1)):
                if other == position:
                    continue
                sampled = rng.choice(vocabulary, size=negatives, p=noise)
                yield center, np.concatenate([[sentence[other]], sampled])
