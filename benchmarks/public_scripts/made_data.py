"""Data of the form that a public script asks for, made on the spot.

    python -m benchmarks.public_scripts.made_data FOLDER KIND[:SIZE]...

A process of its own, since images are encoded with TensorFlow and the benchmark imports none.
"""

from __future__ import annotations

import sys
import wave
import zipfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

KERAS_DATASETS = Path(".keras/datasets")
WORDS = 8000
SYLLABLES = ("ba", "den", "fo", "gri", "hal", "ki", "lum", "ne", "or", "pra", "sti", "tu", "we")
TERMS = ("cs.AI", "cs.CV", "cs.LG", "cs.NE", "cs.RO", "eess.IV", "math.OC", "stat.ML")
LANGUAGES = ("csharp", "java", "javascript", "python")
USERS, FILMS = 6040, 3706
KNOWN_FILMS = 1682
"""As many as the stand-in for TensorFlow Datasets has."""
GENRES = ("Action", "Comedy", "Crime", "Drama", "Horror", "Romance", "Sci-Fi", "Thriller", "War")
ENTITIES, RELATIONS = 4000, 18
COVER_FEATURES, AREAS, SOILS, COVERS = 10, 4, 40, 7


def vocabulary(count: int = WORDS) -> list[str]:
    """Words by falling frequency."""
    rng = np.random.default_rng(7)
    made: dict[str, None] = {}
    while len(made) < count:
        made["".join(rng.choice(SYLLABLES, rng.integers(1, 4)))] = None
        if len(made) < count and len(made) > len(SYLLABLES) ** 2:
            made[f"{rng.choice(SYLLABLES)}{len(made)}"] = None
    return list(made)


class Texts:
    """Text whose words follow Zipf's law."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.words = np.array(vocabulary())

    def line(self, shortest: int, longest: int) -> str:
        count = self.rng.integers(shortest, longest)
        return " ".join(self.words[self.rng.zipf(1.25, count) % len(self.words)])


def lines(folder: Path, count: int) -> None:
    """A text of `count` lines, under the names by which `get_file` looks for what it has."""
    texts = Texts(1)
    made = "\n".join(texts.line(4, 12).capitalize() + "," for _ in range(count))
    for name in ("shakespeare.txt", "nietzsche.txt"):
        _cached(folder, name).write_text(made, encoding="utf-8")


def text8(folder: Path, count: int) -> None:
    """An archive of one file of `count` words, all of which a test word is among."""
    known = "five of going hardware american britain ".split() * 20
    words = [*known, *Texts(2).line(count, count + 1).split()]
    with zipfile.ZipFile(folder / "text8.zip", "w") as archive:
        archive.writestr("text8", " ".join(words))


def reviews(folder: Path, count: int) -> None:
    """`count` texts for training and a quarter of that for testing, a file each."""
    texts = Texts(3)
    for part, number in (("train", count), ("test", count // 4)):
        for kind in ("pos", "neg"):
            place = folder / "aclImdb" / part / kind
            place.mkdir(parents=True)
            for index in range(number // 2):
                text = f"This movie is {texts.line(60, 240)}.<br />{texts.line(20, 60)}"
                (place / f"{index}_7.txt").write_text(text, encoding="utf-8")


def ratings(folder: Path, count: int) -> None:
    """Users, films and stars as two tables, and the archive that they were in."""
    rng = np.random.default_rng(4)
    place = _cached(folder, "ml-latest-small")
    place.mkdir()
    rows = {
        "userId": rng.integers(1, 611, count),
        "movieId": rng.zipf(1.2, count) % 9000 + 1,
        "rating": rng.integers(1, 11, count) / 2,
        "timestamp": 0,
    }
    _csv(place / "ratings.csv", rows)
    films = np.arange(1, 9002)
    titles = [f"Film {film} (1999)" for film in films]
    _csv(place / "movies.csv", {"movieId": films, "title": titles, "genres": "Drama"})
    with zipfile.ZipFile(_cached(folder, "ml-latest-small.zip"), "w") as archive:
        archive.write(place / "ratings.csv", "ml-latest-small/ratings.csv")


def heart(folder: Path, count: int) -> None:
    """Patients: thirteen numbers and a word."""
    rng = np.random.default_rng(6)
    names = "age,sex,cp,trestbps,chol,fbs,restecg,thalach,exang,oldpeak,slope,ca".split(",")
    limits = (80, 2, 5, 200, 400, 2, 3, 200, 2, 5, 4, 4)
    rows = {name: rng.integers(n, size=count) for name, n in zip(names, limits, strict=True)}
    rows["thal"] = rng.choice(["fixed", "normal", "reversible"], count)
    rows["target"] = rng.integers(2, size=count)
    _csv(folder / "heart.csv", rows)


def pets(folder: Path, count: int) -> None:
    """Animals: mostly words."""
    rng = np.random.default_rng(8)
    words = {
        "Type": "Cat Dog",
        "Breed1": "Tabby Collie Siamese Beagle",
        "Gender": "Male Female",
        "Color1": "Black White Brown",
        "Color2": "Black White Cream",
        "MaturitySize": "Small Medium Large",
        "FurLength": "Short Medium Long",
        "Vaccinated": "Yes No",
        "Sterilized": "Yes No",
        "Health": "Healthy Injured",
    }
    numbers = {"Age": 60, "Fee": 300, "PhotoAmt": 12, "AdoptionSpeed": 5}
    rows = {name: rng.choice(kinds.split(), count) for name, kinds in words.items()}
    rows |= {name: rng.integers(n, size=count) for name, n in numbers.items()}
    _csv(folder / "petfinder-mini.csv", {**rows, "Description": "text"})


def weather(folder: Path, count: int) -> None:
    """A station's log, a row every ten minutes."""
    rng = np.random.default_rng(9)
    columns = [
        *("p (mbar)", "T (degC)", "Tpot (K)", "Tdew (degC)", "rh (%)", "VPmax (mbar)"),
        *("VPact (mbar)", "VPdef (mbar)", "sh (g/kg)", "H2OC (mmol/mol)", "rho (g/m**3)"),
        *("wv (m/s)", "max. wv (m/s)", "wd (deg)"),
    ]
    times = pd.date_range("2009-01-01T00:10", periods=count, freq="10min")
    rows = {name: np.round(rng.random(count) * 100, 2) for name in columns}
    _csv(folder / "jena_climate.csv", {"Date Time": times.strftime("%d.%m.%Y %H:%M:%S"), **rows})


def housing(folder: Path, count: int) -> None:
    """Eight features and a price, as arrays."""
    rng = np.random.default_rng(10)
    np.savez(folder / "housing.npz", x=rng.random((count, 8)) * 9, y=rng.random((count, 1)))


def digits(folder: Path, count: int) -> None:
    """Grey pictures of 28 by 28 pixels with ten labels, as arrays."""
    rng = np.random.default_rng(11)
    pictures = rng.integers(0, 256, (count, 28, 28), dtype=np.uint8)
    np.savez(folder / "digits.npz", x=pictures, y=rng.integers(0, 10, count, dtype=np.int64))


def faces(folder: Path, count: int) -> None:
    """Pictures of 178 by 218 pixels."""
    _jpegs([folder / "celeba_gan" / f"{number:06d}.jpg" for number in range(count)], (218, 178))


def cats_and_dogs(folder: Path, count: int) -> None:
    """Pictures of 500 by 375 pixels of two kinds, one by the name that is looked at last."""
    names = [f"{number}.jpg" for number in [*range(count // 2 - 1), 6779]]
    paths = [folder / "PetImages" / kind / name for kind in ("Cat", "Dog") for name in names]
    _jpegs(paths, (375, 500))


def captchas(folder: Path, count: int) -> None:
    """Pictures of 200 by 50 pixels that are named after five characters."""
    rng = np.random.default_rng(12)
    paths: dict[Path, None] = {}
    while len(paths) < count:
        paths[
            folder / "captcha_images_v2" / ("".join(rng.choice(list("2345678bcdefg"), 5)) + ".png")
        ] = None
    import tensorflow as tf

    for path, picture in zip(paths, _pictures(count, (50, 200)), strict=True):
        path.parent.mkdir(exist_ok=True)
        tf.io.write_file(str(path), tf.io.encode_png(picture))


def speech(folder: Path, count: int) -> None:
    """Seconds of noise at 16 kHz, by the word that they are to say."""
    rng = np.random.default_rng(13)
    for word in ("down", "go", "left", "no", "right", "stop", "up", "yes"):
        place = folder / "data/mini_speech_commands" / word
        place.mkdir(parents=True)
        names = ["01bb6a2a_nohash_0", *(f"{number:08x}_nohash_0" for number in range(count // 8))]
        for name in names:
            with wave.open(str(place / f"{name}.wav"), "wb") as sound:
                sound.setnchannels(1)
                sound.setsampwidth(2)
                sound.setframerate(16_000)
                sound.writeframes(rng.integers(-9000, 9000, 16_000, dtype=np.int16).tobytes())


def papers(folder: Path, count: int) -> None:
    """Titles, abstracts of 60 to 240 words and subject areas as one table."""
    texts = Texts(15)
    areas = [texts.rng.choice(TERMS, texts.rng.integers(1, 3), replace=False) for _ in range(count)]
    rows = {
        "titles": [f"Paper {number}" for number in range(count)],
        "summaries": [texts.line(60, 240) for _ in range(count)],
        "terms": [str([*map(str, area)]) for area in areas],
    }
    _csv(folder / "arxiv_data.csv", rows)


def questions(folder: Path, count: int) -> None:
    """`count` questions on four languages for training and a quarter of that for testing."""
    texts = Texts(16)
    for part, number in (("train", count), ("test", count // 4)):
        for language in LANGUAGES:
            place = folder / "questions" / part / language
            place.mkdir(parents=True)
            for index in [*range(number // len(LANGUAGES) - 1), 1755]:
                (place / f"{index}.txt").write_text(texts.line(40, 200), encoding="utf-8")


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
    for name_of_file, rows in (("trainingSamples.csv", count), ("testSamples.csv", count // 4)):
        made = {n: rng.integers(int(limit > 2), limit, rows) for n, limit in numbers.items()}
        made |= {name: np.round(rng.random(rows) * 5, 2) for name in fractions}
        made |= {name: rng.choice(GENRES, rows) for name in genres}
        _csv(folder / name_of_file, made)


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


def sentences(folder: Path, count: int) -> None:
    """A label and a text a line."""
    _labelled(folder, count, lambda texts: f"{texts.rng.integers(2)}\t{texts.line(60, 240)}")


def sentence_pairs(folder: Path, count: int) -> None:
    """A label and two texts a line."""
    kinds = ("neutral", "entailment", "contradiction")
    _labelled(
        folder,
        count,
        lambda texts: f"{texts.rng.choice(kinds)}\t{texts.line(14, 24)}\t{texts.line(10, 16)}",
    )


def requests(folder: Path, count: int) -> None:
    """Words between two marks, then a slot for each, and an intent at the end."""
    (folder / "vocab").mkdir()
    for name, number in (("intent", 20), ("slot", 100)):
        (folder / f"vocab/{name}.txt").write_text("\n".join(f"{name}{n}" for n in range(number)))

    def row(texts: Texts) -> str:
        words = texts.line(8, 16)
        slots = [f"slot{n}" for n in texts.rng.integers(0, 100, words.count(" ") + 1)]
        return f"BOS {words} EOS\tO {' '.join(slots)} intent{texts.rng.integers(20)}"

    _labelled(folder, count, row)


def facts(folder: Path, count: int) -> None:
    """Subjects, relations and objects, with the names of all."""
    rng = np.random.default_rng(24)
    for place in ("vocab", "data"):
        (folder / place).mkdir()
    for name, number in (("entity", ENTITIES), ("relation", RELATIONS)):
        (folder / f"vocab/{name}.txt").write_text("\n".join(f"{name}{n}" for n in range(number)))
    for part, number in (("train", count), ("valid", count // 20), ("test", count // 20)):
        columns = rng.integers(ENTITIES, size=(number, 2)), rng.integers(RELATIONS, size=number)
        rows = [f"entity{s} relation{p} entity{o}" for (s, o), p in zip(*columns, strict=True)]
        (folder / f"data/{part}.txt").write_text("\n".join(rows))


def ptb(folder: Path, count: int) -> None:
    """`count` lines for training, a tenth of that for each of the others."""
    texts = Texts(25)
    for part, number in (("train", count), ("valid", count // 10), ("test", count // 10)):
        rows = [texts.line(10, 30) for _ in range(number)]
        (folder / f"ptb.{part}.txt").write_text(" \n ".join(rows), encoding="utf-8")


def translations(folder: Path, count: int) -> None:
    """Two short texts a line and where they come from."""
    texts = Texts(26)
    rows = [f"{texts.line(2, 4)}.\t{texts.line(2, 5)}!\tmade" for _ in range(count + 1)]
    (folder / "fra.txt").write_text("\n".join(rows), encoding="utf-8")


def _labelled(folder: Path, count: int, row: Callable[[Texts], str]) -> None:
    """`count` lines, a quarter of that to test on, and their vocabulary with a vector a word."""
    texts = Texts(23)
    for place in ("vocab", "data"):
        (folder / place).mkdir(exist_ok=True)
    (folder / "vocab/word.txt").write_text("\n".join(["<pad>", *texts.words]), encoding="utf-8")
    vectors = texts.rng.normal(size=(len(texts.words) + 2, 300)).astype("float32")
    np.save(folder / "vocab/word.npy", vectors)
    for part, number in (("train", count), ("test", count // 4)):
        rows = [row(texts) for _ in range(number)]
        (folder / f"data/{part}.txt").write_text("\n".join(rows), encoding="utf-8")


def _csv(path: Path, columns: dict[str, Any]) -> None:
    pd.DataFrame(columns).to_csv(path, index=False)


def _integers(tf: Any, values: np.ndarray) -> Any:
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values.tolist()))


def _double_colons(path: Path, rows: Iterable[Iterable[object]]) -> None:
    path.write_text("\n".join("::".join(map(str, row)) for row in rows), encoding="utf-8")


def _cached(folder: Path, name: str) -> Path:
    path = folder / KERAS_DATASETS / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _pictures(count: int, size: tuple[int, int]) -> list[np.ndarray]:
    """Smooth pictures, so that they are as long in a file as photographs are."""
    rng = np.random.default_rng(14)
    height, width = size
    rows, columns = np.linspace(0, 6, height)[:, None], np.linspace(0, 6, width)[None, :]
    made = []
    for _ in range(count):
        a, b, c = rng.random(3) * 3
        wave_of = [np.sin(rows * a + shift) * np.cos(columns * b + c * shift) for shift in range(3)]
        noisy = np.stack(wave_of, axis=-1) * 100 + 128 + rng.normal(0, 8, (height, width, 3))
        made.append(noisy.clip(0, 255).astype(np.uint8))
    return made


def _jpegs(paths: Sequence[Path], size: tuple[int, int]) -> None:
    import tensorflow as tf

    pictures = _pictures(min(len(paths), 50), size)
    for number, path in enumerate(paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        encoded = tf.io.encode_jpeg(pictures[number % len(pictures)], quality=90)
        tf.io.write_file(str(path), encoded)


KINDS: dict[str, Callable[[Path, int], None]] = {
    made.__name__: made
    for made in (
        *(lines, text8, reviews, ratings, heart, pets, weather),
        *(housing, digits, faces, cats_and_dogs, captchas, speech),
        *(films, terrain, clicks, timelines),
        *(papers, questions),
        *(sentences, sentence_pairs, requests, facts, ptb, translations),
    )
}


def main() -> None:
    """Make each kind, of the size that stands behind its colon."""
    folder = Path(sys.argv[1])
    for word in sys.argv[2:]:
        kind, _, size = word.partition(":")
        KINDS[kind](folder, int(size))


if __name__ == "__main__":
    main()
