"""Starts the companion of a measurement, talks to it, and waits for its session."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pipediag
from pipediag.capture.link import Teller
from pipediag.errors import PipediagError
from pipediag.library.cells import write_cells
from pipediag.library.request import CompanionRequest
from pipediag.library.telling import tell
from pipediag.runner.progress import while_it_runs
from pipediag.session.messages import Closing, FromChild, Started, TrialsAwaited
from pipediag.session.settings import SETTINGS_FILE, RunSettings


class AloudTeller(Teller):
    """Says what begins, a line each, beside telling it."""

    def __init__(self, descriptor: int, budget_s: float) -> None:
        super().__init__(descriptor)
        self._budget_s = budget_s

    def tell(self, message: FromChild) -> None:
        """Tell the companion, and whoever waits for the cell."""
        super().tell(message)
        sentence = self._sentence(message)
        if sentence is not None:
            with suppress(Exception):
                tell(sentence)

    def _sentence(self, message: FromChild) -> str | None:
        match message:
            case Started():
                return "measuring; the result comes when the cell is done."
            case TrialsAwaited():
                return f"trying changes, for up to {self._budget_s:.0f} s."
        words = while_it_runs(message)
        return None if words is None else f"{words}."


_ROOT = Path(pipediag.__file__).parents[1]
# Not by its file or by `-m`: either would let modules beside it, or the user's, take the place of
# those of the standard library.
_START = (
    # Python 3.10 has no -P, which keeps the working directory out of the path.
    "import sys; getattr(sys.flags, 'safe_path', sys.flags.isolated) or sys.path.pop(0); "
    "sys.path.append(sys.argv[1]); from pipediag.library.companion import main; main()"
)
SESSION_LIMIT_S = 300.0
"""How long the program waits for its session. Own choice: it takes some seconds, and longer only
with the size of the profile."""

_KILLED_S = 5.0
"""What is killed is gone at once, unless a file system that does not answer holds it."""

_LOG = "companion.log"
_LONGEST_LOG = 2_000
"""Characters of what it wrote, for the error: the last ones say why."""


class Beside:
    """The companion process, as long as something is measured.

    Attributes:
        settings: those of the run, with the ends of the pipes to it.
        teller: tells it what goes on.
        process: the companion.
    """

    def __init__(
        self,
        settings: RunSettings,
        directory: Path,
        *,
        budget_s: float,
        kept: bool = False,
        aloud: bool = False,
    ) -> None:
        """Its session goes to `directory`, and, where that is to be kept, its reports.

        `aloud` tells whether what goes on is said on standard error, too.
        """
        capture = Path(settings.capture_directory)
        told, telling = os.pipe()
        asked, asking = os.pipe() if budget_s > 0 else (None, None)
        self._open = [one for one in (telling, asked) if one is not None]
        theirs = [one for one in (told, asking) if one is not None]
        self._log = (capture / _LOG).open("w+b")
        self.settings = replace(settings, progress_fd=telling, command_fd=asked)
        self.settings.write(capture / SETTINGS_FILE)
        request = capture / "request.json"
        CompanionRequest(
            pid=os.getpid(),
            capture=settings.capture_directory,
            directory=str(directory),
            reading=told,
            writing=asking,
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
        self.teller = AloudTeller(telling, budget_s) if aloud else Teller(telling)

    def finish(self) -> None:
        """Nothing more is measured: wait until the session is there.

        Raises:
            PipediagError: it could not be made.
        """
        write_cells(Path(self.settings.capture_directory))
        self.teller.tell(Closing())
        try:
            status = self.process.wait(SESSION_LIMIT_S)
            said = self._said() if status != 0 else ""
        except subprocess.TimeoutExpired:
            self._kill()
            raise PipediagError(
                "no session could be made of what was measured: the process that makes it was not "
                f"done after {SESSION_LIMIT_S:.0f} s, and was ended."
            ) from None
        finally:
            self._close()
        if status != 0:
            raise PipediagError(
                "no session could be made of what was measured. The process that makes it ended "
                f"with status {status}: {said[-_LONGEST_LOG:] or 'it wrote nothing'}"
            )

    def abandon(self) -> None:
        """Whatever it is at, its session is wanted no more."""
        self._close()
        if self.process.poll() is None:
            self._kill()

    def _kill(self) -> None:
        self.process.kill()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(_KILLED_S)

    def _said(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace").strip()

    def _close(self) -> None:
        self._log.close()
        while self._open:
            with suppress(OSError):
                os.close(self._open.pop())
