"""The line that is named behind a bottleneck."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.measures.verdict.culprits import (
    Culprit,
    ShuffleFill,
    input_culprit,
    python_culprit,
    shuffle_fill,
)
from pipediag.measures.verdict.sentences import costs_most
from pipediag.session.loops import Loop
from pipediag.session.model import Host, HotLine, Session
from pipediag.session.pipeline import Operation
from tests.factories import make_host, make_keras, make_loop, make_session
from tests.records import make_breakdown, make_operation, make_pipeline

HOT = make_host(
    hot_python=[HotLine(file="rows.py", line=6, function="rows", percent=80.0, thread="source")]
)


def named(
    op: Operation | None, host: Host | None = HOT, loop: Loop | None = None
) -> Culprit | None:
    pipeline = make_pipeline(ops=[op] if op else [], bottleneck_op_id=op.id if op else None)
    return input_culprit(pipeline, loop, host)


def fitted(**keras: Any) -> Loop:
    return make_loop(keras=make_keras(**keras))


def test_a_generator_is_named_by_the_line_that_runs_and_else_by_its_call() -> None:
    generator = make_operation("g", "from_generator", file="train.py", line=27)
    assert named(generator) == Culprit("the generator of `from_generator`", "rows.py", 6, "g")
    assert named(generator, host=None) == Culprit("`from_generator`", "train.py", 27, "g")


def test_an_operation_of_tensorflow_is_named_by_its_own_line() -> None:
    mapped = make_operation("m", "map", file="train.py", line=12)
    assert named(mapped) == Culprit("`map`", "train.py", 12, "m")
    assert named(None) is None


@pytest.mark.parametrize("adapter", ["PyDatasetAdapter", "GeneratorDataAdapter"])
def test_data_that_python_makes_for_keras_is_named_by_its_class(adapter: str) -> None:
    data = {"data_adapter": adapter, "source_file": "data.py", "source_line": 3}
    op = make_operation("g", "from_generator")
    assert named(op, loop=fitted(**data, source="Rows")) == Culprit("`Rows`", "rows.py", 6, "g")
    unseen = named(op, host=None, loop=fitted(**data, source="Rows"))
    assert unseen == Culprit("`Rows`", "data.py", 3, "g")
    unnamed = Culprit("the Python source", "data.py", 3, None)
    assert named(None, host=None, loop=fitted(**data, source=None)) == unnamed
    assert named(None, loop=fitted(**data, source="Rows")) == Culprit("`Rows`", "rows.py", 6, None)


def test_what_a_framework_made_is_named_by_what_it_was_given() -> None:
    op = make_operation("m", "map", file="keras.py", line=900, made_by_framework=True)
    data = {"source_file": "train.py", "source_line": 8}
    assert named(op, loop=fitted(**data, source="ndarray")) == Culprit(
        "`ndarray`", "train.py", 8, "m"
    )
    assert named(op, loop=fitted(**data, source=None)) == Culprit("`map`", "train.py", 8, "m")
    own = Culprit("`map`", "keras.py", 900, "m")
    assert named(op, loop=fitted(source_file=None)) == named(op, loop=None) == own


def shuffled(**shuffle: Any) -> list[Operation]:
    return [
        make_operation("read", "flat_map", line=1, latency_ms_per_step=2.0),
        make_operation("map", "map", line=2, parent_ids=["read"], latency_ms_per_step=None),
        make_operation("first", "shuffle", line=3, parent_ids=["map"]),
        make_operation("take", "take", line=4, parent_ids=["first"], latency_ms_per_step=9.0),
        make_operation("last", "shuffle", line=5, parent_ids=["take"], **shuffle),
    ]


def piped(ops: list[Operation]) -> Session:
    return make_session(pipeline=make_pipeline(ops=ops))


def test_a_shuffle_fills_with_what_costs_most_above_it() -> None:
    fill = shuffle_fill(piped(shuffled()))
    maker = Culprit("`flat_map`", "train.py", 1, "read")
    assert fill == ShuffleFill(Culprit("`shuffle`", "train.py", 5, "last"), maker)
    frameworks = shuffle_fill(piped(shuffled(made_by_framework=True)))
    assert frameworks == ShuffleFill(Culprit("`shuffle`", "train.py", 3, "first"), maker)


@pytest.mark.parametrize("other", ["dispatch", "compile", "device_wait"])
def test_python_is_named_where_nothing_of_the_overhead_is_larger(other: str) -> None:
    line = HotLine(file="train.py", line=40, function="on_batch", percent=60.0, thread="main")
    host = make_host(hot_python=[line])
    on_batch = Culprit("`on_batch`", "train.py", 40)
    assert python_culprit(make_breakdown(**{"python": 30.0, other: 30.0}), host) == on_batch
    assert python_culprit(make_breakdown(**{"python": 30.0, other: 30.1}), host) is None
    assert python_culprit(make_breakdown(python=30.0), HOT) is None


def test_what_costs_about_as_much_is_named_with_it() -> None:
    ops = [
        make_operation("decode", "map", file="train.py", line=12),
        make_operation("augment", "map", file="train.py", line=13),
        make_operation("batch", "batch", file="train.py", line=14),
    ]
    pipeline = make_pipeline(ops=ops, bottleneck_op_id="decode", tied_op_ids=["augment"])
    culprit = input_culprit(pipeline, None, None)
    assert culprit is not None
    assert (culprit.op_id, culprit.line) == ("decode", 12)
    assert [(one.op_id, one.line) for one in culprit.tied] == [("augment", 13)]
    assert all(place in costs_most(culprit) for place in ("train.py:12", "train.py:13"))
