"""What reports say: numbers, places, evidence, trials, the run, devices, operations and tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipediag.reporters.words import embeddings, quantities
from pipediag.reporters.words.labels import SourceNames, evidence
from pipediag.reporters.words.quantities import NO_BREAK, NOTHING
from pipediag.session.model import Script
from pipediag.vocabulary import Scalar
from tests import factories
from tests.factories import make_embedding, make_session
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
        ("input_wait_percent_of_step", 76.31, "input wait", "76 % of the step"),
        ("cache_bytes", 2**20, "cache", "1 MiB"),
        ("retraces", 3, "retraces", "3"),
        ("call_us", 41.2, "call", "41.2 µs"),
        ("compressed", True, "compressed", "yes"),
        ("frozen_operation", "map_0", "frozen", "map at train.py:12"),
        ("frozen_operation", "gone", "frozen", "gone"),
        ("parallelism", None, "parallelism", NOTHING),
        ("self_ms_per_step", 7.934, "self", "7.93 ms per step"),
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
    ],
)
def test_files_are_shown_from_where_the_script_ran_or_lies(
    path: str, file: str | None, shown: str
) -> None:
    script = Script(path=path, args=[], outcome="stopped", directory="/home/a/here")
    assert SourceNames(factories.make_session(script=script)).at(file, 41) == shown


def test_padding_is_only_what_the_model_masks() -> None:
    ids = make_ids(zero_percent=62)
    assert embeddings.padding(make_embedding(ids=ids, mask_zero=True)) == f"62{NO_BREAK}%"
    assert embeddings.padding(make_embedding(ids=ids)) == NOTHING
    assert embeddings.padding(make_embedding(mask_zero=True)) == NOTHING
