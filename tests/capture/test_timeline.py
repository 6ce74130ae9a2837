"""The timeline of a script's thread: its spans, by threads and in forks, and their file."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipediag.capture import timeline as module
from pipediag.capture.timeline import DELETED, FULL, Timeline
from pipediag.session.store import read_timeline
from pipediag.session.timeline import SeenLine, SeenLines, Span

FEW_S = 10


class FakeSampler:
    def __init__(self, tell: Callable[[SeenLines], None]) -> None:
        self.tell = tell
        self.looks_at: int | None = None
        self.stopped = 0

    def go_on(self, thread: int) -> None:
        self.looks_at = thread

    def rest(self) -> None:
        self.looks_at = None

    def stop(self) -> None:
        self.looks_at = None
        self.stopped += 1

    def forget(self) -> None:
        self.looks_at = None


class TimelineStage:
    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0
        monkeypatch.setattr(module, "LineSampler", FakeSampler)
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic_ns=lambda: self.now))
        self.path = path / "capture" / "timeline.jsonl"
        self.path.parent.mkdir()
        self.notes: list[str] = []
        self.timeline = Timeline(self.path, self.notes.append)
        sampler: Any = self.timeline.sampler
        self.sampler: FakeSampler = sampler

    def at(self, now: int) -> Timeline:
        self.now = now
        return self.timeline

    @property
    def looks(self) -> bool:
        return self.sampler.looks_at is not None

    def sees(self, line: int) -> None:
        self.sampler.tell(
            SeenLines(self.now, self.now, (SeenLine("a.py", line, "<module>", False, 1),))
        )

    @property
    def spans(self) -> list[Span]:
        return read_timeline(self.path).spans

    @property
    def written(self) -> list[tuple[str, str, int, int | None]]:
        return [(span.kind, span.name, span.start_ns, span.end_ns) for span in self.spans]


def on_another_thread(does: Callable[[], Any]) -> Any:
    """What it returns there; the thread is gone afterwards."""
    with ThreadPoolExecutor(1) as other:
        return other.submit(does).result(FEW_S)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TimelineStage:
    return TimelineStage(tmp_path, monkeypatch)


def test_what_did_not_end_ends_with_what_it_is_in(stage: TimelineStage) -> None:
    stage.at(10).begins("script")
    fit = stage.at(20).begins("fit", "fit")
    left = stage.at(30).begins("callback", "Left")
    stage.at(35).steps_begin("loop1", 35, None)
    stage.at(50).ended(fit)
    stage.at(60).ended(left)

    assert stage.written == [
        ("script", "", 10, None),
        ("fit", "fit", 20, 50),
        ("callback", "Left", 30, 50),
        ("steps", "loop1", 35, 50),
    ]


def test_nothing_begins_after_the_end_but_what_pipediag_takes(stage: TimelineStage) -> None:
    stage.at(10).begins("script")
    stage.at(20).steps_begin("loop1", 20, None)
    stage.at(30).closed()
    assert stage.at(40).begins("fit") is None
    stage.at(40).steps_begin("loop1", 40, None)
    stage.at(50).closed()
    stage.at(60).passed("aside", 50, 60)

    assert stage.written == [
        ("script", "", 10, 30),
        ("steps", "loop1", 20, 30),
        ("aside", "", 50, 60),
    ]
    assert stage.sampler.stopped == 2


def test_lines_are_looked_at_outside_of_steps_and_evaluations_and_in_steps_that_only_read(
    stage: TimelineStage,
) -> None:
    looks = [stage.looks]
    stage.at(10).begins("script")
    stage.at(20).begins("fit")
    looks.append(stage.looks)
    stage.at(30).steps_begin("loop1", 30, 1)
    looks.append(stage.looks)
    on_another_thread(lambda: stage.at(33).lines_in_steps(True))
    looks.append(stage.looks)
    stage.at(35).lines_in_steps(True)
    looks.append(stage.looks)
    stage.at(40).steps_ended(40)
    stage.at(45).begins("callback")
    looks.append(stage.looks)
    evaluation = stage.at(50).begins("evaluation")
    looks.append(stage.looks)
    stage.at(60).ended(evaluation)
    looks.append(stage.looks)
    stage.at(80).closed()
    assert [*looks, stage.looks] == [False, True, False, False, True, True, False, True, False]


def test_a_thread_that_trains_while_the_main_one_waits_is_followed(stage: TimelineStage) -> None:
    stage.at(10).begins("script")

    def trains() -> int:
        fit = stage.at(20).begins("fit", "fit")
        stage.at(30).steps_begin("loop1", 30, 3)
        stage.at(40).steps_ended(40)
        assert stage.sampler.looks_at == threading.get_ident()
        stage.at(50).ended(fit)
        return threading.get_ident()

    other = on_another_thread(trains)
    assert stage.sampler.looks_at == other
    evaluation = stage.at(60).begins("evaluation", "evaluate")
    stage.at(70).ended(evaluation)
    assert stage.sampler.looks_at == threading.get_ident()
    stage.at(80).closed()

    assert stage.written == [
        ("script", "", 10, 80),
        ("fit", "fit", 20, 50),
        ("first_batch", "loop1", 27, 30),
        ("steps", "loop1", 30, 40),
        ("evaluation", "evaluate", 60, 70),
    ]


@pytest.mark.parametrize("open_call", ["fit", "evaluation", "callback"])
def test_a_call_of_another_thread_does_not_mix_with_one_that_is_followed(
    stage: TimelineStage, open_call: str
) -> None:
    stage.at(10).begins("script")
    call = stage.at(20).begins(open_call, "mine")  # type: ignore[arg-type]

    def calls() -> None:
        assert stage.at(30).begins("evaluation", "theirs") is None
        stage.at(35).passed("tracing", 30, 35)

    on_another_thread(calls)
    stage.at(50).ended(call)

    assert stage.written == [("script", "", 10, None), (open_call, "mine", 20, 50)]


def test_training_on_another_thread_goes_before_a_call_that_does_not_train(
    stage: TimelineStage,
) -> None:
    stage.at(10).begins("script")
    call = stage.at(20).begins("evaluation", "predict")
    fit = on_another_thread(lambda: stage.at(30).begins("fit", "fit"))
    stage.at(60).ended(fit)
    stage.at(70).ended(call)

    assert stage.written == [
        ("script", "", 10, None),
        ("evaluation", "predict", 20, 30),
        ("fit", "fit", 30, 60),
    ]


def test_steps_are_not_ended_by_another_thread(stage: TimelineStage) -> None:
    stage.at(20).steps_begin("loop1", 20, None)
    on_another_thread(lambda: stage.at(30).steps_ended(30))
    on_another_thread(lambda: stage.at(35).steps_begin("loop2", 35, None))
    on_another_thread(lambda: stage.at(36).begins("fit", "fit"))
    stage.at(40).steps_ended(40)

    assert stage.written == [("steps", "loop1", 20, 40)]


def test_what_follows_an_error_of_ours_is_not_known(stage: TimelineStage) -> None:
    stage.at(10).begins("script")
    stage.at(20).given_up()
    stage.at(50).closed()
    stage.at(60).passed("aside", 50, 60)

    assert stage.written == [("script", "", 10, None)]
    until_ns = read_timeline(stage.path).until_ns
    assert until_ns is not None
    assert stage.sampler.stopped == 2


def test_a_forked_child_writes_nothing(stage: TimelineStage) -> None:
    stage.at(10).begins("script")
    fit = stage.at(20).begins("fit")
    child = os.fork()
    if child == 0:
        try:
            stage.timeline.forked()
            stage.at(30).ended(fit)
            stage.at(30).begins("callback")
            stage.at(30).passed("aside", 20, 30)
            stage.sees(line=3)
            stage.at(30).given_up()
            stage.at(40).closed()
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0

    assert stage.written == [("script", "", 10, None), ("fit", "", 20, None)]
    assert read_timeline(stage.path).seen == []
    assert read_timeline(stage.path).until_ns is None


def test_a_full_file_says_until_when_all_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_LINES", 3)
    stage = TimelineStage(tmp_path, monkeypatch)
    stage.at(10).begins("script")
    stage.at(20).passed("aside", 10, 20)
    assert stage.notes == []
    callback = stage.at(30).begins("callback", "Costly")
    assert stage.notes == [FULL]
    stage.at(40).ended(callback)
    assert not stage.looks
    assert stage.at(50).begins("fit") is None
    stage.at(60).steps_begin("loop1", 60, 5)
    stage.at(70).steps_ended(70)
    stage.at(80).closed()

    assert stage.written == [
        ("script", "", 10, None),
        ("aside", "", 10, 20),
        ("callback", "Costly", 30, None),
    ]
    assert read_timeline(stage.path).until_ns == 30
    assert len(stage.path.read_bytes().splitlines()) == 4
    assert stage.notes == [FULL]


def test_a_file_that_the_script_has_deleted_is_told_of(stage: TimelineStage) -> None:
    stage.at(10).begins("script")
    shutil.rmtree(stage.path.parent)
    stage.at(15).passed("aside", 10, 15)

    assert stage.written == [("aside", "", 10, 15)]
    assert stage.notes == [DELETED]
