"""Slow calls that are written another way: the same elements, or a refusal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pipediag.patching.python_calls import drawn_from_kept_sums, rewritten_call
from pipediag.patching.source import NotPatchableError, Source
from tests.patching.scripts import line_of

SCRIPT = """\
import numpy as np

ITEMS = np.arange(50)[::-1].copy()


def draws(weights, rng, count):
    for row in range(9):
        CHANGE
        CALL
        yield drawn
"""
CALLS = [
    "drawn = rng.choice(len(weights), 4, p=weights)",
    "drawn = rng.choice(count, size=(2, 3), replace=True, p=weights)",
    "drawn = rng.choice(count, p=weights)",
    "drawn = rng.choice(count, 5, True, weights)",
    "drawn = rng.choice(np.arange(50) * 3, 5, p=weights)",
    "drawn = rng.choice(ITEMS, 5, p=weights)",
    "drawn = rng.choice(count, 4, p=weights.copy())",
    "drawn = rng.choice(count, 4, p=list(weights))",
    "drawn = [rng.choice(count, p=weights) for _ in range(3)]",
]
CHANGES = ["pass", "weights[row] = 0; weights /= weights.sum()", "weights = weights[::-1]"]


def script(call: str, change: str = "pass") -> str:
    return SCRIPT.replace("CHANGE", change).replace("CALL", call)


def rewritten(text: str, needle: str = ".choice(") -> str:
    (line,) = [n for n, one in enumerate(text.splitlines(), 1) if needle in one]
    source = Source.of("train.py", text.encode())
    return source.changed(drawn_from_kept_sums(source, line)).text


WEIGHTS = np.random.default_rng(3).random(50)
WEIGHTS /= WEIGHTS.sum()


def drawn_by(text: str, rng: Any, *, weighted: bool = True) -> list[Any]:
    names: dict[str, Any] = {}
    exec(compile(text, "train.py", "exec"), names)
    return list(names["draws"](WEIGHTS.copy() if weighted else None, rng, 50))


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("call", CALLS)
def test_the_same_numbers_are_drawn(call: str, change: str) -> None:
    text = script(call, change)
    after = rewritten(text)
    assert after.count("weighted_choice(") == 2
    for make in (np.random.default_rng, np.random.RandomState):
        for own, other in zip(drawn_by(text, make(7)), drawn_by(after, make(7)), strict=True):
            np.testing.assert_array_equal(own, other)


@pytest.mark.parametrize(
    "change",
    [
        "weights[row] = -1",
        "weights[row] = np.nan",
        "weights[row] += 1",
        "weights = weights[row:] / weights[row:].sum()",
    ],
)
def test_weights_that_numpy_refuses_are_refused(change: str) -> None:
    text = script(CALLS[1], change)
    for each in (text, rewritten(text)):
        with pytest.raises(ValueError, match=r"(?i)probabilities|a'? and '?p"):
            drawn_by(each, np.random.default_rng(7))


def test_without_weights_the_generator_draws_itself() -> None:
    text = script(CALLS[1])
    own, other = (
        drawn_by(each, np.random.default_rng(7), weighted=False) for each in (text, rewritten(text))
    )
    for one, two in zip(own, other, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    "call",
    [
        "drawn = rng.choice(count, 4)",
        "drawn = rng.choice(count, 4, replace=False, p=weights)",
        "drawn = rng.choice(['a', 'b'], 4, p=weights)",
        "drawn = rng.choice(count, 4, p=weights, axis=0)",
        "drawn = [rng.choice(count, p=weights), rng.choice(count, p=weights)]",
        "drawn = choice(count, 4, p=weights)",
        "drawn = rng.choice(*given)",
    ],
)
def test_other_draws_are_refused(call: str) -> None:
    with pytest.raises(NotPatchableError):
        rewritten(script(call), "drawn = ")


def test_two_draws_share_the_function() -> None:
    other = "rng.choice(9, p=weights[:9] / sum(weights[:9]))"
    text = script(f"drawn = rng.choice(count, 4, p=weights)\n        {other}")
    lines = [n for n, one in enumerate(text.splitlines(), 1) if ".choice(" in one]
    source = Source.of("train.py", text.encode())
    for line in lines:
        source = source.changed(drawn_from_kept_sums(source, line))
    assert (len(lines), source.text.count("weighted_choice(")) == (2, 3)
    make = np.random.default_rng
    for own, other in zip(drawn_by(text, make(7)), drawn_by(source.text, make(7)), strict=True):
        np.testing.assert_array_equal(own, other)


FRAME = """\
import pandas as pd


def tqdm(rows, total):
    return rows


KEY = "user"
NAMES = ["user", "price"]
FRAME = pd.DataFrame({"user": [1, 2], "price": [0.5, 2.0], "place": ["a", "b"]})


def rows(frame):
    LOOP
        USE
"""


def in_a_loop(loop: str, use: str) -> str:
    return FRAME.replace("LOOP", loop).replace("USE", use)


@pytest.mark.parametrize(
    ("loop", "use"),
    [
        ("for _, row in frame.iterrows():", 'yield row["user"], row["place"]'),
        ("for _, row in frame[::-1].iterrows():", "yield row.user, row.place"),
        ("for at, row in frame.iterrows():", 'yield at, row.get("price"), len(row["place"])'),
        ("for _ in range(2):", 'yield [row["user"] for _, row in frame.iterrows()]'),
        ("for _, row in tqdm(frame.iterrows(), total=2):", 'yield row["user"]'),
        ("for _, row in frame.iterrows():", "yield [row[name] for name in NAMES]"),
        ("for _, row in frame.iterrows():", "yield {name: row[name] for name in frame.columns}"),
        ("for _, row in frame.iterrows():", "yield row[KEY]"),
    ],
)
def test_rows_of_a_frame_come_as_dictionaries(loop: str, use: str) -> None:
    text = in_a_loop(loop, use)
    source = Source.of("train.py", text.encode())
    line = next(n for n, one in enumerate(text.splitlines(), 1) if "iterrows" in one)
    after = source.changed(rewritten_call(source, line)).text
    assert "iterrows" not in after

    def elements(code: str) -> list[Any]:
        names: dict[str, Any] = {}
        exec(compile(code, "train.py", "exec"), names)
        return list(names["rows"](names["FRAME"]))

    assert elements(after) == elements(text)


@pytest.mark.parametrize(
    ("loop", "use"),
    [
        ("for _, row in frame.iterrows():", "yield row.values"),
        ("for _, row in frame.iterrows():", "yield row.astype(str)"),
        ("for _, row in frame.iterrows():", "yield parse(row)"),
        ("for _, row in frame.iterrows():", "yield row[:2]"),
        ("for _, row in frame.iterrows():", "yield row[NAMES].sum()"),
        ("for _, row in frame.iterrows():", "yield [row[one] for one in [NAMES]]"),
        ("for _, row in frame.iterrows():", "row.user = 3"),
        ("for pair in frame.iterrows():", "yield pair[1]"),
        ("for number, (at, row) in enumerate(frame.iterrows()):", 'yield number, row["user"]'),
        ("for at, row in frame.sample(frac=1).iterrows():", "yield at, row.user"),
    ],
)
def test_other_uses_of_a_row_are_refused(loop: str, use: str) -> None:
    text = in_a_loop(loop, use)
    with pytest.raises(NotPatchableError) as refused:
        rewritten_call(Source.of("train.py", text.encode()), line_of(text, ".iterrows("))
    assert "choice" not in str(refused.value)
