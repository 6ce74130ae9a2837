"""A measurement of what a program does anyway: its training goes on to its own end."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pipediag.capture import Capture
from pipediag.capture.callsites import CallSite
from pipediag.capture.signal_handlers import let_pass
from pipediag.errors import PipediagError
from pipediag.library.beside import Beside
from pipediag.library.one_at_a_time import give_turn_back, take_turn, when_turn_is_wanted
from pipediag.library.own_directory import OwnDirectory
from pipediag.library.result import Result
from pipediag.runner.output import OutputDirectory, Refusal, prepare_output
from pipediag.session.files import SESSION_FILE
from pipediag.session.messages import Ended, NotSaved, Started
from pipediag.session.settings import RunSettings
from pipediag.session.store import load_session
from pipediag.vocabulary import Call

_NO_FILE = "<python>"
_REFUSAL = Refusal("Nothing is measured.", "choose another directory with `out`")


@dataclass(frozen=True)
class Wishes:
    """What is asked of a measurement.

    Raises:
        ValueError: what nobody can be given.
    """

    out: Path | None
    """Where the report goes; None keeps the result alone."""
    steps: int | None

    def __post_init__(self) -> None:
        if self.steps is not None and self.steps < 1:
            raise ValueError(f"steps is {self.steps}; it is 1 or more, or None.")


class Alongside:
    """From hooks in to hooks out. Nothing is stopped, and nothing of the training is put back."""

    def __init__(
        self,
        wishes: Wishes,
        call: Call,
        site: CallSite | None,
        end_if_over: Callable[[], None] | None = None,
    ) -> None:
        """Begin.

        Args:
            wishes: what is asked for.
            call: how it was asked for.
            site: from where.
            end_if_over: called when another measurement wants its turn.

        Raises:
            PipediagError: nothing can be measured here.
        """
        began_ns = time.monotonic_ns()
        take_turn(end_if_over)
        try:
            self._temporary = OwnDirectory()
            try:
                self._output = self._prepared(wishes.out)
                try:
                    self._begin(wishes, call, site, began_ns)
                except BaseException:
                    self._output.abandon()
                    raise
            except BaseException:
                self._temporary.cleanup()
                raise
        except BaseException:
            give_turn_back()
            raise

    def fit_goes_on(self) -> None:
        """A `fit` of Keras's, which has begun, is what is measured."""
        self._capture.fit_goes_on()

    def give_up(self) -> None:
        """The hooks are off, and no session is wanted."""
        self._beside.abandon()
        self._output.abandon()
        self._temporary.cleanup()
        give_turn_back()

    def finish(self) -> Result:
        """Wait for the session, once the hooks are off.

        Raises:
            PipediagError: it could not be made.
        """
        try:
            self._beside.finish()
            session = load_session(self._output.path / SESSION_FILE)
        except PipediagError:
            self._temporary.cleanup()
            raise
        except BaseException:
            self._beside.abandon()
            self._output.abandon()
            self._temporary.cleanup()
            raise
        finally:
            self._output.release()
            give_turn_back()
        if self._kept:
            self._temporary.cleanup()
            return Result(session, self._output.path)
        return Result(session, None, measured_in=self._temporary)

    def _prepared(self, out: Path | None) -> OutputDirectory:
        self._kept = out is not None
        return prepare_output(out or Path(self._temporary.name), force=False, refusal=_REFUSAL)

    def _begin(self, wishes: Wishes, call: Call, site: CallSite | None, began_ns: int) -> None:
        settings = RunSettings(
            script=site.file if site is not None else _NO_FILE,
            args=(),
            module=False,
            capture_directory=str(self._output.capture),
            steps=wishes.steps,
            run_to_end=True,
            budget_s=0.0,
            call=call,
        )
        self._beside = Beside(
            settings,
            self._output.path,
            budget_s=0.0,
            kept=self._kept,
        )
        try:
            teller = self._beside.teller
            self._capture = Capture(self._beside.settings, teller, program_goes_on=True)
            try:
                self._capture.install_in()
                teller.tell(Started())
                self._capture.script_begins(began_ns)
            except BaseException:
                self._capture.leave_alone(stopped=False)
                raise
        except BaseException:
            self._beside.abandon()
            raise

    def step_aside(self) -> None:
        """No hook does anything from here on; `leave` is still to come."""
        self._capture.step_aside()

    def leave(self, ended: Ended, *, when_wanted: Callable[[], None] | None = None) -> None:
        """Take the hooks off, and have the session made meanwhile.

        `when_wanted` is called when another measurement wants the turn before `finish`.
        """
        if when_wanted is not None:
            when_turn_is_wanted(when_wanted)
        teller = self._beside.teller
        try:
            self._capture.script_ended(ended.outcome, ended.status, ended.error)
        except Exception as problem:  # noqa: BLE001 - what was recorded by then is saved
            let_pass(problem)
            teller.tell(NotSaved(f"{type(problem).__name__}: {problem}"))
        finally:
            self._capture.leave_alone(stopped=False)
        teller.tell(ended)
