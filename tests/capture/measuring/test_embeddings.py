"""Batches that are looked at, and the ids that are counted in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pipediag.capture.loops.loop import ScriptsOwnError, Stage
from pipediag.capture.measuring import schedule as module
from pipediag.capture.measuring.embeddings import IdTally, read_next
from pipediag.capture.measuring.schedule import Phase
from pipediag.capture.runtime import UnreadableStepError
from pipediag.session.recorded_loops import RecordedTableUse, RecordedVariable, Softmax
from tests.capture.instruments import FakeSampler
from tests.capture.measuring.test_schedule import Measured

TOY_SOFTMAX = Softmax("words", 10, 4, "sparse")


class ToyTable:
    """A table of ten rows, whose ids are the batch."""

    variable = object()
    ids_missing: str | None = None
    ids_incomplete: str | None = None
    cast_through: str | None = None
    softmax: Softmax | None = None

    def __init__(self) -> None:
        self.record = RecordedVariable("words", 10, 4, "float32", trainable=True)
        self.use = RecordedTableUse(
            variable="words", gradient="sparse", slot_bytes=320, writes_whole=True
        )

    def answers(self, given: Any) -> bool:
        return given is not None

    def looked_up(self, given: Any) -> list[Any]:
        return [np.array(given)]


class ToyTables:
    vocabulary_operations = ("logits/MatMul",)
    metric_operations = ("in_top_k/InTopKV2",)

    def __init__(self) -> None:
        self.tables = [ToyTable()]
        self.softmaxes = [TOY_SOFTMAX]
        self.constant_bytes = 48
        self.draws = 1

    def draws_one_batch(self) -> bool:
        return self.draws == 1

    def of_batch(self, batch: Any) -> Any:
        if batch == "strange":
            raise UnreadableStepError("A batch is strange.")
        return batch

    def of_call(self, function: Any, args: Any, kwargs: Any) -> Any:
        return args[0] if function == "step" else None


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measured:
    FakeSampler.running = 0
    monkeypatch.setattr(module, "StackSampler", FakeSampler)
    played = Measured(tmp_path)
    played.runtime.tables = ToyTables()
    played.loop.diagnosis = played.diagnosis
    return played


def read(measured: Measured, data: Iterator[Any]) -> Iterator[Any]:
    return read_next(measured.consumer, data, measured.instruments.recorder)


def draws(measured: Measured, *batches: Any) -> list[Any]:
    """What steps draw that ask the iterator for each of these batches."""
    data = iter(batches)
    return [next(read(measured, data)) for _ in batches]


def knows(measured: Measured, tables: Callable[..., Any]) -> None:
    """Have a trainer run the loop, whose model tells these of its layers."""
    trainer: Any = SimpleNamespace(known_tables=tables)
    model: Any = lambda: "model"  # noqa: E731
    measured.loop.trainer, measured.loop.model = trainer, model


def test_the_step_draws_the_batches_that_it_would_have_drawn(measured: Measured) -> None:
    measured.until(Phase.IDS)
    data = iter([[1, 2], [3, 3], [4, 5], [6, 7]])
    drawn = [next(read(measured, data))]
    for _ in range(3):
        measured.step()
        reads = measured.consumer.stage is Stage.READING
        drawn.append(next(read(measured, data) if reads else data))

    assert drawn == [[1, 2], [3, 3], [4, 5], [6, 7]]
    assert measured.diagnosis.phase is not Phase.IDS
    assert measured.consumer.stage is Stage.OWN
    assert measured.loop.record.softmaxes == [TOY_SOFTMAX]
    assert measured.loop.record.constant_bytes == 48
    (table,) = measured.recording.variables
    assert table.use is not None
    assert (table.ids.lookups, table.ids.unique_per_step) == (4, 1.5)


def test_ids_that_can_not_be_counted_end_the_look_and_cost_no_batch(measured: Measured) -> None:
    measured.until(Phase.IDS)
    measured.runtime.tables.tables[0].looked_up = lambda given: [
        np.array(given) if given[0] == 1 else None
    ]
    assert draws(measured, [1, 2], [object()], [3, 3])[2] == [3, 3]
    (table,) = measured.recording.variables
    assert (table.ids.lookups, table.ids.batches) == (2, 1)


def test_the_end_of_the_data_is_the_steps_to_find(measured: Measured) -> None:
    measured.until(Phase.IDS)
    data: Iterator[Any] = iter([])

    assert read(measured, data) is data


def test_an_error_of_the_data_is_the_scripts(measured: Measured) -> None:
    def broken() -> Iterator[Any]:
        raise OSError("the disk is gone")
        yield

    measured.until(Phase.IDS)

    with pytest.raises(ScriptsOwnError) as raised:
        read(measured, broken())
    assert str(raised.value.error) == "the disk is gone"


def test_a_batch_that_cannot_be_read_is_handed_over_all_the_same(measured: Measured) -> None:
    measured.until(Phase.IDS)
    assert draws(measured, "strange") == ["strange"]
    measured.step()

    (table,) = measured.recording.variables
    assert (table.ids, table.ids_missing) == (None, "A batch is strange.")


@pytest.mark.parametrize("lack", ["device", "graph", "draws", "several a call", "replicas"])
def test_where_no_batch_can_be_looked_at_that_is_said(measured: Measured, lack: str) -> None:
    if lack == "device":
        measured.consumer.hand_over = "call"
        measured.runtime.not_handed_once = lambda *_: "elsewhere"  # type: ignore[method-assign]
    elif lack == "several a call":
        measured.consumer.hand_over, measured.loop.record.batches_per_call = "call", 4
    elif lack == "replicas":
        measured.consumer.distributed = True
    elif lack == "draws":
        measured.consumer.hand_over = "call"
        measured.runtime.tables.draws = 2  # type: ignore[union-attr]
    else:
        table = measured.runtime.tables.tables[0]  # type: ignore[union-attr]
        table.ids_missing = "a loop"
    measured.until(Phase.PROFILE)

    (table,) = measured.recording.variables
    assert table.use is not None
    assert table.ids is None
    assert table.ids_missing


def test_without_a_traced_step_the_models_tables_say_so(measured: Measured) -> None:
    known = RecordedVariable("words", 10, 4, "float32", trainable=True)
    measured.runtime.tables = None
    knows(measured, lambda _: [(None, known)])
    measured.until(Phase.PROFILE)

    assert known.use_missing == known.ids_missing == "A toy has no tables."


def test_layers_that_can_not_be_asked_leave_the_steps_own_tables(measured: Measured) -> None:
    def fails(_: Any) -> list[Any]:
        raise AttributeError("no input_dim")

    knows(measured, fails)
    measured.until(Phase.IDS)
    draws(measured, [1, 1])
    measured.diagnosis.finish("the script ended")

    (table,) = measured.recording.variables
    assert table.ids is not None
    assert any("no input_dim" in note for note in measured.recording.notes)


def test_output_weights_that_are_a_table_are_named_by_its_path(measured: Measured) -> None:
    record = RecordedVariable("words", 10, 4, "float32", path="model/words/embeddings")
    tables = ToyTables()
    softmax = replace(TOY_SOFTMAX, weights="model/embeddings")
    tables.softmaxes, tables.tables[0].softmax = [softmax], softmax
    measured.runtime.tables = tables
    knows(measured, lambda _: [(ToyTable.variable, record)])
    measured.until(Phase.IDS)

    assert [one.weights for one in measured.loop.record.softmaxes] == ["model/words/embeddings"]
    assert [one.variable for one in measured.recording.variables] == ["model/words/embeddings"]


def test_variables_of_one_name_are_told_apart(measured: Measured) -> None:
    tables = ToyTables()
    tables.tables.append(ToyTable())
    measured.runtime.tables = tables
    measured.until(Phase.IDS)

    assert [one.layer for one in measured.recording.variables] == ["words", "words #2"]


ROWS = 300


def tally_of(*batches: Any, rows: int = ROWS) -> Any:
    tally = IdTally(rows)
    for number, ids in enumerate(batches, 1):
        tally.add(number, [np.asarray(ids)])
    return tally.record


def test_zeros_between_other_ids_are_told_from_padding() -> None:
    record = tally_of([[0, 5, 0, 6, 0], [0, 0, 0, 0, 0], [1, 2, 0, 0, 0]])

    assert (record.zero_percent, record.zeros_within) == (pytest.approx(100 * 11 / 15), 1)


def test_ids_outside_are_shown_with_their_batch() -> None:
    record = tally_of([1, ROWS, ROWS], [2, 3], [-1, ROWS + 5])

    assert record.outside == 4
    assert record.outside_examples == [(1, ROWS), (3, -1), (3, ROWS + 5)]
