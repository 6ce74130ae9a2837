"""A tf.data service of processes on this machine, in which a trial has a pipeline's batches made.

They take their CPUs from the training, so what they obtain is the least that other hosts would.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pipediag.data_service import READY
from pipediag.errors import PipediagError
from pipediag.session.edits import Distribute
from pipediag.session.messages import RunBlock
from pipediag.session.pipeline import InputService
from pipediag.trials import Executor, ExecutorLostError, Variant, VariantRefusedError
from pipediag.vocabulary import BASE

START_LIMIT_S = 60.0
"""Importing TensorFlow takes 3 s of a CPU."""
END_LIMIT_S = 10.0
"""A killed process that the kernel holds up is not waited for longer."""
LIFE_LIMIT_S = 3600
"""Longest life of a process of the service, whatever becomes of its parent."""
PULL_S = 1.0


class LocalService:
    """Worker processes and their dispatcher; `stop` ends them whatever state they are in."""

    def __init__(self, workers: int) -> None:
        """Start them. Raises PipediagError: they did not come up, and none is left."""
        self.address = ""
        self._processes: list[subprocess.Popen[bytes]] = []
        try:
            for number in range(workers):
                self._processes.append(_started(self.address))
                if number == 0:
                    self.address = self._wait_for(self._processes[0])
            for process in self._processes[1:]:
                self._wait_for(process)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        for process in self._processes:
            with suppress(OSError):
                process.kill()
        for process in self._processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(END_LIMIT_S)
            for pipe in filter(None, (process.stdin, process.stdout)):
                with suppress(OSError):
                    pipe.close()
        self._processes.clear()

    def cpu_s(self) -> float:
        """Return the CPU time that all of them have taken so far."""
        import psutil

        return sum(sum(psutil.Process(one.pid).cpu_times()[:2]) for one in self._processes)

    def memory_bytes(self) -> int:
        """Return the resident memory of the largest."""
        import psutil

        return max(psutil.Process(one.pid).memory_info().rss for one in self._processes)

    def _wait_for(self, process: subprocess.Popen[bytes]) -> str:
        assert process.stdout is not None
        give_up_at, text, read = time.monotonic() + START_LIMIT_S, b"", b"-"
        while read and not text.endswith(b"\n"):
            left_s = max(0.0, give_up_at - time.monotonic())
            ready = select.select([process.stdout], [], [], left_s)[0]
            read = os.read(process.stdout.fileno(), 4096) if ready else b""
            text += read
        said, _, address = text.decode(errors="replace").strip().rpartition("\n")[2].partition(" ")
        if not read or said != READY:
            raise PipediagError("The tf.data service for the trial did not start.")
        return address


def _started(dispatcher: str) -> subprocess.Popen[bytes]:
    environment = {
        **{name: value for name, value in os.environ.items() if name != "TF_CONFIG"},
        # The accelerator is the training's.
        "CUDA_VISIBLE_DEVICES": "-1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "PYTHONPATH": os.pathsep.join(
            [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
        ),
    }
    given = [dispatcher, str(Path.cwd()), str(LIFE_LIMIT_S)]
    return subprocess.Popen(
        [sys.executable, "-m", "pipediag.data_service", *given],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        # Not the script's: a module there could have the name of one of TensorFlow's.
        cwd="/",
        env=environment,
        start_new_session=True,
    )


def measured(
    distribute: Distribute, service: LocalService, executor: Executor
) -> InputService | None:
    """Return what batches of one worker take without the training, and what sending one takes; None
    where the script's process can't be asked any more, or a worker is gone."""
    import psutil

    try:
        executor.prepare(Variant("service alone", (distribute,)))
        own_ms = executor.run(RunBlock(BASE, PULL_S, alone=True)).step_ms
        cpu_s, began_s = service.cpu_s(), time.monotonic()
        served_ms = executor.run(RunBlock("service alone", 2 * PULL_S, alone=True)).step_ms
        cores = (service.cpu_s() - cpu_s) / (time.monotonic() - began_s)
        executor.prepare(Variant("sending", (replace(distribute, repeats_element=True),)))
        send_ms = executor.run(RunBlock("sending", PULL_S, alone=True)).step_ms
        return InputService(
            after=distribute.after,
            pipeline_ms=round(own_ms, 4),
            served_ms=round(served_ms, 4),
            send_ms=round(send_ms, 4),
            cores_busy=round(cores, 3),
            worker_memory_bytes=service.memory_bytes(),
        )
    except (VariantRefusedError, ExecutorLostError, OSError, psutil.Error):
        return None
