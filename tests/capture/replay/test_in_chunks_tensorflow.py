"""Generators of single elements, handed over in stacks: the same elements, or a refusal."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.capture.conftest import Capturing

pytestmark = pytest.mark.tensorflow

SCRIPT = """
    import json
    import numpy as np
    import tensorflow as tf
    from pipediag.capture.replay import NotReplayableError, rebuild, verify
    from pipediag.capture.replay.graph import Graph
    from pipediag.session.edits import Replace

    COUNT = 150
    table = np.arange(COUNT * 3).reshape(COUNT, 3)
    single = lambda dtype, *shape: tf.TensorSpec(shape, dtype)

    def rows():
        for index in range(COUNT):
            yield {"row": table[index], "text": f"wört{index}"}, (index, [1.5, index])

    def numbers():
        return range(COUNT)

    def lengths():
        for index in range(COUNT):
            yield table[index, : index % 4], index

    def texts():
        for index in range(COUNT):
            yield ["a"] * (index % 3)

    def refilled():
        buffer = np.zeros(3)
        for index in range(COUNT):
            buffer[:] = index
            yield buffer

    def several():
        yield from [np.zeros(3), np.zeros(4)]

    def once(argument):
        yield argument

    CASES = {
        "nested": (
            rows,
            ({"row": single("int32", 3), "text": single("string")},
             (single("float32"), single("float64", 2))),
        ),
        "one": (numbers, single("int64")),
        "lengths": (lengths, (single("int64", None), single("int32"))),
        "texts": (texts, single("string", None)),
        "refilled": (refilled, single("float64", 3)),
        "two lengths": (several, single("float64", None, None)),
    }
    results = {}
    for name, (generator, signature) in CASES.items():
        dataset = tf.data.Dataset.from_generator(generator, output_signature=signature)
        (op,) = [call.operation.id for _, call in Graph(dataset).calls()]
        ragged = any(None in spec.shape for spec in tf.nest.flatten(signature))
        change = Replace(op, "in_chunks", {"elements": 64, **({"ragged": True} if ragged else {})})
        try:
            verify(dataset, [change], "equal")
            same = [
                tf.nest.map_structure(lambda a, b: bool(np.array_equal(a, b)), old, new)
                for old, new in zip(dataset, rebuild(dataset, [change]), strict=True)
            ]
            results[name] = [len(same), all(tf.nest.flatten(same))]
        except NotReplayableError as error:
            results[name] = str(error)

    given = tf.data.Dataset.from_generator(once, output_signature=single("int64"), args=(3,))
    (op,) = [call.operation.id for _, call in Graph(given).calls()]
    try:
        rebuild(given, [Replace(op, "in_chunks", {"elements": 64})])
    except NotReplayableError as error:
        results["arguments"] = str(error)
    print("RESULTS", json.dumps(results))
"""


@pytest.fixture(scope="module")
def results(capturing: Capturing) -> dict[str, Any]:
    run = capturing(SCRIPT)
    (line,) = [text for text in run.stdout.splitlines() if text.startswith("RESULTS ")] or [""]
    assert line, run.stderr
    found: dict[str, Any] = json.loads(line.removeprefix("RESULTS "))
    return found


@pytest.mark.parametrize("name", ["nested", "one", "lengths", "texts", "refilled"])
def test_elements_and_their_order_stay_the_same(results: dict[str, Any], name: str) -> None:
    assert results[name] == [150, True]


@pytest.mark.parametrize("name", ["two lengths", "arguments"])
def test_what_can_not_be_stacked_is_refused(results: dict[str, Any], name: str) -> None:
    assert isinstance(results[name], str)
