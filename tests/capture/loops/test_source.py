"""What the source around a loop tells: that it only reads, and its rounds."""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from textwrap import dedent
from types import FrameType
from typing import Any

import numpy as np
import pytest

from pipediag.capture import callsites
from pipediag.capture.callsites import call_site, consuming_frames, frames
from pipediag.capture.loops.registry import most_taken, only_reads, rounds_around


class ComeHereError(Exception):
    """The script has come to the line that is asked about."""


def told_at_trains(
    tmp_path: Path, source: str, tells: Callable[..., Any], *, is_there: bool = True, **names: Any
) -> Any:
    """Return what is said where a script calls `trains()` for the first time, or reads `data`."""
    script, told = tmp_path / "train.py", list[Any]()
    source = dedent(source)
    if is_there:
        script.write_text(source, encoding="utf-8")

    def trains(*_: Any, **__: Any) -> None:
        # Those of the test, which stand behind, are no script's.
        told.append(tells(one for one in frames() if one.f_code.co_filename == str(script)))
        raise ComeHereError

    data = type("Data", (), {"__iter__": trains})()
    with pytest.raises(ComeHereError):
        exec(compile(source, str(script), "exec"), {"trains": trains, "data": data, **names})
    return told[0]


READS = [
    "total = len(list(data))",
    "total = sum(1 for _ in data)",
    "labels = np.concatenate([y.numpy() for y in data])",
    "held = {key: value for key, value in data}",
    "total = len(\n    list(\n        data\n    )\n)",
    "for batch in data:\n    total += len(batch)\n    seen.append(batch.numpy())",
    "for batch in data:\n    pass",
]
EVALUATES = [
    "for batch in data:\n    total += model(batch)",
    "scores = [model(batch) for batch in data]",
    "for batch in list(data):\n    model.predict(batch)",
    "scores = {key: metric.update_state(key) for key, _ in data}",
    "it = iter(data)",
]


@pytest.mark.parametrize("source", [*READS, *EVALUATES])
def test_what_calls_no_model_for_a_batch_reads(tmp_path: Path, source: str) -> None:
    names = {"np": Namespace(concatenate=list), "total": 0, "seen": []}
    assert told_at_trains(tmp_path, source, only_reads, **names) is (source in READS)


def test_source_that_is_gone_tells_nothing(tmp_path: Path) -> None:
    asked = partial(told_at_trains, tmp_path, is_there=False)
    assert asked("len(list(data))", only_reads) is False
    assert asked("for _ in range(3):\n    trains()", rounds_around) is None


@pytest.mark.parametrize(
    ("loop", "rounds"),
    [
        ("for _ in range(7):", 7),
        ("for _ in range(1, 8, 2):", 4),
        ("for epoch in range(EPOCHS):", 5),
        ("for epoch in range(START, EPOCHS + 1):", 4),
        ("for epoch in range(2 * EPOCHS - len(RATES) // 3):", 9),
        ("for epoch in range(arguments.epochs):", 6),
        ("for epoch in range(config['epochs']):", 8),
        ("for rate in RATES:", 3),
        ("for rate in (0.1, 0.2):", 2),
        ("for rate in [0.1, 0.2, *RATES]:", None),
        ("for number, rate in enumerate(RATES):", 3),
        ("for _ in tqdm(range(9)):", 9),
        ("for _ in trange(9):", 9),
        ("for _ in progress.trange(1, 9):", 8),
        ("for one, rate in zip(range(5), RATES):", 3),
        ("for one in zip(endless, RATES):", None),
        ("for _ in range(int(3.0)):", 3),
        ("for _ in range(int(EPOCHS / 2)):", 2),
        ("for _ in range(math.ceil(0.5 * EPOCHS)):", 3),
        ("for _ in range(floor(EPOCHS / 2)):", 2),
        ("for _ in range(ceil(EPOCHS / 2)):", None),
        ("for _ in range(int(1e30)):", None),
        ("for _ in range(len(rows) // 2):", 4),
        ("for _ in range(rows.shape[0] // EPOCHS):", 1),
        ("for _ in range(arguments.shape[0]):", None),
        ("for one in map(str, RATES):", None),
        ("for one in endless:", None),
        ("while True:", None),
        ("if True:", 1),
    ],
)
def test_the_size_of_what_a_loop_goes_through(
    tmp_path: Path, loop: str, rounds: int | None
) -> None:
    names = {
        "EPOCHS": 5,
        "START": 2,
        "RATES": [0.1, 0.2, 0.3],
        "arguments": Namespace(epochs=6, shape=[6]),
        "config": {"epochs": 8},
        "tqdm": lambda rows: rows,
        "trange": range,
        "progress": Namespace(trange=range),
        "math": math,
        "floor": math.floor,
        "ceil": lambda _: 4,
        "rows": np.zeros((8, 2)),
        "endless": iter(range(3)),
    }
    source = f"{loop}\n    trains()\n"
    assert told_at_trains(tmp_path, source, rounds_around, **names) == rounds


@pytest.mark.parametrize(
    ("limit", "counter", "rounds"),
    [
        (3, "count_of_steps", None),
        (None, "count_of_steps", 6),
        (3, "step", 6),
        (3, "set_anew_step", 6),
        (3, "waits", 6),
    ],
)
def test_rounds_that_a_number_of_steps_ends_are_not_known(
    tmp_path: Path, limit: int | None, counter: str, rounds: int | None
) -> None:
    """Unless these are the steps of one round, or no limit was given."""
    names = {"given": Namespace(limit=limit), "EPOCHS": 6, "step": 0, counter: 0}
    source = (
        "for step in range(EPOCHS):\n    set_anew_step = 0\n    trains()\n"
        f"    if given.limit and {counter} >= given.limit:\n        break\n"
    )
    assert told_at_trains(tmp_path, source, rounds_around, **names) == rounds


@pytest.mark.parametrize(
    ("arguments", "rounds"),
    [
        ("x, epochs=count", None),
        ("x,\n        epochs=2 * stage[0]", None),
        ("x, epochs=EPOCHS", 2),
        ("x, epochs=count, initial_epoch=count - 1", 2),
        ("rate, verbose=count", 2),
    ],
)
def test_rounds_that_have_each_their_own_epochs_are_not_known(
    tmp_path: Path, arguments: str, rounds: int | None
) -> None:
    """Unless each goes on where the one before has ended."""
    source = f"for count, *stage in [(2, 2), (5, 5)]:\n    trains(\n        {arguments}\n    )\n"
    names = {"x": None, "rate": 0.1, "EPOCHS": 3}
    assert told_at_trains(tmp_path, source, rounds_around, **names) == rounds


TAKEN = [
    ("for step, batch in enumerate(data):\n    if step >= 100:\n        break", 101),
    ("for step, batch in enumerate(data):\n    if step == MOST - 1:\n        break", 50),
    ("for step, batch in enumerate(data, 1):\n    if MOST and step >= MOST:\n        break", 50),
    ("for step, (x, y) in enumerate(data):\n    if step + 1 > MOST:\n        break", 51),
    ("for step, _ in enumerate(data):\n    if MOST > 0 and step >= MOST - 1:\n        break", 50),
    ("for i, _ in enumerate(data):\n    if MOST is not None and i == MOST:\n        break", 51),
    ("for batch in data:\n    done += 1\n    if done == MOST:\n        break", 47),
    ("for batch in data:\n    if done == MOST:\n        break\n    done += 1", 48),
    ("for step, batch in zip(range(MOST), data):\n    pass", 50),
    ("for batch in islice(data, MOST):\n    pass", 50),
    ("it = iter(data)\nfor _ in range(200):\n    loss += step(next(it))", 200),
    ("for _ in range(3):\n    it = iter(data)\n    for _ in range(MOST):\n        next(it)", 50),
    ("it = iter(data)\nfirst = next(it)\nfor _ in range(MOST):\n    next(it)", 51),
]
UNBOUNDED = [
    "for step, batch in enumerate(data):\n    if batch >= 100:\n        break",
    "for step, batch in enumerate(data):\n    if step >= unknown:\n        break",
    "for step, batch in enumerate(data):\n    if short and step >= 9:\n        break",
    # 0 stands for no limit.
    "for step, batch in enumerate(data):\n    if none and step >= none:\n        break",
    "for step, batch in enumerate(data):\n    if none > 0 and step >= none:\n        break",
    # Conditions that have to do with the limit by their names alone.
    "for step, batch in enumerate(data):\n    if LET_MOST and step >= MOST:\n        break",
    "for step, batch in enumerate(data):\n    if done < MOSTLY and step >= MOST:\n        break",
    "for step, batch in enumerate(data):\n    if step >= 100:\n        log()",
    "for step, batch in enumerate(data):\n    if step % 100 == 99:\n        break",
    "for batch in data:\n    if done >= MOST:\n        break",  # which nothing counts
    # A number in a row, which begins anew.
    "for _ in data:\n    done += 1\n    if x:\n        done = 0\n    if done >= 9:\n        break",
    "for done, batch in enumerate(data):\n    done = 0\n    if done >= 9:\n        break",
    # The outer loop may be that of epochs.
    "it = iter(data)\nfor _ in range(3):\n    for _ in range(MOST):\n        next(it)",
    "it = iter(data)\nwhile True:\n    step(next(it))",
    "it = iter(data)\nfor _ in range(200):\n    step(it)",
    "it = iter(data)\nfor _ in range(200):\n    step(next(it))\nstep(it)",
    "it = iter(data)\nfor _ in range(200):\n    if done:\n        next(it)",
    "it = iter(data)\ndef step():\n    next(it)\nfor _ in range(200):\n    step()",
    "it = iter(data)\nfor _ in range(200):\n    next(it)\nit = iter(data)",
    "it = [iter(data)]",
]


@pytest.mark.parametrize(("source", "most"), [*TAKEN, *((one, None) for one in UNBOUNDED)])
def test_the_batches_that_the_source_takes_of_its_data_at_most(
    tmp_path: Path, source: str, most: int | None
) -> None:
    limits = {"MOST": 50, "none": 0, "LET_MOST": False, "MOSTLY": 1}
    names = {**limits, "done": 3, "short": False, "islice": islice}
    assert told_at_trains(tmp_path, source, most_taken, **names) == most


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
HEADER = "for epoch in range(4):\n    for batch in trains() or []:\n        pass\n"


@pytest.mark.parametrize(
    ("source", "rounds"),
    [
        (NESTED, 12),
        (HEADER, 4),
        ("scores = [trains() for rate in (1, 2, 3)]", None),
        ("for epoch in range(4):\n    losses = [len(batch) for batch in data]", 4),
        (
            "for epoch in range(4):\n    losses = {\n        one\n        for one in data\n    }",
            4,
        ),
        ("for epoch in range(4):\n    losses = [x for rate in (1, 2) for x in data]", None),
        ("for epoch in range(4):\n    losses = [list(data) for rate in (1, 2)]", None),
        ("def range(count):\n    return [1]\n\nfor epoch in range(5):\n    trains()\n", None),
        ("step = 1\nfor epoch in range(0, 5, step):\n    step = 0\n    trains()\n", None),
    ],
)
def test_loops_around_multiply_as_far_as_the_source_tells(
    tmp_path: Path, source: str, rounds: int | None
) -> None:
    assert told_at_trains(tmp_path, source, rounds_around) == rounds


LIBRARIES = {
    "keras": "def fit():\n    for epoch in range(9):\n        return trains()\n",
    "keras_tuner": "def search(n):\n    for trial in range(n):\n        return fit()\n",
    "autokeras": "def explore():\n    while True:\n        return fit()\n",
    "IPython": "def run(main):\n    for cell in range(4):\n        return main()\n",
}


@pytest.mark.parametrize(
    ("call", "rounds"), [("fit()", 2), ("search(5)", 10), ("explore()", None), ("trains()", 2)]
)
def test_a_librarys_loops_around_a_fit_count_and_those_around_the_script_do_not(
    tmp_path: Path, call: str, rounds: int | None
) -> None:
    """As KerasTuner's trials do; the epochs of `fit` itself are no rounds."""
    told: list[int | None] = []

    def trains() -> None:
        here = (one for one in frames() if one.f_code.co_filename.startswith(str(tmp_path)))
        told.append(rounds_around(here))

    names: dict[str, Any] = {"trains": trains}
    script = f"def main():\n    for fold in range(2):\n        return {call}\n"
    for package, source in (*LIBRARIES.items(), (None, script)):
        folder = tmp_path / "site-packages" / package if package else tmp_path
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "code.py"
        file.write_text(source, encoding="utf-8")
        exec(compile(source, str(file), "exec"), names)
    names["run"](names["main"])

    assert told == [rounds]


GENERATOR = """
def shown(data):
    for number, batch in enumerate(data):
        yield batch

def repeated(data, times):
    for _ in times:
        yield from data


for epoch in range(4):
    for batch in THROUGH:
        train(batch)
"""


@pytest.mark.parametrize(
    ("through", "expected"),
    [
        ("data", (12, 4)),
        ("shown(data)", (12, 4)),
        ("enumerate(shown(shown(data)))", (12, 4)),
        ("repeated(data, range(5))", (12, 20)),
        ("repeated(data, iter(range(5)))", (12, None)),
    ],
)
def test_a_loop_is_where_a_generator_of_the_scripts_hands_on_its_data(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    through: str,
    expected: tuple[int, int],
) -> None:
    script = str(tmp_path / "train.py")
    monkeypatch.setattr(callsites, "is_users", lambda name: name == script)

    def tells(stack: Iterator[FrameType]) -> tuple[int | None, int | None]:
        site = call_site(consuming_frames())
        return site and site.line, rounds_around(stack)

    assert told_at_trains(tmp_path, GENERATOR.replace("THROUGH", through), tells) == expected


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

    assert told_at_trains(tmp_path, source, rounds_around, asked=asked) is None
    assert asked == [1]
