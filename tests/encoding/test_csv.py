from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from pipediag.encoding.csv import LONGEST_CELL, TableWriter


def written(value: Any) -> str:
    stream = io.StringIO()
    TableWriter(stream, ["column"]).writerows([[value, "end"]])
    _, [cell, _] = csv.reader(io.StringIO(stream.getvalue()))
    return cell


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "\tword",
        "  =1",
        '"=1',
        "'=1",
        "\n=1",
        "\uff1d1",
    ],
)
def test_a_text_that_would_be_computed_comes_behind_an_apostrophe(text: str) -> None:
    assert written(text).startswith("'")
    assert written(text).endswith(text[-1])


@pytest.mark.parametrize(
    ("value", "cell"),
    [(-1, "-1"), (-2.5, "-2.5"), (1e-7, "1e-07"), (None, ""), (True, "true"), (False, "false")],
)
def test_numbers_and_truth_stay(value: Any, cell: str) -> None:
    assert written(value) == cell


@pytest.mark.parametrize("text", ["map(parse)", 'say "a, b"\nand c', "a=1; b=-2", "", "café"])
def test_other_texts_come_back(text: str) -> None:
    assert written(text) == text


def test_a_carriage_return_begins_no_row() -> None:
    assert written("a\rb") == r"a\x0db"


def test_a_cell_has_an_end() -> None:
    assert len(written("x" * 1_000_000)) == LONGEST_CELL
