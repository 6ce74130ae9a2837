"""A process of a tf.data service for a trial: a worker, and the dispatcher where it is the first.

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


def serve(dispatcher: str, directory: str, limit_s: int) -> None:
    """Serve until standard input ends, for `limit_s` at most, and be the dispatcher as well where
    no `host:port` of one is given. Names of files may be relative to `directory`, the script's."""
    signal.alarm(limit_s)
    import tensorflow as tf

    os.chdir(directory)
    service = tf.data.experimental.service
    if not dispatcher:
        config = service.DispatcherConfig(
            port=0, job_gc_check_interval_ms=_LOOK_AGAIN_MS, job_gc_timeout_ms=_LOOK_AGAIN_MS
        )
        served = service.DispatchServer(config)
        dispatcher = served.target.partition("://")[2]
    worker = service.WorkerServer(
        service.WorkerConfig(
            dispatcher, worker_address="localhost:%port%", heartbeat_interval_ms=_HEARTBEAT_MS
        )
    )
    print(READY, dispatcher, flush=True)
    sys.stdin.read()
    del worker
    # Servers that wait for their clients must not keep the process.
    os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2], int(sys.argv[3]))
