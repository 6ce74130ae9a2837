"""Our use of TensorFlow's profiler, which gives way to the script's own."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from pipediag.capture.callsites import call_site
from pipediag.capture.guard import Guard
from pipediag.capture.recorder import Recorder
from pipediag.capture.signals import let_pass
from pipediag.trace import START_UP, STEP_MARKER


class Profiler:
    """One profiling session at a time; the script's calls go before ours."""

    def __init__(self, recorder: Recorder, directory: Path) -> None:
        self._recorder = recorder
        self._root = directory
        self.directory = directory
        """Where the last profile went: each loop has a directory of its own."""
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
