"""For which batches a step is tried as a function, and what else is read of the script."""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path

import pytest

from pipediag.capture.frameworks.tensorflow.paired_steps import (
    called_again,
    for_any_batch,
)
from pipediag.capture.loops.syntax import other_files
from tests.capture.loops.test_source import told_at_trains

TEXT, IMAGE = (None, None), (None, 28, 28, 1)


@pytest.mark.parametrize(
    ("own", "elements", "expected"),
    [
        ((32, 23), [TEXT, (None,)], [None, None]),
        ((32, 28, 28, 1), [IMAGE, TEXT], [None, 28, 28, 1]),
        ((32, 28, 28, 1), [(32, 28, 28, 1)], [32, 28, 28, 1]),
        ((32, 784), [IMAGE, (None,)], [None, None]),
        ((32, 28, 28, 1), [None], [None] * 4),
        ((32, 28, 28, 1), [], [None] * 4),
        ((32, 20), [(None, 20), TEXT], [None, None]),
        ((), [()], []),
    ],
    ids=[
        "texts", "images", "whole batches", "what is computed of an element", "an unknown rank",
        "no dataset", "one of two parts", "a number",
    ],
)  # fmt: skip
def test_sizes_are_left_out_that_the_dataset_does_not_promise(
    own: tuple[int, ...], elements: list[tuple[int | None, ...] | None], expected: list[int | None]
) -> None:
    assert for_any_batch(own, [own[1:]], elements) == expected


def test_a_size_that_batches_had_otherwise_is_left_out() -> None:
    """Crops of a random size that are as large as the images by chance."""
    assert for_any_batch((8, 28), [(28,), (20,)], [(None, 28)]) == [None, None]


def test_the_scripts_other_files_are_read_and_no_librarys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "schedule_of_test.py"
    module.write_text("beta = 0.1\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module(module.stem)
    try:
        found = [ast.unparse(one) for one in other_files(__file__)]
    finally:
        del sys.modules[module.stem]
    assert "beta = 0.1" in found
    assert not any(
        "class NodeVisitor" in one or "def test_the_scripts_other" in one for one in found
    )


STEPS = "def steps():\n    for x in range(9):\n        trains()\n"


@pytest.mark.parametrize(
    ("call", "again"),
    [
        ("for epoch in range(100):\n    steps()\n", True),
        ("while True:\n    steps()\n", True),
        ("def main():\n    steps()\nfor seed in seeds:\n    main()\n", True),
        ("steps()\n", False),
        ("for run in range(1):\n    steps()\n", False),
    ],
)
def test_a_function_that_is_called_in_a_loop_makes_a_trace_each_time(
    tmp_path: Path, call: str, again: bool
) -> None:
    assert told_at_trains(tmp_path, STEPS + call, called_again, seeds=[1, 2]) is again


def test_a_step_of_the_module_itself_is_made_once(tmp_path: Path) -> None:
    source = "for epoch in range(9):\n    trains()\n"
    assert told_at_trains(tmp_path, source, called_again) is False
