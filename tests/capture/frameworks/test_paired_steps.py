"""For which batches a step is tried as a function, and what else is read of the script."""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path

import pytest

from pipediag.capture.frameworks.tensorflow.paired_steps import for_any_batch, other_files

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
    assert not any("class NodeVisitor" in one or "test_the_scripts" in one for one in found)
