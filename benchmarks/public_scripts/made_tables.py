"""Tables of users, films and places, made on the spot."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

USERS, FILMS = 6040, 3706
KNOWN_FILMS = 1682
"""As many as the stand-in for TensorFlow Datasets tells of."""
GENRES = ("Action", "Comedy", "Crime", "Drama", "Horror", "Romance", "Sci-Fi", "Thriller", "War")
COVER_FEATURES, AREAS, SOILS, COVERS = 10, 4, 40, 7


def films(folder: Path, count: int) -> None:
    """`count` ratings, the users and the films of them, two colons between columns."""
    rng = np.random.default_rng(18)
    place = folder / "ml-1m"
    place.mkdir()
    columns = (
        rng.integers(1, USERS + 1, count),
        rng.zipf(1.2, count) % FILMS + 1,
        rng.integers(1, 6, count),
        rng.integers(956_703_932, 1_046_454_590, count),
    )
    _double_colons(place / "ratings.dat", zip(*columns, strict=True))
    ages, jobs = rng.integers(1, 57, USERS), rng.integers(0, 21, USERS)
    people = ((user + 1, "FM"[user % 2], ages[user], jobs[user], "48067") for user in range(USERS))
    _double_colons(place / "users.dat", people)
    kinds = rng.choice(GENRES, FILMS)
    titles = ((film + 1, f"Film {film} (1995)", kinds[film]) for film in range(FILMS))
    _double_colons(place / "movies.dat", titles)


def terrain(folder: Path, count: int) -> None:
    """Plots of land: ten numbers, an area and a soil as flags, and what grows there."""
    rng = np.random.default_rng(19)
    rows = np.concatenate(
        [
            rng.integers(0, 3000, (count, COVER_FEATURES)),
            np.eye(AREAS, dtype=int)[rng.integers(AREAS, size=count)],
            np.eye(SOILS, dtype=int)[rng.integers(SOILS, size=count)],
            rng.integers(1, COVERS + 1, (count, 1)),
        ],
        axis=1,
    )
    np.savetxt(folder / "covtype.csv", rows, fmt="%d", delimiter=",")


def clicks(folder: Path, count: int) -> None:
    """Who liked which film, with what is known of both: `count` rows, and a quarter to test on."""
    rng = np.random.default_rng(20)
    numbers = {
        **{"movieId": 1001, "userId": 30001, "rating": 6, "timestamp": 10**9, "label": 2},
        **{"releaseYear": 2020, "movieRatingCount": 9999, "userRatingCount": 999},
        **{f"userRatedMovie{number}": 1001 for number in range(1, 6)},
        "userAvgReleaseYear": 2020,
    }
    fractions = [
        *("movieAvgRating", "movieRatingStddev", "userReleaseYearStddev"),
        *("userAvgRating", "userRatingStddev"),
    ]
    genres = [f"movieGenre{n}" for n in (1, 2, 3)] + [f"userGenre{n}" for n in range(1, 6)]
    for name, rows in (("trainingSamples.csv", count), ("testSamples.csv", count // 4)):
        columns = [rng.integers(int(limit > 2), limit, rows) for limit in numbers.values()]
        columns += [np.round(rng.random(rows) * 5, 2) for _ in fractions]
        columns += [rng.choice(GENRES, rows) for _ in genres]
        lines = [",".join([*numbers, *fractions, *genres])]
        lines += [",".join(map(str, row)) for row in zip(*columns, strict=True)]
        (folder / name).write_text("\n".join(lines), encoding="utf-8")


def timelines(folder: Path, count: int) -> None:
    """Records of the ten films that a user saw last, and of the next one."""
    import tensorflow as tf

    rng = np.random.default_rng(21)
    place = folder / "data" / "examples"
    place.mkdir(parents=True)
    for part, number in (("train", count), ("test", count // 10)):
        with tf.io.TFRecordWriter(str(place / f"{part}_movielens_1m.tfrecord")) as writer:
            for row in rng.zipf(1.2, (number, 11)) % KNOWN_FILMS:
                features = {
                    "context_movie_id": _integers(tf, row[:10]),
                    "context_movie_year": _integers(tf, np.full(10, 1995)),
                    "label_movie_id": _integers(tf, row[10:]),
                }
                example = tf.train.Example(features=tf.train.Features(feature=features))
                writer.write(example.SerializeToString())


def _integers(tf: Any, values: np.ndarray) -> Any:
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values.tolist()))


def _double_colons(path: Path, rows: Iterable[Iterable[object]]) -> None:
    path.write_text("\n".join("::".join(map(str, row)) for row in rows), encoding="utf-8")
