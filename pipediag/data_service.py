"""The process of a tf.data service for a trial: the workers and their dispatcher.

It serves on the loopback interface until its standard input is closed, as it is when whoever
started it is gone, or its time is up.
"""

from __future__ import annotations

import os
import signal
import sys

READY = "serves"
"""Begins the line that names the address of the dispatcher."""
_LOOK_AGAIN_MS = 500
"""Milliseconds until an iteration that a trial has left goes, with its buffers; in a cluster it
takes minutes."""
_HEARTBEAT_MS = 200


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
    print(READY, address, flush=True)
    sys.stdin.read()
    del running
    # Servers that wait for their clients must not keep the process.
    os._exit(0)


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
