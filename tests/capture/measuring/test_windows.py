"""Windows of steps, a profile's session, and a training that is put back."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pipediag.capture.guard import Guard
from pipediag.capture.measuring import kept_state
from pipediag.capture.measuring.kept_state import KeptState, NotRestoredError, TrainingState
from pipediag.capture.measuring.windows import Profiler, Window, lived_on_a_stock
from pipediag.capture.recorder import Recorder
from pipediag.capture.runtime import IteratorModel
from pipediag.session.recording import ModelNode
from tests.capture.instruments import PreemptedError, handles_signals, signal_arrives, training_loop


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return Recorder(tmp_path / "recording.json")


@pytest.fixture
def window(recorder: Recorder) -> Window:
    instruments: Any = SimpleNamespace(recorder=recorder)
    return Window("baseline", training_loop(), instruments)


def steps(window: Window, count: int) -> None:
    for step in range(count):
        window.add(100 + 10 * step, 10, 4)


def test_a_block_takes_the_latest_gap_of_each_step(window: Window) -> None:
    steps(window, 3)
    window.close_block(IteratorModel([9, 9, 1, 2, 3], [], 0))

    (block,) = window.record.blocks
    assert block.gaps_us == [1, 2, 3]
    assert block.starts_ns == [100, 110, 120]
    assert block.waits_ns == [4, 4, 4]


def node(number: int, name: str, buffered: int, handed_out: int = 0) -> ModelNode:
    return ModelNode(number, name, [], handed_out, 0, 0, buffered, autotune=True)


def model(buffered: int, handed_out: int = 0) -> IteratorModel:
    last = node(1, "Prefetch", buffered, handed_out)
    return IteratorModel([], [node(3, "ParallelMapV2", 50), last], 1)


@pytest.mark.parametrize(
    ("left", "batches", "used_up"),
    [
        (3, 110, True),  # 7 of 10 came from the stock
        (8, 110, False),  # 2 of 10 did: a fifth
        (7, 110, True),
        (10, 110, False),
        (12, 110, False),
        (0, 100, False),  # no batch was handed out
    ],
)
def test_a_window_that_lived_on_ready_batches_is_told(
    left: int, batches: int, used_up: bool
) -> None:
    assert lived_on_a_stock(model(10, 100), model(left, batches)) is used_up


def behind_a_map(stocked: int, handed_out: int) -> IteratorModel:
    """Batches in a buffer of the user's, a cheap map behind it, and TensorFlow's own buffer."""
    held = node(5, "Prefetch", stocked, handed_out)
    return IteratorModel([], [node(1, "Prefetch", 2), node(3, "ParallelMapV2", 2), held], 1)


@pytest.mark.parametrize(("left", "used_up"), [(120, True), (190, False), (200, False)])
def test_a_stock_further_up_hides_what_makes_it_as_well(left: int, used_up: bool) -> None:
    after = behind_a_map(left, 1100)
    assert lived_on_a_stock(behind_a_map(200, 1000), after) is used_up


@pytest.fixture
def session() -> Any:
    return SimpleNamespace()


@pytest.fixture
def profiler(session: Any, recorder: Recorder, tmp_path: Path) -> Profiler:
    made = Profiler(recorder, tmp_path)
    native = SimpleNamespace(ProfilerSession=lambda: session)
    made.install(SimpleNamespace(_pywrap_profiler=native, _profiler=None), Guard(recorder.note))
    return made


def test_what_a_signal_handler_raises_is_not_why_there_is_no_profile(
    profiler: Profiler, session: Any
) -> None:
    session.start = signal_arrives
    with handles_signals(), pytest.raises(PreemptedError):
        profiler.start("loop1")
    assert not profiler.running


def test_an_error_of_the_profilers_is(profiler: Profiler, session: Any) -> None:
    def full(*_: Any) -> None:
        raise OSError("no space")

    session.start = full
    assert profiler.start("loop1") == "TensorFlow's profiler did not start: no space"


class Variable:
    def __init__(self, values: Any, room: int = 1 << 30, kind: str = "f") -> None:
        self.name = "table"
        self.values = np.array(values, dtype=kind)
        self.room = room

    def numpy(self) -> Any:
        return self.values.copy()

    def assign(self, value: Any) -> None:
        if value.nbytes > self.room:
            raise MemoryError("ResourceExhaustedError")
        self.values[...] = value


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> list[Variable]:
    made = [Variable(np.ones((100, 4))), Variable(np.full(3, 2.0)), Variable(3.0)]
    monkeypatch.setattr(kept_state, "_variables", lambda: made)
    return made


def train(variables: list[Variable]) -> None:
    for variable in variables:
        variable.values += 1


def test_one_that_can_not_be_put_back_does_not_keep_the_others(variables: list[Variable]) -> None:
    state = TrainingState()
    train(variables)
    variables[0].room = 0
    drawn = random.random()
    with pytest.raises(NotRestoredError, match="1 of 3 variables"):
        state.restore()

    assert [float(one.values.mean()) for one in variables] == [2.0, 2.0, 3.0]
    assert random.random() == drawn, "the generators are put back all the same"


def test_a_save_has_the_scripts_values_and_counters_go_on_behind_it(
    variables: list[Variable], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is saved every so many steps is otherwise saved too often in our own steps."""
    monkeypatch.setattr(kept_state, "lacks_memory", lambda: None)
    step = Variable(7, kind="int64")
    variables.append(step)
    saved: list[list[float]] = []
    module = SimpleNamespace(save=lambda: saved.append([float(v.values.mean()) for v in variables]))
    kept = KeptState(Guard(print), print)
    kept.show_before(("save",), module)
    module.save()
    assert kept.keep() is None
    train(variables)
    module.save()
    after = [float(one.values.mean()) for one in variables]
    kept.give_back()

    assert saved == [[1.0, 2.0, 3.0, 7.0]] * 2
    assert after == [1.0, 2.0, 3.0, 8.0]
    assert step.numpy() == 7


def test_where_that_fails_nothing_more_is_tried(
    variables: list[Variable], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_state, "lacks_memory", lambda: None)
    notes: list[str] = []
    kept = KeptState(Guard(notes.append), notes.append)
    assert kept.keep() is None
    train(variables)
    variables[0].room = 0
    kept.show()
    kept.give_back()

    assert len(notes) == 1
    assert kept.keep() == kept.lost is not None
