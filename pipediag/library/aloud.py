"""Progress of an analysis in a notebook, whose cell shows nothing else until it is done."""

from __future__ import annotations

from contextlib import suppress

from pipediag.capture.link import Teller
from pipediag.library.telling import tell
from pipediag.runner.progress import while_it_runs
from pipediag.session.messages import FromChild, Started, TrialsAwaited


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
