"""Python called for stacks of elements: they stay the same, or the change is refused."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.tensorflow

SCRIPT = r"""
    import json
    import numpy as np
    import tensorflow as tf
    from pipediag.capture.replay.rebuilding import rebuild
    from pipediag.capture.replay import NotReplayableError
    from pipediag.capture.replay.rebuilding import verify
    from pipediag.capture.replay.graph import Graph
    from pipediag.session.edits import Move, Replace

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

    def images():
        for index in range(COUNT):  # the first stack, which a check reads, is of one size
            yield np.zeros((2, 3 if index < 100 else 4))

    def once(*arguments):
        yield tuple(f"{type(one).__name__} {one}" for one in arguments)

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
        "two lengths": (images, single("float64", None, None)),
    }
    results = {}
    for name, (generator, signature) in CASES.items():
        dataset = tf.data.Dataset.from_generator(generator, output_signature=signature)
        (op,) = [call.operation.id for _, call in Graph(dataset).calls()]
        change = Replace(op, "in_chunks", {"elements": 64})
        try:
            verify(dataset, [change], "equal")
            # TensorFlow keeps no copy of an array that is refilled before it is read.
            own = map(np.full, COUNT * [3], range(COUNT)) if name == "refilled" else dataset
            same = [
                tf.nest.map_structure(lambda a, b: bool(np.array_equal(a, b)), old, new)
                for old, new in zip(own, rebuild(dataset, [change]), strict=True)
            ]
            results[name] = [len(same), all(tf.nest.flatten(same))]
        except NotReplayableError as error:
            results[name] = str(error)

    spec = (single("string"), single("string"))
    given = tf.data.Dataset.from_generator(once, output_signature=spec, args=(3, "a"))
    (op,) = [call.operation.id for _, call in Graph(given).calls()]
    stacks = [Replace(op, "in_chunks", {"elements": 64})]
    verify(given, stacks, "equal")
    seen = [[part.numpy().decode() for part in one] for one in rebuild(given, stacks)]
    results["arguments"] = [len(seen), seen == [["int32 3", "bytes b'a'"]]]

    untold = tf.data.Dataset.from_generator(numbers, output_types=tf.int64)
    (op,) = [call.operation.id for _, call in Graph(untold).calls()]
    try:
        verify(untold, [Replace(op, "in_chunks", {"elements": 64})], "equal")
    except NotReplayableError as error:
        results["types alone"] = str(error)

    ROWS = 70
    numbered_rows = np.arange(ROWS)
    lines = [json.dumps({"n": n, "of": [n, n + 1, n + 2], "text": "w" * (n % 5)})
             for n in range(ROWS)]

    def arrays(line, number):
        record = json.loads(line)
        text = record["text"].encode() + b"\0"
        return np.array(record["of"]), np.float32(number / 3), text, record["text"]

    def with_arrays(line, number):
        types = [tf.int64, tf.float32, tf.string, tf.string]
        of, third, text, again = tf.numpy_function(arrays, [line, number], types)
        of.set_shape([3])
        for each in (third, text, again):
            each.set_shape(())
        return {"of": of, "third": third}, (text, again)

    def tensors(line):
        record = json.loads(line.numpy())
        return tf.constant(record["of"], tf.int32), record["n"] / 2, record["text"]

    def with_tensors(line, number):
        of, half, text = tf.py_function(
            func=tensors, inp=[line], Tout=[tf.int32, tf.float32, tf.string]
        )
        of = tf.ensure_shape(of, (3,))
        half.set_shape(tf.TensorShape([]))
        return of * 2, tf.cast(number, tf.float32) + half, text

    def alone(line, _):
        return tf.numpy_function(lambda text: np.int64(len(text)), [line], tf.int64)

    def parts(line, number):
        part = tf.numpy_function(lambda n: np.zeros(n % 3), [number], tf.double)
        part.set_shape([None])
        return part, number

    def drawn(line, _):
        return tf.numpy_function(lambda text: np.random.rand(3), [line], tf.double)

    seen = {}

    def known(line):
        return np.int64(seen.setdefault(line, len(seen)))

    def numbered(line, _):
        return tf.numpy_function(known, [line], tf.int64)

    def row_of(line, number):
        (of,) = tf.numpy_function(lambda n: [np.array([n, n])], [number], [tf.int64])
        return tf.reshape(of, [2])

    MAPS = {
        "arrays": with_arrays,
        "tensors": with_tensors,
        "one result": alone,
        "lengths": parts,
        "drawn": drawn,
        "state": numbered,
        "shape of one row": row_of,
    }
    for name, function in MAPS.items():
        ds = tf.data.Dataset.from_tensor_slices((lines, numbered_rows)).map(function)
        dataset = ds.shuffle(9, seed=3, reshuffle_each_iteration=False).batch(16)
        if name == "lengths":
            dataset = ds.padded_batch(16)
        ids = {call.operation.kind: call.operation.id for _, call in Graph(dataset).calls()}
        change = Move(ids["map"], ids.get("batch") or ids["padded_batch"])
        try:
            verify(dataset, [change], "equal")
            moved = rebuild(dataset, [change])
            same = [
                tf.nest.map_structure(lambda a, b: bool(np.array_equal(a, b)), old, new)
                for old, new in zip(dataset, moved, strict=True)
            ]
            shapes = [spec.shape.as_list() for spec in tf.nest.flatten(moved.element_spec)
                      if spec.shape.rank is not None]
            results[f"map: {name}"] = [len(same), all(tf.nest.flatten(same)), shapes]
        except NotReplayableError as error:
            results[f"map: {name}"] = str(error)

    def halved(line, number):
        return {"half": tf.cast(number, tf.float32) / 2, "text": line}, number

    def even(parts, number):
        return number % 2 == 0

    def small(row):
        return tf.reduce_all(row < 50)

    PIPELINES = {
        "map and filter": lambda ds: ds.map(halved).filter(even),
        "one part": lambda ds: ds.map(lambda line, number: number * 2).filter(lambda n: n < 9),
        "python": lambda ds: ds.map(with_arrays),
        "filter that reduces": lambda ds: ds.map(lambda line, number: number).filter(small),
        "constant": lambda ds: ds.map(lambda line, number: (number, 1.0)),
        "lengths": lambda _: tf.data.Dataset.from_generator(
            lengths, output_signature=CASES["lengths"][1]
        ).map(lambda row, number: row[:2]),
    }
    for name, make in PIPELINES.items():
        ds = make(tf.data.Dataset.from_tensor_slices((lines, numbered_rows)))
        dataset = ds.shuffle(9, seed=3, reshuffle_each_iteration=False).batch(8)
        of = [call.operation for _, call in Graph(dataset).calls()]
        own = [one.id for one in of if one.kind in ("map", "filter")]
        changed = [Replace(one, "in_batches",
                           {"elements": 64, "first": one is own[0], "last": one is own[-1]})
                   for one in own]
        try:
            verify(dataset, changed, "equal")
            apart = rebuild(dataset, changed)
            same = [
                tf.nest.map_structure(lambda a, b: bool(np.array_equal(a, b)), old, new)
                for old, new in zip(dataset, apart, strict=True)
            ]
            specs = apart.element_spec == dataset.element_spec
            results[f"apart: {name}"] = [len(same), all(tf.nest.flatten(same)), specs]
        except NotReplayableError as error:
            results[f"apart: {name}"] = str(error)
    print("RESULTS", json.dumps(results))
"""


@pytest.mark.parametrize("name", ["nested", "one", "lengths", "texts", "refilled"])
def test_elements_and_their_order_stay_the_same(results: dict[str, Any], name: str) -> None:
    assert results[name] == [150, True]


def test_what_can_not_be_stacked_is_refused(results: dict[str, Any]) -> None:
    assert isinstance(results["two lengths"], str)


def test_a_generator_gets_its_arguments_as_tensorflow_gives_them(results: dict[str, Any]) -> None:
    assert results["arguments"] == [1, True]


def test_elements_whose_shapes_are_not_given_need_a_signature(results: dict[str, Any]) -> None:
    assert "output_signature" in results["types alone"]
    assert "output_signature" not in results["two lengths"]


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("arrays", [[None, 3], [None], [None], [None]]),
        ("tensors", [[None, 3], [None]]),
        ("one result", []),
    ],
)
def test_batches_stay_the_same_with_python_for_each_row(
    results: dict[str, Any], name: str, shapes: list[Any]
) -> None:
    assert results[f"map: {name}"] == [5, True, shapes]


@pytest.mark.parametrize("name", ["lengths", "drawn", "state", "shape of one row"])
def test_what_may_not_give_the_same_is_refused(results: dict[str, Any], name: str) -> None:
    assert isinstance(results[f"map: {name}"], str)


@pytest.mark.parametrize(
    ("name", "batches"), [("map and filter", 5), ("one part", 1), ("python", 9)]
)
def test_batches_of_their_own_give_the_same_elements(
    results: dict[str, Any], name: str, batches: int
) -> None:
    assert results[f"apart: {name}"] == [batches, True, True]


@pytest.mark.parametrize("name", ["filter that reduces", "constant", "lengths"])
def test_batches_that_a_function_does_not_take_are_refused(
    results: dict[str, Any], name: str
) -> None:
    assert isinstance(results[f"apart: {name}"], str)
