"""A window while it is measured, in blocks that hold what tf.data measured of their steps, and the
use of TensorFlow's profiler, which gives way to the script's own."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipediag.capture.callsites import call_site
from pipediag.capture.guard import Guard
from pipediag.capture.loops.loop import Consumer, Loop
from pipediag.capture.measuring.kept_state import KeptState
from pipediag.capture.measuring.pace import Pace
from pipediag.capture.process import let_pass
from pipediag.capture.recorder import Description, Recorder
from pipediag.capture.runtime import IteratorModel, Runtime
from pipediag.capture.timeline import Timeline
from pipediag.session.messages import FromChild
from pipediag.session.recording import ModelSnapshot, RecordedBlock, RecordedWindow
from pipediag.trace import START_UP, STEP_MARKER
from pipediag.vocabulary import WindowKind


class Profiler:
    """One profiling session at a time; the script's calls go before ours."""

    def __init__(self, recorder: Recorder, directory: Path) -> None:
        self._recorder = recorder
        self._root = directory
        self.directory = directory
        """Directory of the last profile: each loop has its own."""
        self._session: Any = None
        self._marker: Any = None
        self._module: Any = None

    def install(self, profiler_v2: Any, guard: Guard) -> None:
        self._module = profiler_v2
        native = profiler_v2._pywrap_profiler

        class Sessions:
            """The native module as the script sees it: our session ends where its own begins."""

            def __getattr__(self, name: str) -> Any:
                return getattr(native, name)

        def session(*args: Any, **kwargs: Any) -> Any:
            return native.ProfilerSession(*args, **kwargs)

        sessions = Sessions()
        make_way = guard.entry("making way for the script's profiler", self._make_way, self._end)
        sessions.ProfilerSession = guard.before(session, make_way)  # type: ignore[attr-defined]
        self._native = native
        guard.replace(profiler_v2, "_pywrap_profiler", sessions)

    def _make_way(self, *_: Any, **__: Any) -> None:
        if self._session is not None:
            self.stop(save=False)
            self._conflict("pipediag's profile was cut off: attribution to operations is missing")
        else:
            self._conflict("its steps were left out of the baseline, as a profiler slows them down")

    def _end(self, *_: Any, **__: Any) -> None:
        """Give up our session, whatever fails: the script's own could not begin beside it."""
        session, self._session, self._marker = self._session, None, None
        if session is not None:
            with suppress(Exception):
                session.stop()

    def _conflict(self, consequence: str) -> None:
        site = call_site()
        place = f" at {site.file}:{site.line}" if site is not None else ""
        self._recorder.note(
            f"The script started TensorFlow's profiler itself{place}: {consequence}."
        )

    @property
    def script_is_profiling(self) -> bool:
        return self._module is not None and self._module._profiler is not None

    @property
    def running(self) -> bool:
        return self._session is not None

    def start(self, loop_id: str) -> str | None:
        """Begin the profile of a loop; returns why it could not, or None."""
        if self.script_is_profiling:
            return "the script's own profiler was running"
        self.directory = self._root / loop_id
        self.directory.mkdir(parents=True, exist_ok=True)
        session = self._native.ProfilerSession()
        try:
            # TensorFlow 2.21 refuses the levels with a warning each; its own are those we want.
            session.start(str(self.directory), {})
        except Exception as error:
            let_pass(error)
            return f"TensorFlow's profiler did not start: {error}"
        self._session = session
        return None

    def mark_step(self, step: int) -> None:
        """End the marker of the last step, if any, and begin that of the next."""
        from tensorflow.python.profiler import trace

        self.end_mark()
        self._marker = trace.Trace(STEP_MARKER, step_num=step)
        self._marker.__enter__()

    def mark_start_up(self) -> None:
        if self._marker is not None:
            self._marker.set_metadata(**{START_UP: 1})

    def end_mark(self) -> None:
        if self._marker is not None:
            self._marker.__exit__(None, None, None)
            self._marker = None

    def stop(self, save: bool = True) -> str | None:
        """End the profile and write it; returns why it could not, or None."""
        self.end_mark()
        session, self._session = self._session, None
        if session is None:
            return "the profile had been cut off"
        try:
            session.export_to_tb() if save else session.stop()
        except Exception as error:
            let_pass(error)
            return f"the profile could not be written: {error}"
        return None


@dataclass
class Instruments:
    recorder: Recorder
    profiler: Profiler
    pace: Pace
    state: KeptState
    timeline: Timeline
    runtime: Runtime
    tell: Callable[[FromChild], None]
    running_pipelines: Callable[[], list[Any]] = list
    """Handles of running pipelines, to be kept until the process is gone."""
    descriptions: Sequence[Description] = ()


class Window:
    """Collects steps; a block is a run of steps that nothing came between.

    Where a block ends by itself the pipeline's model is read and kept, in a few milliseconds.
    """

    def __init__(self, kind: WindowKind, loop: Loop, instruments: Instruments) -> None:
        """Open a window and enter it in the recording, marked incomplete until it is closed."""
        now, self._recording = time.monotonic_ns(), instruments.recorder.recording
        self._loop = loop
        self._with = instruments
        self.record = RecordedWindow(kind, loop.record.id, now, now, complete=False)
        self._recording.windows.append(self.record)
        self.count = 0
        self.block = RecordedBlock()

    def add(self, start_ns: int, duration_ns: int, wait_ns: int | None) -> None:
        block = self.block
        block.starts_ns.append(start_ns)
        block.durations_ns.append(duration_ns)
        if wait_ns is not None:
            block.waits_ns.append(wait_ns)
        self.count += 1
        self.record.end_ns = start_ns + duration_ns

    def end_block(self, consumer: Consumer) -> IteratorModel | None:
        model = self.snapshot(consumer)
        # A step that begins by a call has not asked for its batch yet.
        self.close_block(model, last_gap_unknown=consumer.hand_over == "call")
        return model

    def interrupted(self, consumer: Consumer, exhausted: bool) -> None:
        """End a block that something else than a step follows, maybe the end of the data."""
        if self.block.durations_ns:
            model = self._loop.runtime.model_of(consumer.iterator())
            unknown = exhausted and consumer.hand_over == "call"
            self.close_block(model, int(exhausted), last_gap_unknown=unknown)

    def close_block(
        self,
        model: IteratorModel | None = None,
        unfinished: int = 0,
        *,
        last_gap_unknown: bool = False,
    ) -> None:
        """End the block with the gap times of its steps, without the last `unfinished` ones."""
        block, self.block = self.block, RecordedBlock()
        if not block.durations_ns:
            return
        # Gap times of a loop with several iterators hold waits for the others.
        if model is not None and not self._loop.joined:
            gaps = model.gaps_us[: len(model.gaps_us) - unfinished]
            block.gaps_us = gaps[-len(block.durations_ns) * self._loop.record.batches_per_call :]
            block.last_gap_unknown = last_gap_unknown
        self.record.blocks.append(block)

    def snapshot(self, consumer: Consumer) -> IteratorModel | None:
        """Record the pipeline's model, if it has one, and return it; two of them give rates."""
        loop = self._loop
        model = loop.runtime.model_of(consumer.iterator())
        if model is not None:
            self._recording.snapshots.append(
                ModelSnapshot(
                    loop_id=loop.record.id,
                    iterator=consumer.ordinal,
                    iterator_steps=consumer.batches,
                    nodes=model.nodes,
                    output_id=model.output_id,
                )
            )
        elif loop.runtime.no_models is not None:
            self._with.recorder.note(loop.runtime.no_models)
        return model

    def spans_ns(self) -> list[tuple[int, int]]:
        """Return begin and end of each block so far, the open one among them."""
        return [
            (block.starts_ns[0], block.starts_ns[-1] + block.durations_ns[-1])
            for block in (*self.record.blocks, self.block)
            if block.starts_ns
        ]

    def steps_ns(self) -> int:
        return sum(sum(block.durations_ns) for block in (*self.record.blocks, self.block))

    def close(self, reason: str | None = None) -> None:
        """End the window, which is complete unless there is a reason why not; its last block is
        kept without gap times if it is still open."""
        self.close_block()
        self.record.complete = reason is None
        self.record.reason = reason


_DRAINED_SHARE = 0.2
"""Own choice: where one batch in five came from the stock, its pace is not the pipeline's."""
_BUFFERS = ("Prefetch", "ParallelMap", "MapAndBatch", "ParallelBatch")


def lived_on_a_stock(before: IteratorModel | None, after: IteratorModel | None) -> bool:
    """Return True if a buffer has shrunk by a part of what it handed out, even one further up."""
    if before is None or after is None:
        return False
    was = {(node.id, node.name): node for node in before.nodes if node.name.startswith(_BUFFERS)}
    for node in after.nodes:
        known = was.get((node.id, node.name))
        if known is not None and node.num_elements > known.num_elements:
            shrunk = known.buffered_elements - node.buffered_elements
            if shrunk > _DRAINED_SHARE * (node.num_elements - known.num_elements):
                return True
    return False
