from __future__ import annotations

import pytest

from pipediag.facts.step import lengths_vary, ranks

PAIR = (
    "(TensorSpec(shape=(None, None), dtype=tf.int32, name=None), "
    "TensorSpec(shape=(None,), dtype=tf.float32, name=None))"
)


@pytest.mark.parametrize(
    ("spec", "varies"),
    [
        (PAIR, True),
        ("TensorSpec(shape=(16, None), dtype=tf.int64, name=None)", True),
        ("TensorSpec(shape=(None, 40), dtype=tf.int32, name=None)", False),
        ("TensorSpec(shape=(None,), dtype=tf.int32, name=None)", False),
        ("TensorSpec(shape=(), dtype=tf.int32, name=None)", False),
        ("TensorSpec(shape=<unknown>, dtype=tf.int32, name=None)", False),
    ],
)
def test_whether_lengths_vary_behind_the_batch(spec: str, varies: bool) -> None:
    assert lengths_vary(spec) == varies


def test_dimensions_of_each_component() -> None:
    assert ranks(PAIR) == [2, 1]
    assert ranks("TensorSpec(shape=(), dtype=tf.int32, name=None)") == [0]
