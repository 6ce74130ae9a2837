"""Hold the plan for a tf.data service against real runs with 1, 2 and 4 workers.

    python -m benchmarks.service

Six pipelines: four that wait, as for a store over a network, one that waits for several elements at
once, and one that computes and waits. They wait because a machine of a few CPUs can't stand for the
CPUs of four hosts: more workers than CPUs make nothing faster that computes. The plan is made from
the pipeline without a service, from one worker's batches, from sending copies of one, and from the
rest of the step.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from statistics import median
from typing import Any

from pipediag.capture.replay.changes import apply
from pipediag.capture.replay.graph import Graph, Node
from pipediag.facts.service import step_of
from pipediag.runner.input_service import LocalService
from pipediag.session.edits import Distribute
from pipediag.session.pipeline import InputService

WORKERS = (1, 2, 4)
REST_MS = 4.0
"""What the consumer of a batch takes."""
WARM, STEPS = 10, 60
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
        return tf.fill([64, 64], tf.cast(number, tf.float32))

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


def step_ms(dataset: Any, rest_ms: float) -> float:
    """Return the mean step of a loop that takes so long over a batch besides."""
    batches: Iterator[Any] = iter(dataset.prefetch(2))
    for _ in range(WARM):
        next(batches)
        time.sleep(rest_ms / 1e3)
    since, steps = time.monotonic(), 0
    while steps < STEPS or time.monotonic() - since < LEAST_S:
        next(batches)
        if rest_ms:
            time.sleep(rest_ms / 1e3)
        steps += 1
    return (time.monotonic() - since) * 1e3 / steps


def slept_ms() -> float:
    """Return what the rest of a step takes on this machine as it is."""
    since = time.monotonic()
    for _ in range(STEPS):
        time.sleep(REST_MS / 1e3)
    return (time.monotonic() - since) * 1e3 / STEPS


def main() -> None:
    """Print a row for each pipeline and number of workers, and the median error."""
    rest_ms, made = slept_ms(), pipelines()
    own_ms = {name: step_ms(dataset, 0.0) for name, dataset in made.items()}
    errors: list[float] = []
    times: dict[str, InputService] = {}
    for workers in WORKERS:
        service = LocalService(workers, os.getpid())
        try:
            for name, dataset in made.items():
                if workers == 1:
                    times[name] = InputService(
                        own_cpus=0,
                        after="",
                        pipeline_ms=own_ms[name],
                        served_ms=step_ms(served(dataset, service.address), 0.0),
                        send_ms=step_ms(served(dataset, service.address, copies=True), 0.0),
                        send_raw_ms=0.0,
                        cores_busy=0.0,
                        worker_memory_bytes=0,
                    )
                plan = step_of(times[name], rest_ms, workers)
                real_ms = step_ms(served(dataset, service.address), REST_MS)
                errors.append(abs(plan.ms / real_ms - 1.0))
                print(
                    f"{name:24} {workers} workers: planned {plan.ms:6.1f} ms "
                    f"[{plan.least_ms:.1f}, {plan.most_ms:.1f}], real {real_ms:6.1f} ms, "
                    f"error {100 * errors[-1]:3.0f} %",
                    flush=True,
                )
        finally:
            service.stop()
    print(f"median error {100 * median(errors):.1f} %, worst {100 * max(errors):.0f} %")


if __name__ == "__main__":
    main()
