"""What the script does that is no training loop, for the sentence that says so."""

from __future__ import annotations

from pipediag.capture.callsites import call_site
from pipediag.session.recording import RecordedOtherUse

SESSION_RUN = "Session.run of TensorFlow 1"
STEP_WITHOUT_DATASET = "a training tf.function that is not fed by a tf.data iterator"


class OtherUses:
    """Counts them by the line that they come from."""

    def __init__(self, uses: list[RecordedOtherUse]) -> None:
        self._uses = uses

    def note(self, what: str) -> None:
        """One more use, from the line that is running."""
        site = call_site()
        file, line = (site.file, site.line) if site else (None, None)
        for use in self._uses:
            if (use.what, use.file, use.line) == (what, file, line):
                use.count += 1
                return
        self._uses.append(RecordedOtherUse(what, file, line, 1))
