"""The function that takes over a generator's elements in stacks, written into the user's file."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from pipediag.patching.chunked_generators import source_of
from pipediag.session.edits import Insert, Replace
from tests.patching.scripts import op, patched, refused

HEAD = "import numpy as np\nimport tensorflow as tf\n\nDATA = tf.data.Dataset\n"
FIT = "ds = ds.batch(8)\nmodel.fit(ds)\n"
CHUNKS = Replace("from_generator", "in_chunks", {"elements": 64})


def script(call: str, head: str = HEAD) -> str:
    return f"{head}\ndef rows():\n    yield 1\n\n\nds = {call}\n{FIT}"


def after(text: str) -> str:
    return patched(text, [op(text, "from_generator")], CHUNKS)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            "DATA.from_generator(rows, output_signature=sig)",
            "in_chunks(rows, output_signature=sig)",
        ),
        (
            "DATA.from_generator(lambda: rows(), output_signature=(a, b))",
            "in_chunks(lambda: rows(), output_signature=(a, b))",
        ),
        (
            "DATA.from_generator(rows, tf.int64, ())",
            "in_chunks(rows, DATA.from_generator(rows, tf.int64, ()).element_spec)",
        ),
        (
            "DATA.from_generator(generator=rows, output_signature=sig).shuffle(9)",
            "in_chunks(generator=rows, output_signature=sig).shuffle(9)",
        ),
    ],
)
def test_the_function_is_called_in_place_of_from_generator(call: str, expected: str) -> None:
    text = after(script(call))

    assert f"ds = {expected}\n" in text
    module = ast.parse(text)
    assert [n.name for n in module.body if isinstance(n, ast.FunctionDef)] == ["in_chunks", "rows"]
    assert text.count("import itertools\n") == 1
    assert text.count("import numpy as np\n") == 1


def test_a_cache_behind_the_same_call_is_written_too() -> None:
    text = script("DATA.from_generator(rows, output_signature=sig)")
    ops = [op(text, "from_generator")]
    cache = Insert("from_generator", "cache", {"elements": 9})

    assert "ds = in_chunks(rows, output_signature=sig).cache()\n" in patched(
        text, ops, CHUNKS, cache
    )


def test_names_that_the_file_uses_are_left_alone() -> None:
    call = "DATA.from_generator(rows, output_signature=in_chunks)"

    assert "ds = dataset_in_chunks(rows, output_signature=in_chunks)\n" in after(script(call))


@pytest.mark.parametrize(
    ("call", "head"),
    [
        ("DATA.from_generator(rows, output_signature=sig, args=(3,))", HEAD),
        ("DATA.from_generator(*given)", HEAD),
        ("DATA.from_generator(Rows('x'), tf.int64)", HEAD),
        ("DATA.from_generator(rows, output_signature=sig)", HEAD.replace("np", "n") + "np = 3\n"),
        ("DATA.from_generator(rows, output_signature=sig)", "DATA = data()\n"),
    ],
)
def test_what_can_not_be_written_is_refused(call: str, head: str) -> None:
    text = script(call, head)

    assert refused(text, [op(text, "from_generator")], CHUNKS)


@pytest.mark.parametrize("parameters", [{}, {"ragged": True}])
def test_both_functions_stand_alone(parameters: dict[str, Any]) -> None:
    names: dict[str, Any] = {}
    exec("\n".join(source_of(parameters)), names)

    assert callable(names["in_chunks"])
