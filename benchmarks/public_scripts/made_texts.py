"""Texts with labels, made on the spot."""

from __future__ import annotations

import csv
from pathlib import Path

from benchmarks.public_scripts.made_words import Texts

TERMS = ("cs.AI", "cs.CV", "cs.LG", "cs.NE", "cs.RO", "eess.IV", "math.OC", "stat.ML")
LANGUAGES = ("csharp", "java", "javascript", "python")


def papers(folder: Path, count: int) -> None:
    """Titles, abstracts of 60 to 240 words and subject areas as one table."""
    texts = Texts(15)
    with (folder / "arxiv_data.csv").open("w", encoding="utf-8", newline="") as table:
        rows = csv.writer(table)
        rows.writerow(["titles", "summaries", "terms"])
        for number in range(count):
            terms = texts.rng.choice(TERMS, texts.rng.integers(1, 3), replace=False)
            rows.writerow([f"Paper {number}", texts.line(60, 240), str([*map(str, terms)])])


def questions(folder: Path, count: int) -> None:
    """`count` questions on four languages for training and a quarter of that for testing."""
    texts = Texts(16)
    for part, number in (("train", count), ("test", count // 4)):
        for language in LANGUAGES:
            place = folder / "questions" / part / language
            place.mkdir(parents=True)
            for index in [*range(number // len(LANGUAGES) - 1), 1755]:
                (place / f"{index}.txt").write_text(texts.line(40, 200), encoding="utf-8")
