"""Numbers, evidence and source lines in words."""

from __future__ import annotations

import pytest

from pipediag.reporters.words import quantities
from pipediag.reporters.words.evidence import evidence
from pipediag.reporters.words.labels import SourceNames
from pipediag.reporters.words.quantities import NOTHING
from pipediag.vocabulary import Scalar
from tests import factories, records
from tests.factories import make_session


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, quantities.NOTHING),
        (0, "0"),
        (32.0, "32"),
        (1234567.0, "1,234,567"),
        (1234.5, "1,234"),
        (11.52, "11.5"),
        (0.123, "0.12"),
        (0.000123, "0.00012"),
    ],
)
def test_numbers(value: float | None, shown: str) -> None:
    assert quantities.number(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(10.0, "10.0 ms"), (900.0, "900 ms"), (12_345.0, "12.3 s"), (7_200_000.0, "2.00 h")],
)
def test_durations_change_their_unit(value: float, shown: str) -> None:
    assert quantities.milliseconds(value).replace("\xa0", " ") == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0 B"), (1840, "1.80 KiB"), (61 * 2**20, "61 MiB"), (2**50, "1,024 TiB")],
)
def test_bytes(value: float, shown: str) -> None:
    assert quantities.byte_count(value).replace("\xa0", " ") == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1.144, "1.14x"), (2.449, "2.4x"), (9.96, "10x"), (23.45, "23x"), (0.88, "0.88x")],
)
def test_a_speed_up_has_the_digits_that_mean_something(value: float, shown: str) -> None:
    assert quantities.speedup(value) == shown


def test_both_ends_of_an_interval_have_the_same_digits() -> None:
    assert quantities.speedup_interval((1.05, 2.5)).replace("\xa0", " ") == "[1.05, 2.50]"
    assert quantities.speedup_interval((15.2, 36.0)).replace("\xa0", " ") == "[15, 36]"
    assert quantities.percent_interval((9.4, 12.6)).replace("\xa0", " ") == "9.4 to 13 %"


def test_units_stay_with_their_numbers() -> None:
    assert quantities.bind_units("20 % in 3 ms of 4 GiB, 5 apples") == (
        "20\xa0% in 3\xa0ms of 4\xa0GiB, 5 apples"
    )


@pytest.mark.parametrize(
    ("key", "value", "words", "shown"),
    [
        ("launch_idle_percent_of_span", 5.0, "launch idle", "5.0 % of the span"),
        ("input_wait_percent_of_step", 76.31, "input wait", "76 % of the step"),
        ("cache_bytes", 2**20, "cache", "1 MiB"),
        ("retraces", 3, "retraces", "3"),
        ("call_us", 41.2, "call", "41.2 µs"),
        ("compressed", True, "compressed", "yes"),
        ("frozen_operation", "map_0", "frozen", "map in line 12"),
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


def places_of(*files: str) -> SourceNames:
    operations = [
        records.make_operation(f"map_{index}", file=file) for index, file in enumerate(files)
    ]
    return SourceNames(
        factories.make_session(
            pipeline=records.make_pipeline(ops=operations, bottleneck_op_id=None),
            loops=[],
            findings=[],
        )
    )


def test_files_are_shown_from_the_directory_they_share() -> None:
    places = places_of("/home/a/project/train.py", "/home/a/project/data/pipeline.py")
    assert places.at("/home/a/project/data/pipeline.py", 41) == "data/pipeline.py:41"
    assert places.at("/home/a/project/train.py", None) == "train.py"


def test_libraries_are_shown_from_their_package_and_do_not_widen_the_root() -> None:
    library = "/usr/lib/python3.11/site-packages/keras/src/trainer.py"
    places = places_of("/home/a/train.py", library)
    assert places.at(library, None) == "keras/src/trainer.py"
    assert places.at("/home/a/train.py", None) == "train.py"


def test_the_end_of_an_endless_path_is_kept() -> None:
    shown = places_of("/home/a/train.py").at("/opt" + "/deep" * 100 + "/file.py", None)
    assert len(shown) == 100
    assert shown.endswith("/deep/file.py")
