"""What is noted of short steps and told together is what would have been told of each."""

from __future__ import annotations

import threading
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.loops.loop import Consumer, Loop
from pipediag.capture.watching import loop_choice, step_clock
from pipediag.capture.watching.step_parts import Streak
from tests.capture.watching.clocks import FakeDiagnosis, Stage


class EveryFourth(FakeDiagnosis):
    spares = True

    def __init__(self, loop: Loop, instruments: Any) -> None:
        super().__init__(loop, instruments)
        self.told: list[tuple[int, int | None, bool]] = []

    @property
    def spare_steps(self) -> int:  # type: ignore[override]
        return 3 - len(self.told) % 4 if self.spares else 0

    def boundary(self, consumer: Any, now_ns: int, wait_ns: int | None, continuous: bool) -> None:
        self.told.append((now_ns, wait_ns, continuous))


def _training(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    spares: bool,
    diagnosis: type[EveryFourth] = EveryFourth,
    *,
    run_to_end: bool = False,
) -> tuple[Stage, Consumer]:
    monkeypatch.setattr(loop_choice, "Diagnosis", diagnosis)
    monkeypatch.setattr(EveryFourth, "spares", spares)
    path.mkdir()
    stage = Stage(path, run_to_end=run_to_end)
    clock = SimpleNamespace(monotonic_ns=lambda: stage.now)
    monkeypatch.setattr(step_clock, "time", clock)
    consumer = stage.consumer()
    for _ in range(3):
        stage.step(consumer, trains=True)
    return stage, consumer


def _epochs_and_validation(stage: Stage, consumer: Consumer) -> dict[str, Any]:
    validation = stage.consumer()
    for steps in (1, 2, 3, 4, 5, 6, 7, 8, 13):
        for step in range(steps):
            stage.step(consumer, trains=True, wait_ns=step)
        stage.now += 100
        if steps % 3 == 0:
            stage.clock.epoch_ended(stage.now)
        elif steps % 3 == 1:
            stage.clock.exhausted(consumer)
        else:
            stage.step(validation)
    stage.clock.script_over("the script finished")
    diagnosis = consumer.loop.diagnosis
    return {
        "record": asdict(consumer.loop.record),
        "batches": consumer.batches,
        "told": diagnosis.told,
        "boundaries": diagnosis.boundaries,
        "last": consumer.loop.last_ns,
        "timeline": stage.timeline.told,
    }


def test_streaks_change_nothing_of_what_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = _epochs_and_validation(*_training(tmp_path / "noted", monkeypatch, spares=True))
    each = _epochs_and_validation(*_training(tmp_path / "each", monkeypatch, spares=False))

    assert noted == each
    assert len(noted["told"]) > 40


class OverAtTheThird(EveryFourth):
    spares = False

    @property
    def measuring(self) -> bool:
        return len(self.told) < 3


@pytest.mark.parametrize("spare", [1, 7, 500])
def test_once_measured_steps_are_noted_and_counted_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spare: int
) -> None:
    found = []
    for steps in (0, spare):
        monkeypatch.setattr(loop_choice, "_SPARE_ONCE_MEASURED", steps)
        stage, consumer = _training(
            tmp_path / str(steps), monkeypatch, False, OverAtTheThird, run_to_end=True
        )
        found.append(_epochs_and_validation(stage, consumer))

    assert found[0] == found[1]
    assert found[0]["record"]["steps"] == 52


def test_steps_decide_each_where_a_later_loop_is_waited_for_until_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage, consumer = _training(
        tmp_path / "one", monkeypatch, False, OverAtTheThird, run_to_end=True
    )
    choice = stage.clock.choice
    stage.step(consumer)
    assert choice.spare_steps(consumer.loop) > 0
    choice.deadline_ns = 10**15
    assert choice.spare_steps(consumer.loop) == 0


def test_another_thread_with_the_same_iterator_is_told_of_at_once() -> None:
    told: list[int] = []
    streak = Streak(lambda _, began_ns, __: told.append(began_ns))
    consumer: Any = object()
    streak.begins(consumer, 5)
    taken: list[bool] = []

    def elsewhere() -> None:
        taken.append(streak.handed(consumer, 1, 2))
        streak.settle()

    assert streak.handed(consumer, 10, 20)
    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()

    assert (taken, told) == ([False], [])
    streak.settle()
    assert told == [20]
    assert not streak.handed(consumer, 30, 40)
