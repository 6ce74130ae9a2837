"""The names of TensorFlow's own things, held against TensorFlow where it is installed."""

from __future__ import annotations

import pytest

from pipediag.tensorflow_names import (
    BATCHING,
    DEFAULT_SWITCHES,
    LOOKUP,
    PREFETCH_SWITCHES,
    PYTHON_OPERATIONS,
    READERS,
    RUNS_A_FUNCTION,
    VARIABLES,
    draws_random,
    random_operations,
    works_ahead,
)


@pytest.mark.parametrize(
    "iterator",
    ["Prefetch", "MapAndBatch", "ParallelMapV2", "ParallelBatch", "ParallelInterleaveV4"],
)
def test_iterators_with_threads_of_their_own_work_ahead(iterator: str) -> None:
    assert works_ahead(iterator)


@pytest.mark.parametrize("iterator", ["Map", "BatchV2", "Shuffle", "MemoryCacheImpl", "FlatMap"])
def test_others_make_an_element_when_it_is_asked_for(iterator: str) -> None:
    assert not works_ahead(iterator)


def test_what_switches_prefetching_off_is_one_of_the_defaults() -> None:
    assert set(PREFETCH_SWITCHES) < set(DEFAULT_SWITCHES)


@pytest.mark.parametrize(
    "operations",
    [
        ["RandomUniform"],
        ["Mul", "TruncatedNormal"],
        ["StatefulRandomBinomial"],
        ["StatefulStandardNormalV2"],
        ["StatefulUniformFullInt"],
        ["SampleDistortedBoundingBoxV2"],
        ["StatelessRandomUniformV2", "AssignAddVariableOp"],
    ],
)
def test_what_draws_gives_another_result_on_each_call(operations: list[str]) -> None:
    assert draws_random(operations)


@pytest.mark.parametrize(
    "operations",
    [[], ["Mul"], ["StatelessRandomUniformV2"], ["ReadVariableOp"], ["StatelessTruncatedNormalV2"]],
)
def test_a_seed_that_came_with_the_element_gives_the_same(operations: list[str]) -> None:
    assert not draws_random(operations)


def test_operations_that_draw_are_named_in_order() -> None:
    assert random_operations(["RngSkip", "Mul", "RandomUniform"]) == ["RandomUniform", "RngSkip"]


@pytest.mark.tensorflow
def test_tensorflow_has_all_of_them() -> None:
    tf = pytest.importorskip("tensorflow")
    from tensorflow.python.framework import op_def_registry

    missing = {
        name for name in PYTHON_OPERATIONS | LOOKUP | VARIABLES if op_def_registry.get(name) is None
    }
    assert not missing
    assert all(hasattr(tf.data.Dataset, kind) for kind in (*BATCHING, *RUNS_A_FUNCTION))
    assert all(hasattr(tf.data, name) or hasattr(tf.data.experimental, name) for name in READERS)
