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
