"""Measurements of a program's own training, one at a time."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from pipediag.capture import Capture
from pipediag.capture.callsites import CallSite
from pipediag.capture.signals import let_pass
from pipediag.errors import PipediagError
from pipediag.library.companion_process import CompanionProcess
from pipediag.library.notebook import in_notebook
from pipediag.library.result import OwnDirectory, Result
from pipediag.runner.output import prepare_output
from pipediag.session.files import SESSION_FILE
from pipediag.session.messages import Ended, NotSaved, RunSettings, Started
from pipediag.session.store import load_session
from pipediag.vocabulary import Call

NO_FILE = "<python>"
"""Stands for the script where the caller is in no file."""
_RUN_BY_COMMAND = (
    "this program is run by `pipediag analyze`, which measures all of it. Nothing was measured by "
    "this call. Run the program by itself, or remove the call."
)
_ANOTHER = (
    "another analysis is running in this process. Nothing was measured. Call this one when that "
    "has ended."
)

_LOCK = threading.Lock()
"""Held while something is measured: two measurements would measure each other."""
_end_current: Callable[[], None] | None = None


def acquire(end_if_over: Callable[[], None] | None = None) -> None:
    """Begin to measure; `release` has to follow.

    `end_if_over` is called when another measurement wants to begin. Raises PipediagError: the
    command or another call is measuring.
    """
    global _end_current  # noqa: PLW0603 - goes with the lock
    if "pipediag.child" in sys.modules:
        raise PipediagError(_RUN_BY_COMMAND)
    if _end_current is not None:
        _end_current()
    if not _LOCK.acquire(blocking=False):
        raise PipediagError(_ANOTHER)
    _end_current = end_if_over


def release() -> None:
    """Let other measurements begin."""
    global _end_current  # noqa: PLW0603 - goes with the lock
    _end_current = None
    _LOCK.release()


class Measurement:
    """A measurement from installing the hooks to its session.

    Attributes:
        capture: what records in this process.
    """

    def __init__(
        self,
        call: Call,
        site: CallSite | None,
        *,
        out: Path | None = None,
        steps: int | None = None,
        budget_s: float | None = None,
        before_training: Callable[[], None] = lambda: None,
        end_if_over: Callable[[], None] | None = None,
    ) -> None:
        """Begin, or raise PipediagError where nothing can be measured.

        `budget_s` is for trials in a training that is stopped when all is measured; None is for one
        that goes on to its end. `before_training` is called before the first step, `end_if_over`
        when another measurement wants to begin.
        """
        began_ns = time.monotonic_ns()
        self._kept = out is not None
        self._stops = budget_s is not None
        with ExitStack() as undo:
            acquire(end_if_over)
            undo.callback(release)
            self._temporary = OwnDirectory()
            undo.callback(self._temporary.cleanup)
            place = out or Path(self._temporary.name)
            self._output = prepare_output(place, force=False, option="`out`")
            undo.callback(self._output.abandon)
            settings = RunSettings(
                script=site.file if site is not None else NO_FILE,
                args=(),
                module=False,
                capture_directory=str(self._output.capture),
                steps=steps,
                run_to_end=not self._stops,
                look_ahead_s=0.0 if self._stops else RunSettings.look_ahead_s,
                call=call,
            )
            self._companion = CompanionProcess(
                settings,
                self._output.path,
                budget_s=budget_s or 0.0,
                kept=self._kept,
                printed=self._stops and in_notebook(),
            )
            undo.callback(self._companion.kill)
            teller = self._companion.teller
            self.capture = Capture(self._companion.settings, teller, program_goes_on=True)
            undo.callback(self.capture.leave_alone, stopped=self._stops)
            self.capture.install_in(before_training)
            teller.tell(Started())
            self.capture.script_begins(began_ns)
            undo.pop_all()

    def leave(self, ended: Ended) -> None:
        """Take the hooks off."""
        teller = self._companion.teller
        try:
            self.capture.script_ended(ended.outcome)
        except Exception as problem:  # noqa: BLE001 - what was recorded by then is saved
            let_pass(problem)
            teller.tell(NotSaved(f"{type(problem).__name__}: {problem}"))
        finally:
            self.capture.leave_alone(stopped=self._stops)
        teller.tell(ended)

    def give_up(self) -> None:
        """Drop the session, once the hooks are off."""
        self._abandon()
        release()

    def finish(self) -> Result:
        """Wait for the session, once the hooks are off. Raises PipediagError where it fails."""
        try:
            self._companion.finish()
            session = load_session(self._output.path / SESSION_FILE)
        except PipediagError:
            self._temporary.cleanup()
            raise
        except BaseException:
            self._abandon()
            raise
        finally:
            self._output.release()
            release()
        if self._kept:
            self._temporary.cleanup()
            return Result(session, self._output.path)
        return Result(session, None, measured_in=self._temporary)

    def _abandon(self) -> None:
        self._companion.kill()
        self._output.abandon()
        self._temporary.cleanup()
