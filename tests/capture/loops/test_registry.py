"""Which loop an iterator belongs to, what a loop knows of its steps, and its clock."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.frameworks.keras import facts
from pipediag.capture.loops import registry as module
from pipediag.capture.loops.loop import Interruption, Loop
from pipediag.capture.loops.registry import LoopRegistry
from pipediag.capture.recorder import Recorder
from pipediag.capture.runtime import TrainersPhase
from pipediag.session.recorded_loops import RecordedBoundary, RecordedLoop
from pipediag.session.recording import RecordedOperation
from pipediag.vocabulary import LoopRole
from tests.capture.instruments import ToyRuntime, training_loop
from tests.recordings import make_recorded_loop

SECOND = 1_000_000_000
_CODE = SimpleNamespace(co_flags=0)


class Walker:
    def __init__(self, steps: int | None) -> None:
        self.num_batches = steps


class Model:
    layers = ()


MODEL = Model()


class Line:
    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        plan: Any = SimpleNamespace()
        self.trainer: Any = SimpleNamespace(**vars(facts))
        recorder, runtime = Recorder(path / "recording.json"), ToyRuntime()
        self.registry = LoopRegistry(recorder, plan, runtime, self.trainer)
        monkeypatch.setattr(module, "call_site", lambda *_: None)

    def iterator(
        self,
        walker: Walker | None,
        role: LoopRole = "training",
        dataset: Any = None,
        **arguments: int,
    ) -> Loop:
        """One iterator is made in a `fit` with that walker; without one, in the script itself."""
        phase = None
        if walker is not None:
            values = {"self": MODEL, "epoch_iterator": walker, "epochs": 1, **arguments}
            frame: Any = SimpleNamespace(f_locals=values, f_code=_CODE)
            phase = TrainersPhase(role, "fit" if role == "training" else role, frame)
        self.trainer.phase_of = lambda _frames: phase
        dataset = dataset or SimpleNamespace(element_spec=None)
        iterator = Walker(None)
        return self.registry.consumer_for(iterator, dataset, distributed=False).loop


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Line:
    return Line(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("rounds", "come_from", "left"),
    [
        (5, "a a a a", [5, 2]),
        (1, "a a", [1, None]),  # more come than the source tells
        (5, "a b", [5, 5]),
        (None, "a a", [None, None]),
    ],
)
def test_a_much_longer_fit_has_the_rounds_that_are_left(
    rounds: int | None,
    come_from: str,
    left: list[int | None],
    line: Line,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of those that the same calls come to."""
    monkeypatch.setattr(module, "rounds_around", lambda _: rounds)
    *shorter, last = come_from.split()
    for place, steps in [*((one, 100) for one in shorter), (last, 1000)]:
        monkeypatch.setattr(module, "_users_calls", lambda place=place: ((place, 1),))
        walker = Walker(steps)
        line.iterator(walker)
        line.iterator(walker)

    assert [loop.record.planned_rounds for loop in line.registry.all()] == left


def test_fits_that_are_about_as_long_are_one_loop(line: Line) -> None:
    for steps in (100, 101, 60, 199):
        line.iterator(Walker(steps))

    assert [loop.record.iterators for loop in line.registry.all()] == [4]


def test_a_fit_that_resumes_plans_what_is_left_of_its_epochs(line: Line) -> None:
    loop = line.iterator(Walker(10), epochs=100, initial_epoch=90)
    line.registry.describe_keras(loop)

    assert line.registry.recorder.recording.notes == []
    assert loop.record.planned_steps == 100


@pytest.mark.parametrize(("role", "steps"), [("validation", 50), ("training", None)])
def test_an_evaluation_may_be_told_to_stop_after_some_steps(
    line: Line, role: LoopRole, steps: int | None
) -> None:
    assert line.iterator(Walker(None), role, steps=50).record.steps_given == steps
    assert line.iterator(Walker(None), "evaluate").record.steps_given is None


def test_a_fit_that_ends_in_its_first_step_keeps_its_data_no_longer(line: Line) -> None:
    mine = line.iterator(Walker(10))
    elsewhere = line.iterator(Walker(1000))
    ended = threading.Event()
    elsewhere.thread = threading.Thread(target=ended.wait)
    elsewhere.thread.start()
    line.registry.let_go_of_fits()
    kept = elsewhere.fit_frame
    ended.set()

    assert mine.fit_frame is None
    assert kept is not None


def test_two_threads_at_one_line_are_two_loops(line: Line) -> None:
    other = ThreadPoolExecutor(1)
    mine, others = line.iterator(None), other.submit(line.iterator, None).result()
    assert {loop.record.id for loop in (mine, others)} == {"loop1", "loop2"}
    assert line.iterator(None) is mine


def test_the_time_is_noted_at_which_the_script_lets_go_of_an_iterator(line: Line) -> None:
    line.iterator(None)
    iterator = Walker(None)
    data: Any = SimpleNamespace(element_spec=None)
    consumer = line.registry.consumer_for(iterator, data, distributed=False)
    assert consumer.left_ns is None
    del iterator
    assert consumer.left_ns is not None


def made_at(line: Line, *lines: int) -> Any:
    """Return a dataset that calls at these lines have made, the last one first."""
    operations = line.registry.recorder.recording.operations
    first = len(operations)
    for number, at in enumerate(lines, first):
        parents = [f"op{number + 1}"] if at != lines[-1] else []
        operations.append(RecordedOperation(f"op{number}", "map", "", "train.py", at, parents))
    return SimpleNamespace(element_spec=None, operation=f"op{first}")


@pytest.fixture
def own(line: Line, monkeypatch: pytest.MonkeyPatch) -> Line:
    """Iterators of the script's own over datasets that the plan knows."""
    plan: Any = line.registry.plan
    plan.operation_of = lambda dataset: dataset.operation
    plan.enter_earlier = lambda _: None
    known = staticmethod(lambda dataset: dataset if hasattr(dataset, "operation") else None)
    monkeypatch.setattr(ToyRuntime, "original_of", known)
    return line


def test_one_line_that_trains_on_one_dataset_and_validates_on_another_is_two_loops(
    own: Line,
) -> None:
    train, valid = made_at(own, 4, 3), made_at(own, 5, 3)
    seen = []
    for data in (train, valid, train, made_at(own, 5, 3), made_at(own, 4, 4, 3)):
        seen.append(own.iterator(None, dataset=data))
        seen[-1].record.steps += 10

    assert [loop.record.id for loop in seen] == ["loop1", "loop2", "loop1", "loop2", "loop1"]


@pytest.mark.parametrize(
    ("held", "taken", "steps"),
    [(500, 100, 100), (50, 100, 50), (-1, 100, 100), (500, None, 500), (-1, None, None)],
)
def test_a_loop_has_the_steps_that_it_takes_of_its_data(
    held: int, taken: int | None, steps: int | None, own: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "most_taken", lambda _: taken)
    monkeypatch.setattr(ToyRuntime, "describe_dataset", lambda _, data, __: data)
    data = made_at(own, 4)
    own.registry.recorder.recording.operations[-1].cardinality = held

    assert own.iterator(None, dataset=data).record.data_steps == steps


def test_iterators_for_the_same_steps_are_of_one_loop(own: Line) -> None:
    """As those of `zip(one, other)`, in the first epoch and in the next one."""
    one, other = made_at(own, 4), made_at(own, 5)
    first = [own.iterator(None, dataset=data) for data in (one, other)]
    first[0].record.steps = 10
    second = [own.iterator(None, dataset=data) for data in (one, other, None)]

    assert {loop.record.id for loop in (*first, *second)} == {"loop1"}


@pytest.mark.parametrize(
    ("order", "joined", "rounds"),
    [
        ("train valid train valid other", False, [20, 20, 40]),
        ("train valid train", True, [40, 40]),  # as of `zip`: each step draws from both
        ("first other other other", False, [40, 40]),  # no turns
    ],
)
def test_rounds_that_hand_on_one_dataset_each_in_turn_are_shared(
    order: str, joined: bool, rounds: list[int], own: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "rounds_around", lambda _: 40)
    made = {name: made_at(own, line) for line, name in enumerate(sorted({*order.split()}), 4)}
    for name in order.split():
        loop = own.iterator(None, dataset=made[name])
        loop.record.steps = 10
        if joined and name == "valid":
            loop.record.part_of = "loop1"

    assert [loop.record.planned_rounds for loop in own.registry.all()] == rounds


def test_no_evaluation_or_loop_of_the_scripts_own_begins_another(line: Line) -> None:
    for steps in (10, 1000):
        line.iterator(Walker(steps), role="evaluate")
        line.iterator(None)

    assert [loop.record.role for loop in line.registry.all()] == ["evaluate", "other"]


@pytest.mark.parametrize(
    ("steps", "per_call", "last"),
    [(29, 1, False), (30, 1, True), (31, 1, False), (30, 8, True), (32, 8, True), (40, 8, False)],
)
def test_a_loops_last_batch_is_that_of_its_first_fit(steps: int, per_call: int, last: bool) -> None:
    loop = training_loop(steps=steps, planned_steps=30, batches_per_call=per_call)

    assert loop.at_last_batch is last
    assert not training_loop(steps=steps, planned_steps=None).at_last_batch


KERAS = {"kind": "keras"}
OWN = {"kind": "eager"}


@pytest.mark.parametrize(
    ("facts", "epoch_steps", "epochs", "left"),
    [
        ({**KERAS, "planned_steps": 30}, 12, 4, 20),
        ({**KERAS, "planned_steps": 8}, None, None, 0),
        # Of data of unknown length the first epoch tells.
        ({**KERAS, "planned_steps": None}, 12, 4, 38),
        ({**KERAS, "planned_steps": None}, None, 4, None),
        ({**KERAS, "planned_steps": None}, 12, 1, None),
        # A loop of the script's own has the epochs that the source tells.
        ({**OWN, "planned_rounds": 4}, 12, None, 38),
        ({**OWN, "planned_rounds": 4}, None, None, None),
        ({**OWN, "planned_rounds": None}, 12, None, None),
        ({**OWN, "planned_rounds": 4, "data_steps": 12}, None, None, 38),
        ({**OWN, "planned_rounds": 1, "data_steps": 12}, None, None, 2),
        ({**OWN, "planned_rounds": 1, "data_steps": 9}, None, None, None),
        # Two epochs were begun; where they had more batches, only a first call was limited.
        ({**OWN, "planned_rounds": 4, "data_steps": 5, "iterators": 2}, None, None, 10),
        ({**OWN, "planned_rounds": 4, "data_steps": 4, "iterators": 2}, None, None, None),
        ({**OWN, "planned_rounds": 4, "data_steps": 4, "iterators": 2}, 9, None, 26),
    ],
)
def test_what_tells_the_steps_that_are_left(
    facts: dict[str, Any], epoch_steps: int | None, epochs: int | None, left: int | None
) -> None:
    loop = training_loop(steps=10, **facts)
    loop.record.epoch_steps = epoch_steps
    loop.record.keras = SimpleNamespace(epochs=epochs) if epochs else None  # type: ignore[assignment]

    assert loop.steps_left == left
    assert loop.at_last_batch is (left == 0 and facts.get("planned_steps") != 8)


def test_the_time_that_is_left_holds_what_lies_between_epochs() -> None:
    loop = training_loop(steps=10, planned_rounds=2, elapsed_ns=10 * SECOND)
    loop.record.kind = "eager"
    loop.record.data_steps = 10
    assert loop.seconds_left == 10
    loop.record.asked_ns, loop.record.last_ns = 0, 30 * SECOND
    loop.record.set_aside_ns = 5 * SECOND
    assert loop.seconds_left == 25


class Data:
    """A dataset of the script's, to which there may be weak references."""

    element_spec = None


def test_what_is_evaluated_on_is_kept_once_that_is_asked_for(line: Line) -> None:
    dataset = Data()
    loop = line.iterator(Walker(None), "validation", dataset)
    assert loop.dataset is None
    gone = line.iterator(Walker(None), "evaluate", Data())
    line.registry.keep_evaluated()
    assert loop.dataset is dataset
    assert gone.dataset is None, "it lives no longer than natively"


@pytest.fixture
def record() -> RecordedLoop:
    return make_recorded_loop(steps=0, elapsed_ns=0)


def begin_steps(loop: Loop, *times_ns: int, wait_ns: int | None = None) -> None:
    for now_ns in times_ns:
        interruption, loop.interruption = loop.interruption, None
        loop.step_begins(now_ns, wait_ns, interruption, counts=True)


def test_batches_asked_for_by_python_are_waited_for_between_the_epochs(
    record: RecordedLoop,
) -> None:
    loop = Loop(record, ToyRuntime())
    begin_steps(loop, 100, wait_ns=60)
    begin_steps(loop, 200, wait_ns=5)
    begin_steps(loop, 210, wait_ns=5)
    loop.interruption = Interruption(220)
    begin_steps(loop, 300, wait_ns=50)
    begin_steps(loop, 310, wait_ns=5)

    assert (record.asked_ns, record.warm_ns, record.last_ns) == (40, 200, 310)
    assert record.epoch_boundaries == [RecordedBoundary(220, 250, 300)]


def test_a_call_that_asks_for_its_batch_holds_the_wait(record: RecordedLoop) -> None:
    loop = Loop(record, ToyRuntime())
    begin_steps(loop, 100, 200, 210, 220)
    # The call at 220 has found no batch.
    loop.interruption = Interruption(221)
    begin_steps(loop, 250, 290, 300)

    assert record.epoch_boundaries == [RecordedBoundary(221, 250, None, first_step_ns=40)]


def test_an_epoch_s_first_call_that_traces_does_not_tell_its_wait(record: RecordedLoop) -> None:
    """As the first one of each fold, where the model is built anew."""
    loop = Loop(record, ToyRuntime())
    begin_steps(loop, 100, 200, 210)
    loop.interruption = Interruption(211)
    begin_steps(loop, 250)
    loop.traced()
    begin_steps(loop, 900)
    loop.interruption = Interruption(901)
    begin_steps(loop, 940, 980)

    assert [boundary.first_step_ns for boundary in record.epoch_boundaries] == [None, 40]


def test_trials_and_our_own_work_are_set_aside(record: RecordedLoop) -> None:
    loop = Loop(record, ToyRuntime())
    loop.set_aside(7)
    begin_steps(loop, 100, 200, 210, wait_ns=1)
    loop.set_aside(4)
    loop.interruption = Interruption(by_trials=True)
    begin_steps(loop, 900, wait_ns=1)
    begin_steps(loop, 910, wait_ns=1)

    assert record.epoch_boundaries == []
    assert record.set_aside_ns == 4 + (899 - 210)
