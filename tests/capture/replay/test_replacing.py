"""What is refused, replaced and written another way in a pipeline that is built again."""

from __future__ import annotations

import ast
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import CodeType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pipediag.capture.pipelines.calls import Call
from pipediag.capture.replay import NotReplayableError, rebuilding, replacing
from pipediag.capture.replay.graph import Node
from pipediag.capture.replay.rebuilding import _is_reordered, refuse_to_disturb
from pipediag.capture.replay.replacing import (
    _made_ahead,
    _mixed_by_threads,
    attributes_set,
    read_by_workers,
)
from pipediag.capture.replay.rewriting import other_code
from pipediag.session.edits import RewriteCall
from pipediag.session.recording import RecordedOperation

OPERATION = RecordedOperation(id="op1", kind="from_generator", name="op1", file=None, line=None)
KERAS = {"__module__": "keras.src.trainers.data_adapters.py_dataset_adapter"}


class Rows:
    """A PyDataset as far as it is asked."""

    num_batches = 5

    def __init__(self) -> None:
        self.seen = 0

    def __len__(self) -> int:
        return 5

    def __getitem__(self, index: int) -> int:
        return index


class CountedRows(Rows):
    def __getitem__(self, index: int) -> int:
        self.seen += 1
        return index


def adapter(source: Any) -> Any:
    def _get_iterator(self: Any) -> Iterator[int]:
        return iter(range(5))

    kind = type("PyDatasetAdapter", (), {**KERAS, "_get_iterator": _get_iterator})
    made = kind()
    made.py_dataset = source
    return made


def call(generator: Any) -> Call:
    return Call(OPERATION, lambda: None, (generator,))


def test_one_that_changes_itself_is_not_read_by_several() -> None:
    node = Node([], call=call(adapter(CountedRows())._get_iterator))
    with pytest.raises(NotReplayableError, match="several threads at once: it changes `self`"):
        read_by_workers(node, {"workers": 2}, [])


def test_a_shared_buffer_is_no_batch_for_several_threads() -> None:
    buffer, draws = np.zeros(1), count()

    def shared(index: int) -> list[Any]:
        buffer[:] = index
        time.sleep(0.002)
        return [buffer.copy()]

    assert _mixed_by_threads(shared, range(40), 4) is not None
    assert _mixed_by_threads(lambda index: [np.full(2, index)], range(40), 4) is None
    # What is drawn at random is another batch in each call.
    assert _mixed_by_threads(lambda _: [np.array(next(draws))], range(40), 4) is None


def test_batches_keep_their_order_and_no_more_are_made_than_may_wait() -> None:
    asked: list[int] = []

    def make(index: int) -> int:
        asked.append(index)
        time.sleep(0.002 if index % 2 else 0.0)
        return index

    made = _made_ahead(make, range(50), workers=3, queued=4)
    assert [next(made) for _ in range(3)] == [0, 1, 2]
    assert max(asked) <= 2 + 4
    assert list(made) == list(range(3, 50))


def test_it_is_closed_once_what_runs_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replacing, "_LEAVE_S", 10.0)
    running, go_on = threading.Event(), threading.Event()
    asked: list[int] = []

    def make(index: int) -> int:
        asked.append(index)
        if index == 1:
            running.set()
            go_on.wait(10)
        return index

    made = _made_ahead(make, range(1000), workers=1, queued=4)
    next(made)
    running.wait(10)
    closing = threading.Thread(target=made.close, daemon=True)
    closing.start()
    go_on.set()
    closing.join(10)
    assert not closing.is_alive()
    assert len(asked) < 6


def test_workers_of_tf_keras_serve_one_loop_only() -> None:
    workers = type("OrderedEnqueuer", (), {"__module__": "tf_keras.src.utils"})()

    def batches() -> Any:
        return workers

    graph: Any = SimpleNamespace(calls=lambda: [(None, SimpleNamespace(generator=batches))])
    with pytest.raises(NotReplayableError):
        refuse_to_disturb(graph)


OWN = "def rows(count):\n    for row in range(count):\n        yield row + 1\n"
PATCHED = "def rows(count):\n    for row in range(count):\n        yield row + 2\n"
Function = Callable[[int], Iterator[int]]


def rows_of(path: Path, text: str = OWN) -> Function:
    path.write_text(text, encoding="utf-8")
    names: dict[str, Function] = {}
    exec(compile(text, str(path), "exec"), names)
    return names["rows"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PATCHED, [2, 3]),
        (
            "def more(row):\n    return row + 3\n\n\n" + PATCHED.replace("row + 2", "more(row)"),
            [3, 4],
        ),
        (
            "import math as m\n\n\ndef more(row):\n    return row + m.floor(4.5)\n\n\n"
            + PATCHED.replace("row + 2", "more(row)"),
            [4, 5],
        ),
    ],
    ids=["changed", "added", "added with an import"],
)
def test_functions_run_the_patched_code_while_they_are_told_to(
    tmp_path: Path, text: str, expected: list[int]
) -> None:
    path = tmp_path / "data.py"
    rows = rows_of(path)
    change = RewriteCall("op", str(path), 3, "Data.rows")
    with attributes_set(*other_code([change], {str(path): text}, pytest.fail)):
        assert list(rows(2)) == expected
    assert list(rows(2)) == [1, 2]


@pytest.mark.parametrize("brackets", ["[]", "()"])
def test_a_comprehension_runs_the_patched_code_of_its_function(
    tmp_path: Path, brackets: str
) -> None:
    opened, closed = brackets
    text = f"def rows(count):\n    yield from {opened}row + 1 for row in range(count){closed}\n"
    path = tmp_path / "data.py"
    rows = rows_of(path, text)
    # Python 3.12 has no function of its own for a list.
    inner = [one for one in rows.__code__.co_consts if isinstance(one, CodeType)]
    name = f"rows.<locals>.{inner[0].co_name}" if inner else "rows"
    files = {str(path): text.replace("+ 1", "+ 2")}
    with attributes_set(*other_code([RewriteCall("op", str(path), 2, name)], files, pytest.fail)):
        assert list(rows(2)) == [2, 3]
    assert list(rows(2)) == [1, 2]


@pytest.mark.parametrize(
    ("line", "function", "text"),
    [
        (3, "other", PATCHED),
        (30, "rows", PATCHED),
        (3, "rows", None),
        (3, "rows", PATCHED + PATCHED),
        (3, "rows", PATCHED.replace("rows", "others")),
    ],
)
def test_a_function_that_is_not_found_is_refused(
    tmp_path: Path, line: int, function: str, text: str | None
) -> None:
    path = tmp_path / "data.py"
    rows = rows_of(path)
    files = {} if text is None else {str(path): text}

    with pytest.raises(NotReplayableError):
        other_code([RewriteCall("op", str(path), line, function)], files, pytest.fail)
    assert list(rows(1)) == [1]


ORDER = [1, 2, 3]


def rows() -> Iterator[int]:
    yield from ORDER


@pytest.mark.parametrize(
    ("code", "reordered"),
    [
        ("for epoch in range(3):\n    rng.shuffle(ORDER)\n    train()", True),
        ("while True:\n    ORDER = rng.permutation(9)", True),
        ("class C:\n    def on_epoch_end(self, *_):\n        random.shuffle(data.ORDER)", True),
        ("rng.shuffle(ORDER)\nfor epoch in range(3):\n    train()", False),
        ("for epoch in range(3):\n    rng.shuffle(others)\n    ORDER = []", False),
    ],
)
def test_what_a_loop_shuffles_is_not_the_same_in_each_epoch(
    code: str, reordered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuilding, "script_trees", lambda: [ast.parse(code)])
    assert _is_reordered(rows) == reordered
