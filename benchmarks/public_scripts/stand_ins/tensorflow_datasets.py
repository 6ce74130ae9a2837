"""Stands in for TensorFlow Datasets where there is no network: made records of the same form.

As the real one, `load` gives records that are read from files and parsed by maps of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import tensorflow as tf

RATINGS, MOVIES, USERS = 100_000, 1682, 943
REVIEWS = 6400
WORDS = 2000
REVIEW_WORDS = (20, 60)
_RATING = {
    "movie_title": tf.io.FixedLenFeature([], tf.string),
    "user_id": tf.io.FixedLenFeature([], tf.string),
    "user_rating": tf.io.FixedLenFeature([], tf.float32),
    "timestamp": tf.io.FixedLenFeature([], tf.int64),
}
_MOVIE = {
    "movie_title": tf.io.FixedLenFeature([], tf.string),
    "movie_id": tf.io.FixedLenFeature([], tf.string),
}
_REVIEW = {
    "text": tf.io.FixedLenFeature([], tf.string),
    "label": tf.io.FixedLenFeature([], tf.int64),
}


def disable_progress_bar() -> None:
    """There is none."""


def load(
    name: str,
    split: str | list[str] | None = None,
    *,
    with_info: bool = False,
    as_supervised: bool = False,
    **_reading: Any,
) -> Any:
    """The dataset of that name, of one split, of some or of all, each of which is one file."""
    made: Any
    if name == "imdb_reviews":
        pair = (lambda row: (row["text"], row["label"])) if as_supervised else None
        made = {part: _parsed(part, _reviews, _REVIEW, pair) for part in ("train", "test")}
    elif name.endswith("-ratings"):
        made = {"train": _parsed("ratings", _ratings, _RATING)}
    elif name.endswith("-movies"):
        made = {"train": _parsed("movies", _movies, _MOVIE)}
    else:
        raise ValueError(f"no stand-in for {name}")
    if isinstance(split, list):
        chosen = tuple(made[part] for part in split)
    else:
        chosen = made if split is None else made[split]
    return (chosen, SimpleNamespace(name=name)) if with_info else chosen


def _parsed(name: str, rows: Any, features: dict[str, Any], then: Any = None) -> Any:
    path = Path(f"made_{name}.tfrecord")
    if not path.exists():
        with tf.io.TFRecordWriter(str(path)) as writer:
            for row in rows(np.random.default_rng(sum(name.encode()))):
                writer.write(_example(row))
    dataset = tf.data.TFRecordDataset([str(path)]).map(
        lambda record: tf.io.parse_single_example(record, features),
        num_parallel_calls=tf.data.AUTOTUNE,
    )
    dataset = dataset.map(then, num_parallel_calls=tf.data.AUTOTUNE) if then else dataset
    return dataset.prefetch(tf.data.AUTOTUNE)


def _example(row: dict[str, Any]) -> bytes:
    features = {}
    for key, value in row.items():
        if isinstance(value, str):
            kind = {"bytes_list": tf.train.BytesList(value=[value.encode()])}
        elif isinstance(value, float):
            kind = {"float_list": tf.train.FloatList(value=[value])}
        else:
            kind = {"int64_list": tf.train.Int64List(value=[value])}
        features[key] = tf.train.Feature(**kind)
    features_of = tf.train.Features(feature=features)
    return bytes(tf.train.Example(features=features_of).SerializeToString())


def _ratings(rng: np.random.Generator) -> Any:
    movies = rng.zipf(1.2, RATINGS) % MOVIES
    users = rng.integers(USERS, size=RATINGS)
    stars = rng.integers(1, 6, RATINGS)
    times = rng.integers(874_724_710, 893_286_638, RATINGS)
    for movie, user, rating, time in zip(movies, users, stars, times, strict=True):
        yield {
            "movie_title": f"Movie {movie} (1995)",
            "user_id": str(user),
            "user_rating": float(rating),
            "timestamp": int(time),
        }


def _movies(_rng: np.random.Generator) -> Any:
    for movie in range(MOVIES):
        yield {"movie_title": f"Movie {movie} (1995)", "movie_id": str(movie)}


def _reviews(rng: np.random.Generator) -> Any:
    for number in range(REVIEWS):
        words = rng.zipf(1.3, rng.integers(*REVIEW_WORDS)) % WORDS
        yield {"text": " ".join(f"word{word}" for word in words), "label": number % 2}


class _Tokenizer:
    """Words of a text."""

    def tokenize(self, text: str | bytes) -> list[str]:
        return re.findall(r"\w+", tf.compat.as_text(text))


class _TokenTextEncoder:
    """Numbers of a text's words, from 1; one more for all that are unknown."""

    def __init__(
        self, words: Iterable[str], *, lowercase: bool, tokenizer: _Tokenizer, **_names: Any
    ) -> None:
        self._numbers = {word: number for number, word in enumerate(words, 1)}
        self._lowercase, self._tokenizer = lowercase, tokenizer

    def encode(self, text: str | bytes) -> list[int]:
        text = tf.compat.as_text(text)
        words = self._tokenizer.tokenize(text.lower() if self._lowercase else text)
        return [self._numbers.get(word, len(self._numbers) + 1) for word in words]


features = SimpleNamespace(
    text=SimpleNamespace(Tokenizer=_Tokenizer, TokenTextEncoder=_TokenTextEncoder)
)
