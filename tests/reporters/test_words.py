"""What reports say: numbers, places, evidence, trials, the run, devices, operations and tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipediag.reporters.words import embeddings, quantities, run
from pipediag.reporters.words import pipeline as pipeline_rows
from pipediag.reporters.words.labels import SourceNames, evidence
from pipediag.reporters.words.quantities import NO_BREAK, NOTHING
from pipediag.session.ledger import Run
from pipediag.session.model import Script
from pipediag.session.pipeline import Operation, Pipeline
from pipediag.vocabulary import Scalar
from tests import factories, records
from tests.factories import (
    make_embedding,
    make_session,
)
from tests.ledgers import make_waits
from tests.rules.sessions import make_ids


@pytest.mark.parametrize(
    ("form", "shown"),
    [
        (
            quantities.number,
            {
                None: quantities.NOTHING, 0: "0", 32.0: "32", 1234567.0: "1,234,567",
                1234.5: "1,234", 11.52: "11.5", 0.123: "0.12", 0.000123: "0.00012",
            },
        ),
        (
            quantities.milliseconds,
            {10.0: "10.0 ms", 900.0: "900 ms", 12_345.0: "12.3 s", 7_200_000.0: "2.00 h"},
        ),
        (
            quantities.byte_count,
            {0: "0 bytes", 1840: "1.8 KiB", 61 * 2**20: "61 MiB", 2**50: "1,024 TiB"},
        ),
        # With the digits that mean something.
        (
            quantities.speedup,
            {1.144: "1.14x", 2.449: "2.4x", 9.96: "10x", 23.45: "23x", 0.88: "0.88x"},
        ),
    ],
)  # fmt: skip
def test_quantities(form: Callable[[Any], str], shown: dict[float | None, str]) -> None:
    assert {value: form(value).replace("\xa0", " ") for value in shown} == shown


@pytest.mark.parametrize(
    ("key", "value", "words", "shown"),
    [
        ("launch_idle_percent_of_span", 5.0, "launch idle", "5.0 % of the span"),
        ("input_wait_percent_of_step", 76.31, "input wait", "76 % of the step"),
        ("cache_bytes", 2**20, "cache", "1 MiB"),
        ("retraces", 3, "retraces", "3"),
        ("call_us", 41.2, "call", "41.2 µs"),
        ("compressed", True, "compressed", "yes"),
        ("frozen_operation", "map_0", "frozen", "map at train.py:12"),
        ("frozen_operation", "gone", "frozen", "gone"),
        ("parallelism", None, "parallelism", NOTHING),
        ("self_ms_per_step", 7.934, "self", "7.93 ms per step"),
        ("wait_percent", 76.31, "wait", "76 %"),
        ("op_kind", "map", "op kind", "map"),
    ],
)
def test_words_and_units(key: str, value: Scalar, words: str, shown: str) -> None:
    name, text = evidence(make_session(), key, value)
    assert (name, text.replace("\xa0", " ")) == (words, shown)


@pytest.mark.parametrize(
    ("path", "file", "shown"),
    [
        ("/home/a/shared/train.py", "/home/a/here/data/pipeline.py", "data/pipeline.py:41"),
        ("/home/a/shared/train.py", "/home/a/shared/train.py", "train.py:41"),
        ("/home/a/shared/train.py", "/home/a/other.py", "/home/a/other.py:41"),
        ("train.py", "/home/a/here/.venv/site-packages/keras/fit.py", "keras/fit.py:41"),
        ("train.py", "cell In[3]", "cell In[3]:41"),
        ("train.py", None, ""),
        ("../project/train.py", "/home/a/here/../project/train.py", "train.py:41"),
        ("../project/train.py", "/home/a/project/data/pipeline.py", "data/pipeline.py:41"),
        ("../project/train.py", "/home/a/here/local.py", "local.py:41"),
    ],
)
def test_files_are_shown_from_where_the_script_ran_or_lies(
    path: str, file: str | None, shown: str
) -> None:
    script = Script(path=path, args=[], outcome="stopped", directory="/home/a/here")
    assert SourceNames(factories.make_session(script=script)).at(file, 41) == shown


def test_parts_come_in_the_order_of_a_run_with_their_places() -> None:
    parts = run.parts_of(factories.make_run().parts)
    assert [part.name for part in parts] == ["startup", "before_training", "steps", "epoch_end"]
    assert [part.seconds for part in parts] == [2.5, 2.5, 5.0, 10.0]
    assert [part.basis for part in parts] == ["measured", "measured", "projected", "projected"]
    assert [row.what for row in parts[1].rows] == ["in `parse`"]


def rows_of(
    *operations: Operation, bottleneck: str | None = None
) -> list[pipeline_rows.PipelineRow]:
    pipeline = Pipeline(ops=list(operations), bottleneck_op_id=bottleneck)
    session = factories.make_session(pipeline=pipeline)
    return pipeline_rows.pipeline_rows(pipeline, SourceNames(session))


def test_rows_keep_the_order_of_the_data_and_share_the_time() -> None:
    rows = rows_of(
        records.make_operation("a", "range", self_ms_per_step=1.0),
        records.make_operation("b", "map", self_ms_per_step=3.0, parent_ids=["a"]),
        bottleneck="b",
    )
    assert [row.op.id for row in rows] == ["a", "b"]
    assert [row.share_percent for row in rows] == [25.0, 75.0]
    assert [row.bottleneck for row in rows] == [False, True]
    assert [row.reads_from for row in rows] == [[], []]


def test_padding_is_only_what_the_model_masks() -> None:
    ids = make_ids(zero_percent=62)
    assert embeddings.padding(make_embedding(ids=ids, mask_zero=True)) == f"62{NO_BREAK}%"
    assert embeddings.padding(make_embedding(ids=ids)) == NOTHING
    assert embeddings.padding(make_embedding(mask_zero=True)) == NOTHING


@pytest.mark.parametrize("ledger", [None, make_waits(1.0, 16.0, 3.0, each_s=0.5)])
def test_the_bound_of_free_input_says_whether_it_is_of_the_loop(ledger: Run | None) -> None:
    made = make_session(loops=[factories.make_loop(epoch_ends=2)], run=ledger)
    assert ("for the loop" in run.free_input(made)) is (ledger is not None)
