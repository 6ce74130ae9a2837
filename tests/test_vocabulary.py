"""The lists of words, TensorFlow's own names, and the oldest TensorFlow."""

from __future__ import annotations

from typing import get_args

import pytest

from pipediag.tensorflow_names import (
    BATCHING,
    LOOKUP,
    PYTHON_OPERATIONS,
    READERS,
    RUNS_A_FUNCTION,
    VARIABLES,
    draws_random,
    is_too_old,
    works_ahead,
)
from pipediag.vocabulary import (
    BY_ITSELF,
    CUT_SHORT,
    SEVERITY_ORDER,
    STATUS_ORDER,
    FindingSeverity,
    FindingStatus,
    ScriptOutcome,
)


@pytest.mark.parametrize(
    ("order", "words"), [(STATUS_ORDER, FindingStatus), (SEVERITY_ORDER, FindingSeverity)]
)
def test_an_order_has_every_word_once(order: tuple[str, ...], words: object) -> None:
    assert sorted(order) == sorted(get_args(words))


def test_no_end_is_both_chosen_and_cut_short() -> None:
    assert not BY_ITSELF & CUT_SHORT
    assert set(get_args(ScriptOutcome)) - BY_ITSELF - CUT_SHORT == {"hung-in-exit"}


AHEAD = ("Prefetch", "MapAndBatch", "ParallelMapV2", "ParallelBatch", "ParallelInterleaveV4")
ASKED = ("Map", "BatchV2", "Shuffle", "MemoryCacheImpl", "FlatMap")


@pytest.mark.parametrize("iterator", [*AHEAD, *ASKED])
def test_iterators_with_threads_of_their_own_work_ahead(iterator: str) -> None:
    assert works_ahead(iterator) == (iterator in AHEAD)


@pytest.mark.parametrize(
    ("operations", "draws"),
    [
        ("RandomUniform", True),
        ("Mul TruncatedNormal", True),
        ("StatefulRandomBinomial", True),
        ("StatefulStandardNormalV2", True),
        ("StatefulUniformFullInt", True),
        ("SampleDistortedBoundingBoxV2", True),
        ("StatelessRandomUniformV2 AssignAddVariableOp", True),
        ("", False),
        ("Mul", False),
        # A seed that came with the element gives the same.
        ("StatelessRandomUniformV2", False),
        ("StatelessTruncatedNormalV2", False),
        ("ReadVariableOp", False),
    ],
)
def test_what_draws_gives_another_result_on_each_call(operations: str, draws: bool) -> None:
    assert draws_random(operations.split()) == draws


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


OLD = ("1.15.5", "2.9.3", "2.12.1", "2.13.0rc1", "2.13.0.dev20230")
NEWER = ("2.14.0", "2.14.0rc0", "2.21.0", "3.0.0", None, "", "unknown", "2", "2.x.1")


@pytest.mark.parametrize("version", [*OLD, *NEWER])
def test_what_is_older_than_the_oldest_is_too_old(version: str | None) -> None:
    assert is_too_old(version) == (version in OLD)
