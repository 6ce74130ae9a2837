"""A tf.data service on this machine, in which a trial has a pipeline's batches made.

A process of its own is the workers and their dispatcher. It takes its CPUs from the training, so
what it obtains is the least that other hosts would. It serves on the loopback interface until its
standard input is closed, as it is when whoever started it is gone, or its time is up.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from pipediag.errors import PipediagError

_READY = "serves"
"""Begins the line that names the address of the dispatcher."""
_LOOK_AGAIN_MS = 500
"""Milliseconds until an iteration that a trial has left goes, with its buffers; in a cluster it
takes minutes."""
_HEARTBEAT_MS = 200
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
                [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
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
        if not read or said != _READY:
            raise PipediagError("The tf.data service for the trial did not start.")
        return address


def serve(workers: int, directory: str, limit_s: int) -> None:
    """Serve until standard input ends, for `limit_s` at most. Names of files may be relative to
    `directory`, the script's."""
    signal.alarm(limit_s)
    import tensorflow as tf

    os.chdir(directory)
    service = tf.data.experimental.service
    dispatcher = service.DispatchServer(
        service.DispatcherConfig(
            port=0, job_gc_check_interval_ms=_LOOK_AGAIN_MS, job_gc_timeout_ms=_LOOK_AGAIN_MS
        )
    )
    address = dispatcher.target.partition("://")[2]
    config = service.WorkerConfig(
        address, worker_address="localhost:%port%", heartbeat_interval_ms=_HEARTBEAT_MS
    )
    running = [service.WorkerServer(config) for _ in range(workers)]
    print(_READY, address, flush=True)
    sys.stdin.read()
    del running
    # Servers that wait for their clients must not keep the process.
    os._exit(0)


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
