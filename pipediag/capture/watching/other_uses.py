"""What the script does with TensorFlow that is no training loop, for the sentence that says so."""

from __future__ import annotations

from pipediag.capture.callsites import call_site
from pipediag.capture.guard import Guard
from pipediag.session.recording import RecordedOtherUse

SESSION_RUN = "Session.run of TensorFlow 1"
STEP_WITHOUT_DATASET = "a training tf.function that is not fed by a tf.data iterator"


class OtherUses:
    """Counts them by the line that they come from."""

    def __init__(self, uses: list[RecordedOtherUse]) -> None:
        self._uses = uses

    def install_session(self, session_class: type, guard: Guard) -> None:
        """Notice TensorFlow 1 sessions."""
        runs = guard.entry("counting sessions", lambda *_, **__: self.note(SESSION_RUN))
        original = session_class.__dict__["run"]
        session_class.run = guard.before(original, runs)  # type: ignore[attr-defined]

    def note(self, what: str) -> None:
        """One more use, from the line that is running."""
        site = call_site()
        file, line = (site.file, site.line) if site else (None, None)
        for use in self._uses:
            if (use.what, use.file, use.line) == (what, file, line):
                use.count += 1
                return
        self._uses.append(RecordedOtherUse(what, file, line, 1))
