"""Pipelines that a script wrote, built again with changes in its own process."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.capture.captured import Captured
from tests.capture.conftest import Capturing
from tests.capture.replay.rebuild_script import SCRIPT

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def run(capturing: Capturing) -> Captured:
    return capturing(SCRIPT)


@pytest.fixture(scope="module")
def results(run: Captured) -> dict[str, Any]:
    (line,) = [text for text in run.stdout.splitlines() if text.startswith("RESULTS ")] or [""]
    assert line, run.stderr
    found: dict[str, Any] = json.loads(line.removeprefix("RESULTS "))
    return found


def test_replaying_is_not_recorded(run: Captured, results: dict[str, Any]) -> None:
    kinds = [o.kind for o in run.recording.operations if o.line == run.line("inner")]

    assert kinds == ["map"]
    assert not any("rebuild" in (o.file or "") for o in run.recording.operations)
    assert run.recording.notes == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("unchanged is itself", True),
        ("parallel", "_ParallelMapDataset"),
        ("parallel name", "pipediag_op2"),
        ("parallel values", [[0, 2], [4, 6], [8, 10]]),
        ("upstream is reused", True),
        ("bigger batches", [[0, 2, 4, 6], [8, 10]]),
        ("vectorised", ["range", "batch", "map", "prefetch"]),
        ("vectorised values", [[0, 2], [4, 6], [8, 10]]),
        ("moved up", ["range", "batch", "map", "prefetch"]),
        ("removed", ["range", "map", "batch"]),
        ("layers moved", [[1, 3], [5, 7], [9, 11]]),
        ("layers kept", [[4, 6], [8, 10], [4, 6]]),
        ("layers kept of batches", [[1, 3], [5, 7], [1, 3]]),
        (
            "layers moved twice",
            "Two changes move the model's layers, which can be in one place.",
        ),
        (
            "layers without a model",
            "Layers of a model can only be moved while it is trained.",
        ),
        ("inserted twice", [[0, 2, 4, 6, 8], [10]]),
        ("on a device", [[0, 2], [4, 6], [8, 10]]),
        ("endless", [[0, 2], [4, 6], [8, 10], [0, 2]]),
        ("endless kinds", ["_CopyToDeviceDataset", "_RepeatDataset"]),
        ("endless already", True),
        ("rebuilt again", [[0, 2, 4], [6, 8, 10]]),
        ("cached", [[0, 2], [4, 6], [0, 2]]),
        ("plain cache", [[0, 2], [4, 6], [8, 10]]),
        ("cache left out", [[0, 1], [2, 3], [4, 5]]),
        ("full cache", [[0, 1], [2, 3], [4, 5], [0, 1]]),
        ("full cache with an edit", [[0, 1, 2], [3, 4, 5], [0, 1, 2]]),
        ("calls beside the filling", 0),
        ("calls to fill", 6),
        ("files of the script's cache", []),
        ("part of a cache", [[0], True, True]),
        ("together forth", [[0, 2], [4, 6]]),
        ("together back", [[0, 2], [4, 6]]),
        ("options forth", [3, False]),
        ("options back", [3, False]),
        ("two moved", [[10, 20, 30], [40, 50, 60]]),
        ("two moved back", [[10, 20, 30], [40, 50, 60]]),
        ("option by prefix", False),
        ("pydataset by workers", [0, 1, 2, 3, 4, 0, 1]),
        ("pydataset pool", 1),
        ("two copies", [[[1], [1]], [[2], [2]], [[3], [3]], [[1], [1]]]),
        ("generator by workers", "The batches don't come from a PyDataset of Keras 3."),
        (
            "zipped",
            [
                {"a": [100, 101, 102], "b": [0, -1, -2]},
                {"a": [103, 104, 105], "b": [-3, -4, -5]},
            ],
        ),
        ("concatenated", [100, 101, 102, 103, 104, 105, 0]),
        ("chosen", [100, 0, 101, -1]),
        ("wrapped", [0, 2, 4, 6, 8, 10]),
        ("wrapped options", False),
    ],
)
def test_chains(results: dict[str, Any], name: str, expected: object) -> None:
    assert results[name] == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("flat", [101, 102, 202, 103, 203, 303]),
        ("called at once", [101, 102, 103, 202, 203, 303]),
        ("inner changed", [101, 102, 103]),
        ("inner kinds", ["MapDataset", "ParallelMapDatasetV2"]),
        ("inner names", [True, True]),
        ("interleaved", [101, 102, 103, 202, 203, 303]),
        ("hoisted", [1, 1, 2, 1, 2, 3]),
        ("hoisted is outside", "_MapDataset"),
    ],
)
def test_functions_that_make_datasets(results: dict[str, Any], name: str, expected: object) -> None:
    assert results[name] == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("files", ["a0", "b0", "a1", "b1"]),
        ("parallel reads", ["a0", "b0", "a1", "b1"]),
        # Lengths 1 1 .. 8 8: the median splits them in eights, each in two batches of four.
        ("buckets", [[4, 2], [4, 4], [4, 6], [4, 8]]),
        ("keras arrays", [[0, 1, 2, 3], [4, 5]]),
        ("arguments kept of data", [0]),
    ],
)
def test_sources_and_batches(results: dict[str, Any], name: str, expected: object) -> None:
    assert results[name] == expected


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("move in a fork", "are not on one chain of operations"),
        ("needs the outer value", "can't leave the function that makes it"),
        ("snapshot", "keeps elements in files"),
        ("snapshot left alone", "keeps elements in files"),
        ("changed files", "The files that the TextLineDataset in script.py, line "),
        ("side effects", "calls Python with side effects: it changes `seen`."),
        ("side effects without a change", "calls Python with side effects"),
        ("even", "all have the same shape"),
        ("random cache", "a cache behind it would hand out the same ones in every epoch"),
        ("random move", "would draw others in another place"),
        ("gone", "The pipeline of this loop has no operation op999."),
        ("unknown parameter", "has no parameter speed."),
        ("unknown kind", "Pipediag can't add an operation of the kind teleport."),
        ("unknown option", "This TensorFlow has no option threading.speed for datasets."),
        ("contradiction", "Two changes contradict each other at the batch in script.py, line "),
        ("no way", "Pipediag can't replace the batch in script.py, line "),
        ("bad value", "TensorFlow refuses the changed pipeline: InvalidArgumentError"),
        ("own data", "hands out the script's own data"),
        ("huge cache", "The cache would hold about 4000000.0 GB, and "),
    ],
)
def test_refusals_are_sentences(results: dict[str, Any], name: str, words: str) -> None:
    assert words in results[name]


def test_sources_that_can_be_read_once(run: Captured, results: dict[str, Any]) -> None:
    assert results["one shot"] == ["the same generator", "its iter", "object with an iterator"]
    assert "can be gone through only once" in results["one shot says"]
    assert results["rebuilt one shot"].endswith("can be gone through only once.")
    assert results["taken"] == []
    assert results["keras generator"]
    assert (results["keras workers 1"], results["keras workers 2"]) == (False, True)


def test_random_operations_are_named(results: dict[str, Any]) -> None:
    assert results["random"] == [None, "the map", "the shuffle", None]


def test_the_scripts_random_numbers_stay(results: dict[str, Any]) -> None:
    assert results["draws as before"]
