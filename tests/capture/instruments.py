"""A framework, instruments and signals, played: no TensorFlow, and windows of a few steps."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pipediag.capture.loops.loop import Consumer, Loop
from pipediag.capture.measuring.windows import Instruments
from pipediag.capture.recorder import Recorder
from pipediag.capture.runtime import IteratorModel, StepTables, UnreadableStepError
from pipediag.session.messages import FromChild
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recording import RecordedStacks


class ToyRuntime:
    def __init__(self) -> None:
        self.no_models: str | None = "A toy tells nothing while it runs."
        self.models: list[IteratorModel] = []
        """What pipelines will tell, in turn."""
        self.tables: StepTables | None = None
        self.others: str | None = None

    def rows(self, batch: Any) -> int | None:
        return len(batch)

    def pull(self, iterator: Iterator[Any]) -> Any:
        return next(iterator)

    def handing_out(self, batch: Any, element_spec: Any, times: int | None = None) -> Any:
        return itertools.repeat(batch) if times is None else itertools.repeat(batch, times)

    def not_handed_once(self, iterator: Any, element_spec: Any) -> str | None:
        return None

    def step_tables(self, functions: Sequence[Any]) -> StepTables:
        if self.tables is None:
            raise UnreadableStepError("A toy has no tables.")
        return self.tables

    def unobserved(self, dataset: Any) -> Any:
        return iter(dataset)

    def original_of(self, dataset: Any) -> Any:
        return None

    def describe_dataset(self, dataset: Any, record: RecordedLoop) -> None:
        record.element_spec = "a list"

    def model_of(self, iterator: Any) -> IteratorModel | None:
        return self.models.pop(0) if self.models else None

    def handles_of(self, iterators: Sequence[Any]) -> list[Any]:
        return list(iterators)

    def other_processes(self) -> str | None:
        return self.others

    def settled_ns(self, now_ns: int) -> int:
        return now_ns


class CountingPace:
    warmup = 1
    baseline = 2
    block = 1000
    stacks = 1
    ids = 2
    profile = 1
    repeat = 3
    decide_every = 1
    ends = True

    rehearsal = False
    waits = False

    def __init__(self) -> None:
        self.settings: Any = SimpleNamespace(
            run_to_end=False, hold_loop=None, loop=None, input_only=False
        )

    def warmed_up(self, durations: list[int], *_: Any) -> tuple[bool, bool]:
        return len(durations) >= self.warmup, True

    def baseline_done(self, count: int, *_: Any) -> bool:
        return count >= self.baseline

    def block_done(self, count: int, *_: Any) -> bool:
        return count >= self.block

    def steps_to_skip(self, _: float) -> int:
        return 0

    def steps_between_decisions(self, _: float) -> int:
        return self.decide_every

    def enough(self, window: str, count: int, *_: Any) -> bool:
        limits: dict[str, int] = vars(CountingPace) | vars(self)
        return count >= limits[window]

    def waits_for_epoch_end(self, loop: Loop, _waited_ns: int) -> bool:
        return self.waits and not loop.saw_undisturbed_end

    def ends_here(self, _: Loop) -> bool:
        return self.ends

    def may_be_a_rehearsal(self, _: float | None) -> bool:
        return self.rehearsal


class FakeProfiler:
    directory = Path("trace")
    script_is_profiling = False

    def __init__(self) -> None:
        self.running = False
        self.marked: list[int] = []
        self.started_up: list[int] = []

    def start(self, _: str) -> None:
        self.running = True

    def stop(self) -> None:
        self.running = False

    def mark_step(self, number: int) -> None:
        self.marked.append(number)

    def mark_start_up(self) -> None:
        self.started_up += self.marked[-1:]

    def end_mark(self) -> None: ...


class FakeState:
    def __init__(self) -> None:
        self.lack: str | None = None
        self.kept = False
        self.lost: str | None = None

    def keep(self) -> str | None:
        self.kept = self.lack is None
        return self.lack

    def give_back(self) -> None:
        self.kept = False

    def show(self) -> None: ...


class FakeSampler:
    running = 0

    def __init__(self, _: int) -> None:
        FakeSampler.running += 1

    def stop(self, loop_id: str, steps_ns: list[tuple[int, int]]) -> RecordedStacks:
        FakeSampler.running -= 1
        return RecordedStacks(loop_id, 0)


class FakeTimeline:
    in_a_call = False
    in_a_callback = False
    lines = False

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self.sites: list[Any] = []

    def begins(self, kind: str, name: str = "", _: Any = None) -> None:
        self.told.append((kind, name))

    def ended(self, _: Any) -> None: ...

    def passed(self, kind: str, _: int, __: int, name: str = "", site: Any = None) -> None:
        self.told.append((kind, name))
        self.sites.append(site)

    def steps_begin(
        self, loop_id: str, _: int, wait_ns: int | None, *, lines: bool = False
    ) -> None:
        self.told.append(("called" if wait_ns is None else "handed", loop_id))
        self.lines = lines

    def lines_in_steps(self, wanted: bool) -> None:
        self.lines = wanted

    def steps_ended(self, _: int) -> None:
        self.told.append(("ended", ""))

    def closed(self) -> None:
        self.told.append(("closed", ""))


class FakeInstruments:
    def __init__(self, directory: Path) -> None:
        self.file = directory / "recording.json"
        self.recorder = Recorder(self.file)
        self.profiler = FakeProfiler()
        self.pace = CountingPace()
        self.state = FakeState()
        self.timeline = FakeTimeline()
        self.told: list[FromChild] = []
        played: tuple[Any, ...] = self.recorder, self.profiler, self.pace, self.state
        others: tuple[Any, ...] = self.timeline, ToyRuntime(), self.told.append
        self.all = Instruments(*played, *others)

    @property
    def events(self) -> list[type[FromChild]]:
        return [type(message) for message in self.told]

    @property
    def windows(self) -> list[tuple[str, bool]]:
        return [(window.kind, window.complete) for window in self.recorder.recording.windows]


def training_loop(number: int = 1, **changes: Any) -> Loop:
    record = RecordedLoop(
        id=f"loop{number}",
        kind="eager",
        role="training",
        role_reason="",
        file=None,
        line=number,
        function=None,
        steps=0,
        elapsed_ns=0,
        updates_variables=True,
        started_ns=0,
        batch_size=8,
    )
    for name, value in changes.items():
        setattr(record, name, value)
    return Loop(record, runtime=ToyRuntime())


def consumer_of(loop: Loop, ordinal: int = 1) -> Consumer:
    return Consumer(loop, ordinal, lambda: None, None, None)  # type: ignore[arg-type]


class PreemptedError(Exception):
    """Of the script's own."""


@contextmanager
def handles_signals() -> Iterator[None]:
    def handler(*_: Any) -> None:
        raise PreemptedError

    usual = signal.signal(signal.SIGUSR1, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, usual)


def signal_arrives(*_: Any, **__: Any) -> None:
    os.kill(os.getpid(), signal.SIGUSR1)
