"""A tf.data service on this machine, in which a trial has a pipeline's batches made.

It takes its CPUs from the training, so what it obtains is the least that other hosts would.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from pipediag.data_service import READY
from pipediag.errors import PipediagError

START_LIMIT_S = 60.0
"""Importing TensorFlow takes 3 s of a CPU."""
END_LIMIT_S = 10.0
"""A killed process that the kernel holds up is not waited for longer."""
LIFE_LIMIT_S = 3600
"""Longest life of the service, whatever becomes of its parent."""


class LocalService:
    """A process of workers and their dispatcher; `stop` ends it whatever state it is in."""

    def __init__(self, workers: int) -> None:
        """Start it. Raises PipediagError: it did not come up, and is not left behind."""
        environment = {
            **{name: value for name, value in os.environ.items() if name != "TF_CONFIG"},
            # The accelerator is the training's.
            "CUDA_VISIBLE_DEVICES": "-1",
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "PYTHONPATH": os.pathsep.join(
                [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
            ),
        }
        given = [str(workers), str(Path.cwd()), str(LIFE_LIMIT_S)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pipediag.data_service", *given],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # Not the script's: a module there could have the name of one of TensorFlow's.
            cwd="/",
            env=environment,
            start_new_session=True,
        )
        try:
            self.address = self._started()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End it; a second call does nothing."""
        with suppress(OSError):
            self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_LIMIT_S)
        for pipe in filter(None, (self._process.stdin, self._process.stdout)):
            with suppress(OSError):
                pipe.close()

    def _started(self) -> str:
        """Wait until it serves; return the dispatcher's address."""
        assert self._process.stdout is not None
        give_up_at, text, read = time.monotonic() + START_LIMIT_S, b"", b"-"
        while read and not text.endswith(b"\n"):
            left_s = max(0.0, give_up_at - time.monotonic())
            ready = select.select([self._process.stdout], [], [], left_s)[0]
            read = os.read(self._process.stdout.fileno(), 4096) if ready else b""
            text += read
        said, _, address = text.decode(errors="replace").strip().rpartition("\n")[2].partition(" ")
        if not read or said != READY:
            raise PipediagError("The tf.data service for the trial did not start.")
        return address
