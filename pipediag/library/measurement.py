"""Measurements of a program's own training, one at a time, and the companion process of each."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pipediag
from pipediag.capture import Capture
from pipediag.capture.callsites import CallSite
from pipediag.capture.link import Teller
from pipediag.capture.process import let_pass
from pipediag.errors import PipediagError
from pipediag.library.notebook import ipython_shell, tell, write_cells
from pipediag.library.result import Result
from pipediag.runner.output import prepare_output
from pipediag.session.files import SESSION_FILE
from pipediag.session.messages import (
    SETTINGS_FILE,
    Closing,
    Ended,
    NotSaved,
    RunSettings,
    Started,
    WrittenFile,
)
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
ENDS_WHAT_IS_OVER: list[Callable[[], None]] = []
"""Called where it is held: a `fit` that raised has ended without a word."""


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
    ) -> None:
        """Begin, or raise PipediagError where nothing can be measured.

        `budget_s` is for trials in a training that is stopped when all is measured; None is for one
        that goes on to its end. `before_training` is called before the first step.
        """
        began_ns = time.monotonic_ns()
        self._kept = out is not None
        self._stops = budget_s is not None
        with ExitStack() as undo:
            if "pipediag.child" in sys.modules:
                raise PipediagError(_RUN_BY_COMMAND)
            if not _LOCK.acquire(blocking=False):
                for end in ENDS_WHAT_IS_OVER:
                    end()
                if not _LOCK.acquire(blocking=False):
                    raise PipediagError(_ANOTHER)
            undo.callback(_LOCK.release)
            place = out or Path(tempfile.mkdtemp(prefix="pipediag-"))
            self._temporary = None if self._kept else place
            undo.callback(self._clean_up)
            self._output = prepare_output(place)
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
            )
            undo.callback(self._companion.kill)
            teller = self._companion.teller
            self.capture = Capture(self._companion.settings, teller, program_goes_on=True)
            undo.callback(self.capture.leave_alone, stopped=self._stops)
            self.capture.install_in(before_training)
            teller.tell(Started())
            self.capture.script_begins(began_ns)
            if budget_s is not None and ipython_shell() is not None:
                trials = f", after trials of up to {budget_s:.0f} s" if budget_s else ""
                tell(f"measuring; the result appears when the cell is done{trials}.")
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
        _LOCK.release()

    def finish(self) -> Result:
        """Wait for the session, once the hooks are off. Raises PipediagError where it fails."""
        try:
            self._companion.finish()
            session = load_session(self._output.path / SESSION_FILE)
        except PipediagError:
            raise
        except BaseException:
            self._abandon()
            raise
        finally:
            self._output.release()
            self._clean_up()
            _LOCK.release()
        return Result(session, self._output.path if self._kept else None)

    def _abandon(self) -> None:
        self._companion.kill()
        self._output.abandon()
        self._clean_up()

    def _clean_up(self) -> None:
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)


@dataclass(frozen=True)
class CompanionRequest(WrittenFile):
    """Request to the companion: a JSON file; descriptors are inherited."""

    pid: int
    """The process that measures."""
    capture: str
    directory: str
    """The directory of the session."""
    reading: int
    """The pipe from which it reads messages."""
    writing: int | None
    """The pipe to which it writes commands; None if nothing is to be tried."""
    budget_s: float
    """Seconds for trials."""
    began_ns: int
    """Start of the measurement, by `time.monotonic_ns()`."""
    kept: bool = False
    """True if the directory is the user's: reports are written there, too, and it is not removed if
    the program ends too soon."""


_ROOT = Path(pipediag.__file__).parents[1]
# Not by its file or by `-m`: either would let modules beside it, or the user's, take the place of
# those of the standard library.
_START = (
    # Python 3.10 has no -P, which keeps the working directory out of the path.
    "import sys; getattr(sys.flags, 'safe_path', sys.flags.isolated) or sys.path.pop(0); "
    "sys.path.append(sys.argv[1]); from pipediag.library.companion import main; main()"
)
SESSION_LIMIT_S = 300.0
"""Longest wait for a session. Own choice: it takes some seconds, more with a large profile."""

_KILLED_S = 5.0
"""Longest wait for a killed process, which only a hanging file system can block."""

_LOG = "companion.log"
_LONGEST_LOG = 2_000
"""Last characters of its log that an error shows."""


class CompanionProcess:
    """The process that makes the session, started by the program for as long as it measures.

    Attributes:
        settings: the settings of the run, with the ends of the pipes to it.
        teller: sends it messages.
        process: the process itself.
    """

    def __init__(
        self,
        settings: RunSettings,
        directory: Path,
        *,
        budget_s: float,
        kept: bool = False,
    ) -> None:
        capture = Path(settings.capture_directory)
        messages_in, messages_out = os.pipe()
        commands_in, commands_out = os.pipe() if budget_s > 0 else (None, None)
        self._open = [one for one in (messages_out, commands_in) if one is not None]
        theirs = [one for one in (messages_in, commands_out) if one is not None]
        self._log = (capture / _LOG).open("w+b")
        self.settings = replace(settings, progress_fd=messages_out, command_fd=commands_in)
        self.settings.write(capture / SETTINGS_FILE)
        request = capture / "request.json"
        CompanionRequest(
            pid=os.getpid(),
            capture=settings.capture_directory,
            directory=str(directory),
            reading=messages_in,
            writing=commands_out,
            budget_s=budget_s,
            began_ns=time.monotonic_ns(),
            kept=kept,
        ).write(request)
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _START, str(_ROOT), str(request)],
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                pass_fds=theirs,
                # Ctrl-C is the program's, which tells the companion how it ended.
                start_new_session=True,
            )
        except BaseException:
            self._close()
            raise
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        self.teller = Teller(messages_out)

    def finish(self) -> None:
        """Wait for the session, when nothing more is measured. Raises PipediagError: it could not
        be made."""
        write_cells(Path(self.settings.capture_directory))
        self.teller.tell(Closing())
        try:
            status = self.process.wait(SESSION_LIMIT_S)
            self._log.seek(0)
            logged = self._log.read().decode(errors="replace").strip()
        except subprocess.TimeoutExpired:
            self._kill()
            raise PipediagError(
                "no session could be made of the measurement: the process that makes it did not "
                f"end within {SESSION_LIMIT_S:.0f} s and was killed."
            ) from None
        finally:
            self._close()
        if status != 0:
            raise PipediagError(
                "no session could be made of the measurement. The process that makes it ended "
                f"with status {status}: {logged[-_LONGEST_LOG:] or 'it wrote nothing'}"
            )

    def kill(self) -> None:
        """End it: its session is not needed."""
        self._close()
        if self.process.poll() is None:
            self._kill()

    def _kill(self) -> None:
        self.process.kill()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(_KILLED_S)

    def _close(self) -> None:
        self._log.close()
        while self._open:
            with suppress(OSError):
                os.close(self._open.pop())
