"""Whether the script goes on once a loop was measured, and how it is ended where it does not."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

from pipediag.capture.guard import attempt
from pipediag.capture.loops.loop import Loop
from pipediag.capture.measuring.instruments import Instruments
from pipediag.capture.stop_script import StopScript
from pipediag.session import messages
from pipediag.session.settings import RunSettings


class Stopping:
    """Ends the script once; one that swallows that is left by force."""

    def __init__(
        self,
        instruments: Instruments,
        settings: RunSettings,
        leave: Callable[[], None] | None,
        keep: Callable[[], None],
    ) -> None:
        self._with = instruments
        self._settings = settings
        self._leave = leave
        self._keep = keep
        self._raised = False
        self.deadline_ns: int | None = None
        """Until when later loops are waited for; None before any was measured."""
        self.kept_alive: list[Any] = []
        """Iterators of the script that was stopped; the process ends without freeing them."""

    def goes_on_after(self, loop: Loop) -> bool:
        """Whether the script goes on when this loop was measured."""
        if self._settings.run_to_end:
            return True
        if self._with.state.lost is not None:
            return False
        ends = self._with.pace.ends_here(loop.seconds_left, followed=loop.may_be_followed)
        return not ends and not self._was_disturbed()

    def go_on_or_stop(self, loop: Loop) -> None:
        """Go on to see later loops, where that is cheap, or stop the script.

        Raises:
            StopScript: it is stopped.
        """
        if self._settings.run_to_end:
            return
        if not self.goes_on_after(loop):
            self.stop()
        elif self.deadline_ns is None:
            self.deadline_ns = time.monotonic_ns() + int(self._settings.look_ahead_s * 1e9)

    def stop_the_disturbed(self) -> None:
        """Stop a script that can't go on, as a repeated batch has trained its model wrongly.

        Raises:
            StopScript: it is one.
        """
        if self._was_disturbed() and not self._settings.run_to_end:
            self.stop()

    def stop(self) -> None:
        """End the script here; one that swallows the exception is left by force the next time.

        Raises:
            StopScript: always, unless the process ends.
        """
        if self._raised and self._leave is not None:
            self._leave()
        self.time_a_collection()
        self._raised = True
        self._with.timeline.closed()
        self._with.state.give_back()
        self.keep_pipelines()
        self._keep()
        self._with.tell(messages.Stopping())
        self._with.recorder.recording.stop_reason = "enough was measured"
        raise StopScript

    def time_a_collection(self) -> None:
        """It tells what the script's exit would take, which nobody sees: its process is left.

        Of a script that is to be stopped, before that is held: its run is told then.
        """
        recorder = self._with.recorder
        if self._leave is not None and not recorder.recording.collection_ns and gc.isenabled():
            attempt(recorder.note, "timing a collection", self._collect)

    def _collect(self) -> None:
        recorder = self._with.recorder
        began_ns = time.monotonic_ns()
        gc.collect()
        recorder.recording.collection_ns = time.monotonic_ns() - began_ns
        self._with.timeline.passed("aside", began_ns, time.monotonic_ns())
        recorder.save()

    def keep_pipelines(self) -> None:
        """Keep the pipelines that run now until the process is gone."""
        self.kept_alive += self._with.running_pipelines()

    def _was_disturbed(self) -> bool:
        return any(
            window.kind == "repeat" and window.blocks
            for window in self._with.recorder.recording.windows
        )
