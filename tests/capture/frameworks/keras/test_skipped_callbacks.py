"""Steps without some of the callbacks, on a Keras in small that is hooked as the real one is."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.frameworks.keras import callbacks
from pipediag.capture.frameworks.keras.callbacks import named
from pipediag.capture.frameworks.keras.facts import describe_callback
from pipediag.capture.frameworks.keras.hooks import KerasHooks
from pipediag.capture.frameworks.keras.timed_calls import TimedCalls
from pipediag.capture.guard import Guard
from pipediag.capture.measuring.sampling import CALLBACK_CLOCK
from pipediag.capture.replay import NotReplayableError
from pipediag.session.edits import SkipCallback
from tests.capture.frameworks.keras.toy_keras import toy_keras
from tests.capture.instruments import FakeTimeline


class Stage:
    """Hooked callbacks, and trials that skip what they are told to."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.heard: list[tuple[str, str, int]] = []
        self.held = SimpleNamespace(loop="loop1", skipped=[])
        self.guard = Guard(self.notes.append)
        timeline: Any = FakeTimeline()
        nobody: Any = SimpleNamespace(epoch_ended=lambda: None, epoch_over=lambda: None)
        held: Any = self.held
        timed = TimedCalls(timeline, self.guard)
        hooks = KerasHooks(nobody, nobody, held, timed, self.guard)
        self.keras = toy_keras()
        self.keras.__name__ = self.keras.CallbackList.__module__
        dict(hooks.by_module())["keras.src.callbacks.callback_list"](self.keras)
        heard = self.heard

        class Hears(self.keras.Callback):  # type: ignore[misc, name-defined]
            def __init__(self, name: str) -> None:
                self.name = name

            def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
                heard.append((self.name, "begin", batch))

            def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
                heard.append((self.name, "end", batch))

        self.callback = Hears

    def listed(self, *names: str) -> Any:
        return self.keras.CallbackList([self.callback(name) for name in names])

    def of(self, name: str) -> list[tuple[str, int]]:
        return [(event, batch) for one, event, batch in self.heard if one == name]


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    stage = Stage()
    module = stage.keras.Callback.__module__
    monkeypatch.setitem(sys.modules, module, SimpleNamespace(__file__=stage.keras.__file__))
    return stage


def test_a_step_calls_all_but_those_left_out(stage: Stage) -> None:
    told = stage.listed("slow", "other")
    own = told.callbacks
    for batch, skipped in enumerate([[], [own[0]], []]):
        stage.held.skipped = skipped
        told.on_train_batch_begin(batch)
        told.on_train_batch_end(batch)

    assert stage.of("slow") == [("begin", 0), ("end", 0), ("begin", 2), ("end", 2)]
    assert stage.of("other") == [(event, n) for n in range(3) for event in ("begin", "end")]
    assert told.callbacks is own
    assert stage.notes == []


def test_an_arm_that_begins_or_ends_within_a_step_leaves_its_events_in_pairs(stage: Stage) -> None:
    told = stage.listed("slow", "other")
    told.on_train_batch_begin(0)
    stage.held.skipped = told.callbacks[:1]
    told.on_train_batch_end(0)
    told.on_train_batch_begin(1)
    stage.held.skipped = []
    told.on_train_batch_end(1)
    told.on_train_batch_begin(2)
    told.on_train_batch_end(2)

    assert stage.of("slow") == [("begin", 0), ("end", 0), ("begin", 2), ("end", 2)]


def test_another_fit_within_a_step_is_none_of_its_business(stage: Stage) -> None:
    told, within = stage.listed("slow"), stage.listed("inner")
    stage.held.skipped = list(told.callbacks)
    told.on_train_batch_begin(0)
    within.on_train_batch_begin(7)
    within.on_train_batch_end(7)
    told.on_train_batch_end(0)

    assert stage.heard == [("inner", "begin", 7), ("inner", "end", 7)]


def test_a_step_that_failed_is_forgotten_by_the_next_one(stage: Stage) -> None:
    told = stage.listed("slow")
    stage.held.skipped = list(told.callbacks)
    told.on_train_batch_begin(0)
    stage.held.skipped = []
    told.on_train_batch_begin(1)
    told.on_train_batch_end(1)

    assert stage.of("slow") == [("begin", 1), ("end", 1)]


def test_an_error_of_a_callback_is_the_scripts_and_leaves_its_list(stage: Stage) -> None:
    told = stage.listed("slow", "other")
    own = told.callbacks

    def fails(batch: int, logs: Any = None) -> None:
        raise ValueError("the script's own")

    own[1].on_train_batch_begin = fails
    stage.held.skipped = own[:1]
    with pytest.raises(ValueError, match="own"):
        told.on_train_batch_begin(0)

    assert told.callbacks is own


def test_what_a_callback_adds_to_the_list_stays_there(stage: Stage) -> None:
    told, late = stage.listed("slow", "other"), stage.callback("late")
    own = told.callbacks
    own[1].on_train_batch_begin = lambda batch, logs=None: told.callbacks.append(late)
    stage.held.skipped = own[:1]
    told.on_train_batch_begin(0)

    assert told.callbacks is own
    assert [one.name for one in own] == ["slow", "other", "late"]


def test_after_an_error_of_ours_all_of_them_are_called(stage: Stage) -> None:
    told = stage.listed("slow")
    stage.held.skipped = 3
    told.on_train_batch_begin(0)
    told.on_train_batch_end(0)

    assert stage.of("slow") == [("begin", 0), ("end", 0)]
    assert "trying steps without a callback" in stage.notes[0]


# Which callbacks an edit names.


def change_for(callback: Any) -> SkipCallback:
    known = describe_callback(callback)
    return SkipCallback(known.name, known.file, known.line)


def test_all_callbacks_of_a_class_are_named_by_it(stage: Stage) -> None:
    told = stage.listed("one", "two")
    told.callbacks.append(stage.keras.History())
    change = change_for(told.callbacks[0])

    assert change.callback == "Hears"
    assert (Path(change.file or "").name, change.hooks) == (Path(__file__).name, "batch")
    assert named(told, [change]) == told.callbacks[:2]


def test_what_is_not_there_or_not_called_between_steps_is_refused(stage: Stage) -> None:
    told = stage.listed("slow")
    change = change_for(told.callbacks[0])
    with pytest.raises(NotReplayableError, match="no callback Other"):
        named(told, [SkipCallback("Other", change.file, change.line)])
    with pytest.raises(NotReplayableError, match="no callback Hears"):
        named(told, [SkipCallback("Hears", "elsewhere.py", change.line)])
    told._async_train = True
    with pytest.raises(NotReplayableError, match="another thread"):
        named(told, [change])
    told.callbacks = tuple(told.callbacks)
    with pytest.raises(NotReplayableError, match="in a list"):
        named(told, [change])


def test_a_callback_that_only_hears_of_beginnings_is_called_between_steps(stage: Stage) -> None:
    class Begins(stage.keras.Callback):  # type: ignore[misc, name-defined]
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None: ...

    told = stage.keras.CallbackList([Begins()])
    told._async_train = True

    assert named(told, [change_for(told.callbacks[0])]) == told.callbacks


def test_callbacks_are_clocked_while_stacks_are_sampled(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = iter(range(0, 1000, 10))
    monkeypatch.setattr(callbacks.time, "monotonic_ns", lambda: next(moments))
    stage.held.loop = None
    listed = stage.listed("one", "two")
    own = listed.callbacks
    CALLBACK_CLOCK.start()
    listed.on_train_batch_begin(0)
    listed.on_train_batch_end(0)
    taken = CALLBACK_CLOCK.stop()
    listed.on_train_batch_end(1)

    assert taken == {"Hears": 40}
    assert listed.callbacks is own
    assert stage.of("two") == [("begin", 0), ("end", 0), ("end", 1)]
    assert stage.notes == []


def test_a_clock_that_fails_costs_no_callback_its_turn(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: Any) -> Any:
        raise RuntimeError("of ours")

    monkeypatch.setattr(callbacks, "ClockedCallbacks", fails)
    stage.held.loop = None
    listed = stage.listed("one")
    CALLBACK_CLOCK.start()
    listed.on_train_batch_begin(0)
    CALLBACK_CLOCK.stop()
    listed.on_train_batch_end(0)

    assert stage.of("one") == [("begin", 0), ("end", 0)]
    assert len(stage.notes) == 1
