"""What the Python of a pipeline calls, and what it changes that others see."""

from __future__ import annotations

import csv
import functools
import io
import random
import time
from collections.abc import Callable
from functools import partial
from math import sqrt
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
import numpy.random  # NumPy itself loads it on first use
import pytest

from pipediag.capture.callsites import unwrap
from pipediag.capture.pipelines.functions import module_functions, side_effect


def attributes(x: Any) -> Any:
    return x.input + x.open + x.sleep(1) + x.random.uniform()


def opens(path: Any) -> Any:
    return open(path)  # noqa: PTH123


def nested(x: Any) -> Any:
    def inner(y: Any) -> Any:
        time.sleep(0.1)
        return [print(z) for z in y]

    return inner(x)


def own_print(x: Any) -> Any:
    print = x.print
    return print(x)


def of_the_script(x: Any) -> Any:
    return attributes(x)


def closing_over(module: Any) -> Any:
    return lambda x: module.sleep(x + 1)


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (attributes, []),
        (own_print, []),
        (opens, ["open"]),
        (nested, ["print", "time.sleep"]),
        (closing_over(time), ["time.sleep"]),
        (closing_over(object()), []),
        (of_the_script, [f"{__name__}.attributes"]),
        (lambda x: sleep(x + 1), ["time.sleep"]),
        (lambda x: x + np.random.uniform(), ["numpy.random.uniform"]),
        (lambda x: x * random.random(), ["random.random"]),
        (lambda x: np.float32(x) + sqrt(x), ["math.sqrt"]),
        (partial(opens, "train.csv"), ["open"]),
        (print, []),
    ],
)
def test_names_count_for_what_they_are_bound_to(function: Any, names: list[str]) -> None:
    assert module_functions(unwrap(function)) == names


SEEN: list[int] = []
VOCABULARY: dict[str, int] = {}
COUNT = 0
BUFFER = np.zeros(3)
LOG = io.StringIO()
ROWS = csv.writer(LOG)


def counts(x: int) -> int:
    global COUNT  # noqa: PLW0603
    COUNT += 1
    return x


def closes_over() -> Callable[[int], int]:
    calls = 0

    def called(x: int) -> int:
        nonlocal calls
        calls += 1
        return x

    return called


def appends(x: int) -> int:
    SEEN.append(x)
    return x


def learns(word: str) -> int:
    VOCABULARY[word] = len(VOCABULARY)
    return VOCABULARY[word]


def fills(x: int) -> Any:
    BUFFER[:] = x
    return BUFFER


def logs(x: int) -> int:
    LOG.write(f"{x}\n")
    return x


def logs_rows(x: int) -> int:
    ROWS.writerow([x])
    return x


def saves(x: int) -> int:
    with open("rows.txt", "a", encoding="utf-8") as file:  # noqa: PTH123
        file.write(str(x))
    return x


def saves_too(x: int) -> int:
    Path("row.txt").write_text(str(x), encoding="utf-8")
    return x


@functools.wraps(appends)
def wrapped(x: int) -> int:
    return appends(x)


class Reader:
    def __init__(self) -> None:
        self.position = 0
        self.read: list[int] = []

    def moves(self, x: int) -> int:
        self.position += 1
        return x

    def keeps(self, x: int) -> int:
        self.read.append(x)
        return x

    def only_looks(self, x: int) -> int:
        return x + self.position

    def __call__(self, x: int) -> int:
        return x


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (counts, "it assigns `COUNT`"),
        (closes_over(), "it assigns `calls`"),
        (appends, "it changes `SEEN`"),
        (learns, "it changes `VOCABULARY`"),
        (fills, "it changes `BUFFER`"),
        (logs, "it changes `LOG`"),
        (logs_rows, "it changes `ROWS`"),
        (saves, "it writes files"),
        (saves_too, "it writes files"),
        (Reader().moves, "it changes `self`"),
        (Reader().keeps, "it changes `self.read`"),
        (wrapped, "it changes `SEEN`"),
    ],
)
def test_what_others_see(function: Callable[..., Any], words: str) -> None:
    assert side_effect(function) == words


def plain(x: Any) -> Any:
    words = []
    for word in str(x).split():
        words.append(word.lower())
    table = {}
    table["n"] = len(words)
    table.update(m=1)
    return np.append(np.array([COUNT]), [VOCABULARY.get(w, 0) for w in words])


def reads(x: str) -> str:
    with open(x, encoding="utf-8") as file:  # noqa: PTH123
        return file.read()


@pytest.mark.parametrize(
    "function", [plain, reads, Reader().only_looks, Reader(), SEEN.append, len, np.add]
)
def test_what_does_not_show(function: Callable[..., Any]) -> None:
    assert side_effect(function) is None
