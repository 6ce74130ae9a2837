"""Hold the plan for a tf.data service against real runs with 1, 2 and 4 workers.

    python -m benchmarks.service [--link MBIT]

Six pipelines: four that wait, as for a store over a network, one that waits for several elements at
once, and one that computes and waits. The plan is made from the pipeline without a service, from
one worker's batches, from sending copies of one, and from the rest of the step.

All workers and the trainer share the CPUs of this machine, which the plan's hosts do not. So a step
is expected to take at least its CPU time in all processes, divided by the CPUs. The lower bound is
at least the CPU time of the pipeline by itself, so divided; in the upper one each worker also waits
for the CPU time of all others.

With a link, each worker is in a network namespace of its own (which takes root and iproute2), whose
interface sends so many megabits a second, first come, first served.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import click

from pipediag.capture.replay.changes import apply
from pipediag.capture.replay.graph import Graph, Node
from pipediag.facts.service import KEPT, StepWith, step_of
from pipediag.runner.input_service import LocalService
from pipediag.session.edits import Distribute
from pipediag.session.pipeline import InputService

WORKERS = (1, 2, 4)
REST_MS = 4.0
"""What the consumer of a batch takes."""
WARM, STEPS = 10, 60
KEPT_LOW = 1.0 / KEPT
LEAST_S = 1.0


def pipelines() -> dict[str, Any]:
    """Return datasets of batches, by what they do."""
    import tensorflow as tf
    from tensorflow.python.data.experimental.ops.testing import sleep

    numbers = tf.data.Dataset.range(100_000).shuffle(100)
    tuned = tf.data.AUTOTUNE

    def fetched(number: Any) -> Any:
        return tf.data.Dataset.from_tensors(number).apply(sleep(8_000))

    def wide(number: Any) -> Any:
        # Random, so that compression does not help the link.
        return tf.random.normal([64, 64]) + tf.cast(number, tf.float32)

    def computed(number: Any) -> Any:
        frame = tf.random.normal([128, 128])
        return tf.reduce_sum(tf.linalg.matmul(frame, frame), axis=0), number

    def ragged(number: Any) -> Any:
        return tf.range(1 + number % 50)

    return {
        "waits 20 ms a batch": numbers.batch(32).apply(sleep(20_000)),
        "waits 1 ms an element": numbers.apply(sleep(1_000)).batch(32),
        "waits, batches of 1 MB": numbers.map(wide).batch(64).apply(sleep(25_000)),
        "waits for four at once": numbers.interleave(
            fetched, cycle_length=4, num_parallel_calls=4
        ).batch(8),
        "computes and waits": numbers.map(computed, num_parallel_calls=tuned)
        .batch(16)
        .apply(sleep(15_000)),
        "padded batches": numbers.apply(sleep(500)).map(ragged).padded_batch(32),
    }


def served(dataset: Any, address: str, *, copies: bool = False) -> Any:
    """Return the batches by a service, as a trial makes them."""
    graph = Graph(dataset)
    # The sources of this script were made before any hook: their last dataset is all of them.
    last = Node([], lambda _: dataset)
    graph.end.inputs = [last]
    change = Distribute("", address=address, repeats_element=copies)
    graph.node = lambda _: last  # type: ignore[method-assign]
    apply(graph, [change])
    return graph.build()


def step_ms(
    dataset: Any, rest_ms: float = 0.0, cpu_s: Callable[[], float] = time.process_time
) -> tuple[float, float]:
    """Return the mean step of a loop that takes so long over a batch besides, and its CPU time."""
    batches: Iterator[Any] = iter(dataset.prefetch(2))
    for _ in range(WARM):
        next(batches)
        time.sleep(rest_ms / 1e3)
    since, used_s, steps = time.monotonic(), cpu_s(), 0
    while steps < STEPS or time.monotonic() - since < LEAST_S:
        next(batches)
        if rest_ms:
            time.sleep(rest_ms / 1e3)
        steps += 1
    taken_ms = (time.monotonic() - since) * 1e3 / steps
    return taken_ms, (cpu_s() - used_s) * 1e3 / steps


def slept_ms() -> float:
    """Return what the rest of a step takes on this machine as it is."""
    since = time.monotonic()
    for _ in range(STEPS):
        time.sleep(REST_MS / 1e3)
    return (time.monotonic() - since) * 1e3 / STEPS


SERVER = """
import os, signal, sys
signal.alarm(900)
import tensorflow as tf
service, own = tf.data.experimental.service, sys.argv[1]
if own:
    config = service.WorkerConfig(sys.argv[2], worker_address=own, port=int(own.split(":")[1]))
    server = service.WorkerServer(config)
else:
    server = service.DispatchServer(service.DispatcherConfig(port=PORT))
print("serves", flush=True)
sys.stdin.read()
os._exit(0)
"""
PORT = 5050


@contextmanager
def hosts(count: int, megabits: float) -> Iterator[str]:
    """Yield the dispatcher's address; its workers are behind links of their own."""
    started = [_server([], "", "")]
    names = [f"pipediag-host{number}" for number in range(count)]
    try:
        for number, name in enumerate(names):
            link, peer, net = f"pd{number}", f"pd{number}w", f"10.99.{number}"
            for command in (
                f"netns add {name}",
                f"link add {link} type veth peer name {peer}",
                f"link set {peer} netns {name}",
                f"addr add {net}.1/24 dev {link}",
                f"link set {link} up",
                f"-n {name} addr add {net}.2/24 dev {peer}",
                f"-n {name} link set {peer} up",
                f"-n {name} link set lo up",
            ):
                subprocess.run(["ip", *command.split()], check=True)
            limit = f"qdisc add dev {peer} root tbf rate {megabits:g}mbit burst 64kb latency 50ms"
            subprocess.run(["tc", "-n", name, *limit.split()], check=True)
            inside = ["ip", "netns", "exec", name]
            started.append(_server(inside, f"{net}.2:{PORT + 1}", f"{net}.1:{PORT}"))
        yield f"localhost:{PORT}"
    finally:
        for process in started:
            process.kill()
            process.communicate()
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


def _server(inside: list[str], own: str, dispatcher: str) -> subprocess.Popen[str]:
    text = SERVER.replace("PORT", str(PORT))
    process = subprocess.Popen(
        [*inside, sys.executable, "-c", text, own, dispatcher],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=Path("/"),
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    assert process.stdout is not None
    if process.stdout.readline().strip() != "serves":
        raise click.ClickException("A server did not start.")
    return process


def figures(dataset: Any, service: LocalService) -> tuple[InputService, float]:
    """Return what a trial measures with one worker on this machine, and the CPU time of a batch
    without a service.

    The CPUs that are busy are those of this process and of the service's, which share them.
    """
    pipeline_ms, making_ms = step_ms(dataset)
    served_ms, cpu_ms = step_ms(
        served(dataset, service.address), cpu_s=lambda: time.process_time() + service.cpu_s()
    )
    found = InputService(
        after="",
        pipeline_ms=pipeline_ms,
        served_ms=served_ms,
        send_ms=step_ms(served(dataset, service.address, copies=True))[0],
        cores_busy=cpu_ms / served_ms,
        worker_memory_bytes=0,
    )
    return found, making_ms


def planned(
    service: InputService, making_ms: float, rest_ms: float, workers: int, link_ms: float
) -> StepWith:
    """Return the plan's step, where all workers and the trainer share this machine's CPUs."""
    plan = step_of(service, rest_ms, workers, link_ms)
    cpus = len(os.sched_getaffinity(0))
    shared_ms = service.cores_busy * service.served_ms / cpus
    return StepWith(
        workers,
        max(plan.ms, shared_ms),
        max(plan.least_ms, making_ms / cpus),
        plan.most_ms + shared_ms * (workers - 1) / workers,
    )


def bytes_of(dataset: Any) -> int:
    """Return the size of a batch."""
    import tensorflow as tf

    [batch] = dataset.take(1)
    return sum(tensor.numpy().nbytes for tensor in tf.nest.flatten(batch))


@click.command()
@click.option("--link", "megabits", type=float, help="Megabits a second that each worker sends.")
def main(megabits: float | None) -> None:
    """Print a row for each pipeline and number of workers, and the median error."""
    rest_ms, made = slept_ms(), pipelines()
    service = LocalService(1)
    try:
        times = {name: figures(dataset, service) for name, dataset in made.items()}
    finally:
        service.stop()
    errors: list[float] = []
    outside = 0
    for workers in WORKERS:
        with hosts(workers, megabits) if megabits else local(workers) as address:
            for name, dataset in made.items():
                link_ms = 0.0
                if megabits:
                    link_ms = bytes_of(dataset) * 8 / (megabits * 1e3) / workers
                plan = planned(*times[name], rest_ms, workers, link_ms)
                real_ms = step_ms(served(dataset, address), REST_MS)[0]
                errors.append(abs(plan.ms / real_ms - 1.0))
                within = KEPT_LOW * plan.least_ms <= real_ms <= KEPT * plan.most_ms
                outside += not within
                print(
                    f"{name:24} {workers} workers: planned {plan.ms:6.1f} ms "
                    f"[{plan.least_ms:.1f}, {plan.most_ms:.1f}], link {link_ms:5.1f} ms, real "
                    f"{real_ms:6.1f} ms, error {100 * errors[-1]:3.0f} %"
                    f"{'' if within else ', outside'}",
                    flush=True,
                )
    print(
        f"median error {100 * median(errors):.1f} %, worst {100 * max(errors):.0f} %; "
        f"{outside} of {len(errors)} outside of the bounds"
    )


@contextmanager
def local(workers: int) -> Iterator[str]:
    """Yield the dispatcher's address of workers without a link."""
    service = LocalService(workers)
    try:
        yield service.address
    finally:
        service.stop()


if __name__ == "__main__":
    main()
