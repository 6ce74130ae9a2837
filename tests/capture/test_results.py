"""What is recorded of batches and losses, and from which iterator."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from pipediag.capture import results
from pipediag.capture.results import Results, _Batches
from pipediag.runner.child_process import CHILD
from pipediag.runner.native_runs import Seen, of_batches
from pipediag.session.messages import RunSettings

X = np.random.default_rng(1).normal(size=(32, 20)).astype("float32")
Y = np.arange(32) % 2


def rows(*components: Any) -> list[Any]:
    batches = _Batches()
    batches.add(components)
    assert batches.problem is None
    return batches.rows


def changed(change: Callable[[Any], Any]) -> Any:
    x = X.copy()
    change(x)
    return x


def salary(x: Any) -> None:
    x[:, 3] = 5e4


def missing(x: Any) -> None:
    x[4, 5] = np.nan


@pytest.mark.parametrize("before", [lambda _: None, salary, missing])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda x: np.multiply(x, 1 + 1e-6, out=x), "are equal up to rounding."),
        (lambda x: np.copyto(x, x[::-1].copy()), "are equal up to order."),
        (lambda x: np.add(x[:, 7], 0.1, out=x[:, 7]), "are different"),
        (lambda x: np.add(x[4, 7:8], 0.1, out=x[4, 7:8]), "31 of them are in both"),
        (lambda x: np.put(x, 0, np.nan), "31 of them are in both"),
    ],
)
def test_each_value_of_a_row_counts(before: Any, change: Any, said: str) -> None:
    old = changed(before)
    new = old.copy()
    change(new)
    assert said in of_batches(Seen(rows(old), None, []), Seen(rows(new), None, [])).sentence


def test_rows_of_other_shapes_are_read() -> None:
    assert rows(X[:0], Y[:0]) == []
    assert len(rows(X, Y)) == 32
    assert len(rows(X, Y[:3])) == len(rows(np.float32(1.0), X)) == len(rows()) == 1
    assert len(rows(np.array([b"a", "b"], dtype=object), np.zeros((2, 0)))) == 2


def test_a_batch_that_can_not_be_read_is_a_problem_and_no_error() -> None:
    batches = _Batches()
    batches.add([[[1], [1, 2]]])
    assert batches.problem is not None


class ToyTensorFlow:
    """The little of it that hands an element on, for tensors that are texts."""

    class nest:  # noqa: N801 - its name
        @staticmethod
        def flatten(element: Any, **_: Any) -> list[Any]:
            return list(element) if isinstance(element, tuple) else [element]

        @staticmethod
        def pack_sequence_as(element: Any, flat: list[Any], **_: Any) -> Any:
            return tuple(flat) if isinstance(element, tuple) else flat[0]

    executing_eagerly = staticmethod(lambda: True)
    numpy_function = staticmethod(lambda *_: None)
    control_dependencies = staticmethod(nullcontext)
    identity = staticmethod(lambda tensor: tensor)


@pytest.mark.parametrize("element", ["x", ("x",), ("x", "y")])
def test_elements_stay_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, element: Any
) -> None:
    def mapped(function: Any) -> Any:
        return function(*element) if type(element) is tuple else function(element)

    monkeypatch.setitem(sys.modules, "tensorflow", cast("Any", ToyTensorFlow))
    dataset = SimpleNamespace(element_spec=element, map=mapped)

    assert Results(str(tmp_path / "results.json"), 1)._observed(dataset) == element


def written(recorded: Results, path: Path) -> Seen:
    recorded.write()
    return Seen(**json.loads(path.read_text()))


def test_the_iterator_that_is_read_on_after_the_first_step_is_the_training_s(
    tmp_path: Path,
) -> None:
    path = tmp_path / "results.json"
    recorded, preview, trains = Results(str(path), 1), _Batches(), _Batches()
    recorded.take(trains, X[:4])
    recorded.take(preview, X[:8])
    assert not written(recorded, path).losses
    recorded.take(trains, X[4:8])
    recorded.step(np.float32(1.0))
    assert "no step" not in str(written(recorded, path).problem)
    assert written(recorded, path).rows == []
    recorded.take(trains, X[8:12])
    recorded.step(np.complex64(2.0 + 1j))
    seen = written(recorded, path)
    assert (len(seen.rows), seen.problem, seen.losses) == (12, None, [1.0, 2.0])


@pytest.mark.parametrize("steps", [0, 1])
def test_a_run_ends_also_without_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    monkeypatch.setattr(results, "LONGEST_S" if steps else "LONGEST_START_S", 0.0)
    path = tmp_path / "results.json"
    recorded, batches = Results(str(path), 1), _Batches()
    for _ in range(steps):
        recorded.step(np.float32(1.0))
    recorded.take(batches, X)
    assert set(ended) == {0}
    assert path.exists()


def test_what_was_seen_is_written_where_the_script_exits(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import sys\nsys.exit(0)\n")
    settings, seen = tmp_path / "settings.json", tmp_path / "seen.json"
    RunSettings("train.py", (), module=False, capture_directory="").write(settings)
    command = [sys.executable, str(CHILD), "results", "1", str(seen), str(settings)]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert json.loads(seen.read_text())["problem"]
