from __future__ import annotations

import functools
import json
import math
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipediag.capture.purity import doubt

WORDS = {"a": 1}
TABLE = np.arange(10)
STATE = {"n": 0}
LINES = iter([1, 2, 3])
LOCK = threading.Lock()
RNG = np.random.default_rng(3)
CALLS = [0]
COUNT = 0


class Source:
    def __init__(self) -> None:
        self.seen = 0
        self.rows = [1, 2]

    def __call__(self) -> Iterator[int]:
        for row in self.rows:
            self.bump()
            yield row

    def bump(self) -> None:
        self.seen += 1

    def read(self) -> Iterator[int]:
        yield from self.rows

    @property
    def counted(self) -> int:
        self.seen += 1
        return self.seen


class Stream:
    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> int:
        return 1


SOURCE, STREAM = Source(), Stream()


def computes(text: bytes) -> Any:
    ids = [WORDS.get(word, 0) for word in text.decode().split()]
    out = np.zeros(8, np.int64)
    out[: len(ids)] = ids[:8]
    out.sort()
    return out


def waits(x: Any, ms: float = 2) -> Any:
    time.sleep(ms / 1000)
    return x


def reads(name: bytes) -> Any:
    with open(name, encoding="utf-8") as file:  # noqa: PTH123 - what users write
        return json.loads(file.read())["a"]


def asks_helpers(x: float) -> float:
    return waits(math.sqrt(x) + float(TABLE[3]))


def collects(xs: Any) -> list[Any]:
    found = []
    for x in xs:
        found.append(x)
    return found


def generates() -> Iterator[Any]:
    rng = np.random.default_rng(0)
    for i in range(10):
        yield rng.normal(size=3), i


def draws_own(x: Any) -> Any:
    return RNG.normal() + x


def draws_global(x: Any) -> Any:
    return np.random.rand() + x


def draws_python(x: Any) -> Any:
    return random.random() + x


def helper_counts(x: Any) -> Any:
    log(x)
    return x


def log(_: Any) -> None:
    with open("calls.log", "a", encoding="utf-8") as file:  # noqa: PTH123
        file.write("x")


def item_assigned(x: Any) -> Any:
    CALLS.__setitem__(0, 1)
    return x


def by_alias(x: Any) -> Any:
    state = STATE
    state["n"] += 1
    return x


def by_part(x: Any) -> Any:
    inner = STATE.setdefault("list", [])  # type: ignore[arg-type]
    inner.append(x)  # type: ignore[attr-defined]
    return x


def by_argument(x: Any) -> Any:
    changes(STATE)
    return x


def changes(state: Any) -> None:
    state["n"] = 1


def locked(x: Any) -> Any:
    with LOCK:
        return x


def prints(x: Any) -> Any:
    print(x)
    return x


def counts(x: Any) -> Any:
    global COUNT  # noqa: PLW0603
    COUNT += 1
    return x


def asks_property(x: Any) -> Any:
    return x + SOURCE.counted


def never_returns(x: Any) -> Any:
    threading.Event().wait()
    return x


def writes(x: Any) -> Any:
    np.save("x.npy", x)
    return x


def goes_through_iterator() -> Iterator[int]:
    for line in LINES:
        yield line + 1


def takes_next(x: Any) -> Any:
    return next(LINES) + x


HARMLESS: list[Callable[..., Any]] = [
    computes,
    waits,
    reads,
    asks_helpers,
    collects,
    generates,
    functools.partial(waits, ms=3),
    SOURCE.read,
    np.sort,
    lambda x: waits(x, 5),
    lambda a: np.asarray(a, "f") * 2,
]


@pytest.mark.parametrize("function", HARMLESS, ids=map(str, range(len(HARMLESS))))
def test_what_only_computes_reads_or_waits_is_shown_harmless(function: Callable[..., Any]) -> None:
    assert doubt(function) is None


DOUBTFUL: list[tuple[Callable[..., Any], str]] = [
    (draws_own, "RNG.normal"),
    (draws_global, "np.random.rand"),
    (draws_python, "random.random"),
    (helper_counts, "log"),
    (item_assigned, "CALLS.__setitem__"),
    (by_alias, "state"),
    (by_part, "STATE.setdefault"),
    (by_argument, "changes"),
    (locked, "LOCK"),
    (prints, "print"),
    (counts, "COUNT"),
    (never_returns, "threading.Event"),
    (writes, "np.save"),
    (goes_through_iterator, "LINES"),
    (takes_next, "next"),
    (SOURCE, "self.bump"),
    (SOURCE.bump, "self"),
    (functools.partial(by_argument, 1), "changes"),
    (lambda: STREAM, "STREAM"),
    (lambda x: STATE.update(n=x), "STATE.update"),
    (Path.unlink, "Path.unlink"),
]


@pytest.mark.parametrize(("function", "named"), DOUBTFUL, ids=[named for _, named in DOUBTFUL])
def test_what_may_change_something_is_doubted_by_name(
    function: Callable[..., Any], named: str
) -> None:
    found = doubt(function)
    assert found is not None
    assert named in found


def test_a_property_is_never_asked() -> None:
    before = SOURCE.seen
    doubt(asks_property)
    assert SOURCE.seen == before


def test_a_function_without_source_is_doubted() -> None:
    names: dict[str, Any] = {}
    exec(compile("def made(x):\n    return x", "gone.py", "exec"), names)
    assert doubt(names["made"]) is not None
