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


def batches(corpus, noise, window, negatives, seed, batch_size):
    """Whole batches: pairs are joined first, and negatives of a batch are drawn in one call."""
    rng = np.random.default_rng(seed)
    cumulative = np.cumsum(noise)
    cumulative /= cumulative[-1]
    centers, contexts = [], []
    for sentence in corpus:
        reaches = rng.integers(1, window + 1, len(sentence))
        for position, reach in enumerate(reaches):
            left, right = max(0, position - reach), min(len(sentence), position + reach + 1)
            around = np.concatenate([sentence[left:position], sentence[position + 1 : right]])
            centers.append(np.full(len(around), sentence[position]))
            contexts.append(around)
    centers, contexts = np.concatenate(centers), np.concatenate(contexts)
    for start in range(0, len(centers) - batch_size + 1, batch_size):
        rows = slice(start, start + batch_size)
        sampled = cumulative.searchsorted(rng.random((batch_size, negatives)), side="right")
        yield centers[rows], np.concatenate([contexts[rows, None], sampled], axis=1)
