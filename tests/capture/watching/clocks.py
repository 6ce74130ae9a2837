"""A clock with hand-overs told by hand, and no TensorFlow."""

from __future__ import annotations

import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pipediag.capture.guard import Guard
from pipediag.capture.loops.loop import Consumer, Loop
from pipediag.capture.measuring.kept_state import KeptState
from pipediag.capture.measuring.pace import Pace
from pipediag.capture.measuring.schedule import Phase
from pipediag.capture.recorder import Recorder
from pipediag.capture.trying.trials import Trials
from pipediag.capture.watching.step_clock import StepClock
from pipediag.capture.watching.updates import UpdateWatch
from pipediag.session.messages import RunSettings
from pipediag.vocabulary import LoopKind, LoopRole
from tests.capture.instruments import FakeTimeline, training_loop

SECOND = 1_000_000_000


class FakeDiagnosis:
    lasts = 1000

    def __init__(self, loop: Loop, _: Any) -> None:
        self.loop = loop
        self.phase = Phase.WARMUP
        self.waits: list[int | None] = []
        self.boundaries = 0
        self.ended: str | None = None

    @property
    def measuring(self) -> bool:
        return self.phase is not Phase.DONE

    def boundary(self, consumer: Any, now_ns: int, wait_ns: int | None, continuous: bool) -> None:
        self.waits.append(wait_ns)
        if len(self.waits) > self.lasts:
            self.phase = Phase.DONE

    repeats = False
    looks = False
    spare_steps = 0

    def interrupted(self, consumer: Any, exhausted: bool) -> None:
        self.boundaries += 1

    def finish(self, reason: str) -> None:
        self.phase = Phase.DONE
        self.ended = reason

    def traced(self, *, again: bool) -> None: ...


class Stage:
    def __init__(
        self,
        path: Path,
        hold_loop: str | None = None,
        loop: int | None = None,
        *,
        run_to_end: bool = False,
    ) -> None:
        self.updates = UpdateWatch()
        self.recorder = Recorder(path / "recording.json")
        self.loops: list[Loop] = []
        self.left = False
        self.now = SECOND
        registry: Any = SimpleNamespace(
            all=lambda: self.loops, describe_keras=lambda loop: None, keep_evaluated=lambda: None
        )
        self.timeline = FakeTimeline()
        settings = RunSettings(
            "train.py", (), False, str(path), hold_loop=hold_loop, loop=loop, run_to_end=run_to_end
        )
        instruments: Any = SimpleNamespace(
            recorder=self.recorder,
            tell=lambda *_, **__: None,
            timeline=self.timeline,
            pace=Pace(settings),
            state=KeptState(Guard(self.recorder.note), self.recorder.note),
            descriptions=(),
            running_pipelines=list,
        )
        held = Trials(None, instruments)
        self.clock = StepClock(registry, self.updates, instruments, self.leave, held)

    def leave(self) -> None:
        self.left = True

    def consumer(
        self, role: LoopRole = "other", kind: LoopKind = "eager", batches_per_call: int = 1
    ) -> Consumer:
        number = len(self.loops)
        loop = training_loop(
            number + 1,
            id=f"loop{number}",
            kind=kind,
            role=role,
            line=None,
            updates_variables=False,
            started_ns=self.now,
            batches_per_call=batches_per_call,
        )
        self.loops.append(loop)
        return Consumer(loop, 1, weakref.ref(self), element_spec=None, dataset=None)

    def step(self, consumer: Consumer, trains: bool = False, wait_ns: int = 3) -> None:
        self.now += 10
        self.clock.handed_over(consumer, self.now - wait_ns, self.now, batch=None)
        if trains:
            self.updates.note()
