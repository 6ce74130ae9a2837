"""One measurement in the user's own process: hooks in, a companion beside it, all put back."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pipediag.capture import Capture, StopScript
from pipediag.capture.callsites import call_site
from pipediag.capture.measuring.kept_state import (
    NotRestoredError,
    TrainingState,
    lacks_memory,
)
from pipediag.errors import PipediagError
from pipediag.library.beside import Beside
from pipediag.library.cells import in_notebook
from pipediag.library.one_at_a_time import give_turn_back, take_turn
from pipediag.library.own_directory import OwnDirectory
from pipediag.session.messages import Ended, Started
from pipediag.session.settings import RunSettings
from pipediag.vocabulary import OwnEnding

_NO_FILE = "<python>"
_NEW_VARIABLES = (
    "{count} variables were made by the first step, and keep what the steps of this analysis have "
    "trained. Build the model before it is analysed."
)

Work = Callable[[Capture], None]
"""Runs what is to be measured, under the capture that it is given."""
MakeSettings = Callable[[str, str], RunSettings]
"""Those of a run, of the file that called and the directory to capture to."""


def measure(
    work: Work, make_settings: MakeSettings, *, budget_s: float, source: bool
) -> OwnDirectory:
    """Run `work` as the script of an analysis; return the directory that holds its session.

    Afterwards variables and random numbers are what they were, and no hook is left. What `work`
    raises is raised.

    Raises:
        PipediagError: nothing can be measured here, or no session could be made of it.
    """
    _refuse_where_nothing_can_be_measured()
    take_turn()
    try:
        directory = OwnDirectory()
        try:
            capture_directory = tempfile.mkdtemp(prefix=".capture-", dir=directory.name)
            site = call_site()
            settings = make_settings(site.file if site else _NO_FILE, capture_directory)
            place, aloud = Path(directory.name), in_notebook()
            beside = Beside(settings, place, budget_s=budget_s, source=source, aloud=aloud)
            try:
                _Measurement(beside, settings.input_only).of(work)
                beside.finish()
            except BaseException:
                beside.abandon()
                raise
        except BaseException:
            directory.cleanup()
            raise
    finally:
        give_turn_back()
    return directory


def _refuse_where_nothing_can_be_measured() -> None:
    if "tensorflow" not in sys.modules:
        raise PipediagError("TensorFlow is not imported, so there is nothing to measure.")
    lack = lacks_memory()
    if lack is not None:
        raise PipediagError(f"nothing was measured: {lack}.")


class _Measurement:
    """Of one piece of work."""

    def __init__(self, beside: Beside, input_only: bool) -> None:
        self._beside = beside
        self._input_only = input_only
        self._state = TrainingState()
        self._capture = Capture(beside.settings, beside.teller, program_goes_on=True)

    def of(self, work: Work) -> None:
        """Do it; what it raises comes through, and there is no session then."""
        began_ns = time.monotonic_ns()
        try:
            self._capture.install_in(self._state.keep_new)
            self._beside.teller.tell(Started())
            self._capture.script_begins(began_ns)
            try:
                work(self._capture)
            except StopScript:
                # Without a consumer nothing is held; pipelines are tried when the loop is over.
                self._ended("finished" if self._input_only else "stopped")
            else:
                self._ended("finished")
        finally:
            self._capture.leave_alone()
            self._restore()

    def _restore(self) -> None:
        try:
            self._state.restore()
        except NotRestoredError as error:
            raise PipediagError(
                f"the model is not what it was before the analysis: {error}. Load its weights "
                "again, and analyse it with `budget=0`, which tries nothing."
            ) from error

    def _ended(self, outcome: OwnEnding) -> None:
        unknown = self._state.count_unknown()
        if unknown:
            self._capture.note(_NEW_VARIABLES.format(count=unknown))
        status = 0 if outcome == "finished" else None
        self._capture.script_ended(outcome, status, None)
        self._beside.teller.tell(Ended(outcome, status))
