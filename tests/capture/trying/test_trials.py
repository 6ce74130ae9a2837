from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.guard import Guard
from pipediag.capture.link import NoCommandError
from pipediag.capture.loops.loop import Consumer
from pipediag.capture.measuring.kept_state import KeptState
from pipediag.capture.recorder import Recorder
from pipediag.capture.trying.trials import Trials
from pipediag.session.messages import FromChild, TrialsAwaited, TrialsOver
from pipediag.session.recorded_loops import RecordedBoundary
from tests.capture.instruments import CountingPace, ToyRuntime
from tests.recordings import make_block, make_window


class SilentParent:
    """A parent that asks for no trial."""

    def next(self) -> None:
        return None


class Stage:
    def __init__(self, directory: Path, commands: Any = None, only: str | None = None) -> None:
        self.recorder = Recorder(directory / "recording.json")
        self.told: list[FromChild] = []
        pace = CountingPace()
        pace.settings.hold_loop = only
        instruments: Any = SimpleNamespace(
            recorder=self.recorder,
            pace=pace,
            tell=self.told.append,
            state=KeptState(Guard(self.recorder.note), self.recorder.note),
        )
        self.held = Trials(commands or SilentParent(), instruments)
        record = SimpleNamespace(
            several_iterators=False,
            id="loop1",
            kind="keras",
            batches_per_call=1,
            untried=None,
            epoch_boundaries=[],
        )
        self.loop: Any = SimpleNamespace(
            record=record, dataset=None, model=None, runtime=ToyRuntime(), trainer=None
        )

    def hold(self) -> bool:
        return self.held.hold(self.loop, Consumer(self.loop, 1), more_to_come=False)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_a_fit_whose_steps_do_not_repeat_keeps_all_of_them(stage: Stage) -> None:
    assert not stage.hold()
    assert stage.told == []
    assert not stage.held.was_held(stage.loop)
    assert "nothing was tried in the running `fit`" in stage.loop.record.untried


def test_the_epoch_of_another_thread_repeats_no_step_of_this_one(stage: Stage) -> None:
    with stage.held.in_epoch(), ThreadPoolExecutor(1) as other:
        assert not other.submit(stage.hold).result()
        assert stage.loop.record.untried is not None
        assert stage.held.repeats_steps


def test_no_step_is_made_that_other_processes_would_wait_for(stage: Stage) -> None:
    stage.loop.runtime.others = "TF_CONFIG names 2 tasks"
    with stage.held.in_epoch():
        assert not stage.hold()

    assert stage.told == []
    assert "TF_CONFIG names 2 tasks" in stage.loop.record.untried
    assert "TF_CONFIG names 2 tasks" in stage.recorder.recording.notes[0]


class StuckParent:
    """A parent that asks for nothing and does not go."""

    def next(self) -> None:
        raise NoCommandError("it said nothing for 120 s")


def test_after_a_parent_that_said_nothing_no_other_loop_is_held(tmp_path: Path) -> None:
    stage = Stage(tmp_path, StuckParent())
    with stage.held.in_epoch():
        assert not stage.hold()
        assert stage.loop.record.untried is None
        assert stage.told[1:] == [TrialsOver("it said nothing for 120 s")]
        assert not stage.hold()
    assert len(stage.told) == 2
    assert "were cut off" in stage.loop.record.untried


@pytest.mark.parametrize(("only", "asked"), [(None, 1), ("loop1", 1), ("loop2", 0)])
def test_a_second_run_tries_the_pipeline_of_its_one_loop_alone(
    tmp_path: Path, only: str | None, asked: int
) -> None:
    stage = Stage(tmp_path, only=only)
    stage.loop.trains, stage.loop.dataset = True, object()
    stage.held.try_pipelines_alone([stage.loop])

    assert stage.held.may_hold(stage.loop) is bool(asked)
    awaited = [message for message in stage.told if isinstance(message, TrialsAwaited)]
    assert [message.alone for message in awaited] == [True] * asked


def loop_named(stage: Stage, name: str, *, trains: bool, seconds: int = 0) -> Any:
    record = SimpleNamespace(
        id=name,
        kind="keras",
        batches_per_call=1,
        untried=None,
        elapsed_ns=seconds,
        several_iterators=False,
        epoch_boundaries=[],
        evaluation=None if trains else object(),
    )
    return SimpleNamespace(**{**vars(stage.loop), "record": record, "trains": trains})


def test_behind_what_trains_the_longest_evaluation_has_its_pipeline_tried(stage: Stage) -> None:
    short, long = (loop_named(stage, f"{n} s", trains=False, seconds=n) for n in (1, 2))
    unseen, gone = (loop_named(stage, name, trains=False, seconds=9) for name in ("a", "b"))
    training = loop_named(stage, "training", trains=True)
    for loop in (short, long, unseen, training):
        loop.dataset = object()
    unseen.record.evaluation = None
    stage.held.try_pipelines_alone([short, long, unseen, gone, training])

    awaited = [message for message in stage.told if isinstance(message, TrialsAwaited)]
    assert [message.loop_id for message in awaited] == ["training", "2 s"]
    assert all(message.alone and not message.more_to_come for message in awaited)


@pytest.mark.parametrize("epoch_ended", [False, True])
def test_time_for_trials_counts_from_where_the_step_is_known(
    stage: Stage, epoch_ended: bool
) -> None:
    recording = stage.recorder.recording
    recording.windows = [
        make_window(kind, make_block(10, 10.0, start_ms=start_ms))
        for kind, start_ms in (("warmup", 0.0), ("baseline", 100.0), ("stacks", 200.0))
    ]
    since_ns = recording.windows[2].start_ns
    if epoch_ended:
        stage.loop.record.epoch_boundaries = [
            RecordedBoundary(since_ns - 40, since_ns - 30, since_ns - 20),
            RecordedBoundary(since_ns + 10, since_ns + 20, since_ns + 40),
            RecordedBoundary(since_ns + 50, since_ns + 60, None),
        ]
        since_ns += 30 + 10
    with stage.held.in_epoch():
        stage.hold()

    [awaited] = [one for one in stage.told if isinstance(one, TrialsAwaited)]
    assert awaited.since_ns == since_ns


def test_one_of_several_pipelines_that_a_step_draws_from_is_not_tried_alone(stage: Stage) -> None:
    stage.loop.trains, stage.loop.dataset = True, object()
    stage.loop.record.several_iterators = True
    stage.held.try_pipelines_alone([stage.loop])
    assert stage.told == []
