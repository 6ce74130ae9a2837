"""What an analysis needs later, imported while the script starts: TensorFlow takes seconds too.

Not while it trains: a few hundred modules are a burden on the CPUs that it trains on.
"""

from __future__ import annotations

import threading
from importlib import import_module

NEEDED = (
    "pipediag.runner.diagnosis",
    "pipediag.runner.tried_session",
    "pipediag.runner.source_patches",
    "pipediag.reporters.tables.files",
    "pipediag.reporters.html.page",
    "pipediag.reporters.terminal.summary",
)
FOR_TRIALS = ("pipediag.runner.trials_of_run", "scipy.stats")


class EarlyImports(threading.Thread):
    """Imports one module after the other, until it is told to stop."""

    def __init__(self, *, trials: bool) -> None:
        super().__init__(name="imports")
        self._names = (*NEEDED, *(FOR_TRIALS if trials else ()))
        self._stopped = threading.Event()

    def stop(self) -> None:
        """No further module is begun; whoever needs one imports it."""
        self._stopped.set()

    def close(self) -> None:
        """Stop, and wait for the module that was begun: at the interpreter's end it would fail."""
        self.stop()
        if self.ident is not None:
            self.join()

    def run(self) -> None:
        for name in self._names:
            if self._stopped.is_set():
                return
            import_module(name)
