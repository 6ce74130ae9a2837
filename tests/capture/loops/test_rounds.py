"""How often a script comes to a line, told from its source and the values of its names."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent, indent
from types import FrameType
from typing import Any

import numpy as np
import pytest

from pipediag.capture.loops.source import rounds_around


class Folds:
    """As scikit-learn's are."""

    def __init__(self, n_splits: int) -> None:
        self.n_splits = n_splits

    def split(self, rows: Any) -> Iterator[tuple[int, int]]:
        return iter([(number, number) for number in range(self.n_splits)])


def rounds_at_trains(tmp_path: Path, source: str, **names: Any) -> int | None:
    """What is told at the first call of `trains()` in that script."""
    script = tmp_path / "train.py"
    script.write_text(dedent(source), encoding="utf-8")
    told: list[int | None] = []

    def trains() -> None:
        if not told:
            told.append(rounds_around(_within(sys._getframe(1), str(script))))

    code = compile(script.read_text(encoding="utf-8"), str(script), "exec")
    exec(code, {"trains": trains, "np": np, **names})
    return told[0]


def _within(frame: FrameType | None, file: str) -> Iterator[FrameType]:
    while frame is not None and frame.f_code.co_filename == file:
        yield frame
        frame = frame.f_back


@pytest.mark.parametrize(
    ("loop", "rounds"),
    [
        ("for _ in range(7):", 7),
        ("for _ in range(1, 8, 2):", 4),
        ("for epoch in range(EPOCHS):", 5),
        ("for epoch in range(START, EPOCHS + 1):", 4),
        ("for epoch in range(2 * EPOCHS - len(RATES) // 3):", 9),
        ("for epoch in range(arguments.epochs):", 6),
        ("for epoch in range(int(config['epochs'])):", 8),
        ("for rate in RATES:", 3),
        ("for rate in (0.1, 0.2):", 2),
        ("for rate in [0.1, 0.2, *RATES]:", None),
        ("for number, rate in enumerate(RATES):", 3),
        ("for a, b in zip(RATES, range(2)):", 2),
        ("for key, value in config.items():", 1),
        ("for row in np_rows:", 4),
        ("for train, test in folds.split(np_rows):", 3),
        ("for _ in tqdm(range(9)):", 9),
        ("for _ in trange(9, desc='epochs'):", 9),
        ("for one in (rate for rate in RATES):", None),
        ("for one in map(str, RATES):", None),
        ("for one in endless:", None),
        ("while True:", None),
        ("if True:", 1),
        ("with context:", 1),
    ],
)
def test_the_size_of_what_a_loop_goes_through(
    tmp_path: Path, loop: str, rounds: int | None
) -> None:
    class Context:
        def __enter__(self) -> None: ...
        def __exit__(self, *_: object) -> None: ...

    names = {
        "EPOCHS": 5,
        "START": 2,
        "RATES": [0.1, 0.2, 0.3],
        "arguments": Namespace(epochs=6),
        "config": {"epochs": 8},
        "np_rows": np.zeros((4, 2)),
        "folds": Folds(3),
        "tqdm": lambda rows: rows,
        "trange": lambda count, desc: range(count),
        "endless": iter(range(3)),
        "context": Context(),
    }
    ends = "break" if loop.startswith(("for", "while")) else "pass"
    source = f"{loop}\n    trains()\n    {ends}\n"

    assert rounds_at_trains(tmp_path, source, **names) == rounds


NESTED = """
def train(epochs):
    for epoch in range(epochs):
        for batch in dataset():
            pass

def dataset():
    return [trains()]

for fold in range(3):
    unrelated = [one for one in range(9)]
    train(4)
"""


def test_loops_around_multiply_through_the_functions_that_are_called(tmp_path: Path) -> None:
    assert rounds_at_trains(tmp_path, NESTED) == 12


def test_the_loop_whose_header_asks_is_none_of_them(tmp_path: Path) -> None:
    source = """
    for epoch in range(4):
        for batch in trains() or []:
            pass
    """

    assert rounds_at_trains(tmp_path, source) == 4


def test_what_follows_a_loop_is_not_in_it(tmp_path: Path) -> None:
    source = """
    for epoch in range(4):
        pass
    else:
        trains()
    """

    assert rounds_at_trains(tmp_path, source) == 1


def test_a_function_that_is_made_in_a_loop_is_called_elsewhere(tmp_path: Path) -> None:
    source = """
    for number in range(4):
        def step():
            trains()
    step()
    """

    assert rounds_at_trains(tmp_path, source) == 1


def test_a_comprehension_is_a_loop(tmp_path: Path) -> None:
    assert rounds_at_trains(tmp_path, "scores = [trains() for rate in (1, 2, 3)]") == 3


def test_how_many_rounds_a_condition_leaves_is_unknown(tmp_path: Path) -> None:
    assert rounds_at_trains(tmp_path, "scores = [trains() for rate in (1, 2, 3) if rate]") is None


def test_a_property_of_the_scripts_own_is_not_called(tmp_path: Path) -> None:
    source = """
    class Settings:
        @property
        def epochs(self):
            asked.append(1)
            return 3

    settings = Settings()
    for epoch in range(settings.epochs):
        trains()
    """
    asked: list[int] = []

    assert rounds_at_trains(tmp_path, source, asked=asked) is None
    assert asked == [1]


def test_a_range_of_the_scripts_own_is_not_pythons(tmp_path: Path) -> None:
    source = "def range(count):\n    return [1]\n\nfor epoch in range(5):\n    trains()\n"

    assert rounds_at_trains(tmp_path, source) is None


def test_source_that_is_gone_tells_nothing(tmp_path: Path) -> None:
    script = str(tmp_path / "gone.py")
    told: list[int | None] = []
    code = compile(f"for _ in range(3):\n{indent('trains()', '    ')}", script, "exec")

    def trains() -> None:
        told.append(rounds_around(_within(sys._getframe(1), script)))

    exec(code, {"trains": trains})
    assert told == [None] * 3
