"""The model of a measured run, with its parameters set so that it gives the step that was seen."""

from __future__ import annotations

from dataclasses import replace

from pipediag.facts.graph_ops import calls_python
from pipediag.facts.limits import INPUT_BOUND_PERCENT, INPUT_FINE_PERCENT
from pipediag.facts.machine import cpus, on_accelerator, pool_threads
from pipediag.facts.pipeline import prefetch_switched_off, reads_as_run
from pipediag.facts.python_work import COMPUTES_PERCENT, computes_at_once, data_cores
from pipediag.facts.step import CALL_CLASSES, class_ms, consumer_ms, get_next_percent
from pipediag.forecast.network import Network, Station, outermost, stages
from pipediag.forecast.unknown import UnknownError
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.tensorflow_names import BATCHING, works_ahead

IDLE = 0.5
"""Slowest stage over consumer, below which a pipeline rests for so long that short waits are those
of handing a batch over, whatever its pace. Own choice."""

IN_GRAPH = 0.12
"""Part of the dispatch that stays with each step where several share a call, as the executor starts
each one's operations all the same. Own measurements, by what trials left of the step: 9 to 17 %."""

OF_NO_ROW = 1 / 3
"""Part of a CPU's compute that a step costs however few rows it holds: each operation has a price
of its own. Own measurements, by what trials with larger batches left of the step: 24 to 75 %."""


def network_of(session: Session) -> Network:
    """Stations, consumer and CPUs of this run.

    The model's own step is the measured one: where every step waits for input, the slowest stage
    takes all of the step, so what tf.data's clock leaves out (scheduling calls on other threads) is
    added to it. Stages that its clock gives more than a step shrink, as none can be busy for
    longer. The others are as they were measured.

    Raises:
        UnknownError: the step, its input wait or the plan is missing.
    """
    if session.steps is None or session.breakdown is None:
        raise UnknownError("The step was not measured.")
    if session.pipeline is None or not session.pipeline.ops:
        raise UnknownError("The pipeline was not recorded.")
    step_ms = session.steps.mean_ms
    consumer = consumer_ms(session)
    assert consumer is not None
    alone = session.differential.step_ms if session.differential else consumer
    stations, root = _stations(session, session.pipeline.ops)
    pipeline_cpu, consumer_cpu = _cpu_ms(session)
    allowed = cpus(session)
    capacity = _capacity(session, allowed)
    network = Network(
        stations=stations,
        root=root,
        step_ms=step_ms,
        consumer_ms=consumer,
        consumer_alone_ms=min(alone, consumer),
        consumer_cpu_ms=min(consumer_cpu, consumer * capacity),
        pipeline_cpu_ms=pipeline_cpu,
        fixed_ms=_fixed_ms(session),
        per_call_ms=class_ms(session, ["python"])
        + (
            0.0
            if on_accelerator(session.environment.devices)
            else class_ms(session, ["dispatch"]) * (1 - IN_GRAPH)
        ),
        cpus=allowed,
        capacity=capacity,
        threads=float(pool_threads(session)),
        consumer_share=_consumer_share(session),
        overlaps=prefetch_switched_off(session) is None,
    )
    return _with_cpu(_calibrated(network))


def _fixed_ms(session: Session) -> float:
    """What a step costs whatever the size of its batch.

    Operations are what is dispatched: where that takes little, they are few, and their own price is
    little too.
    """
    called = class_ms(session, CALL_CLASSES)
    if on_accelerator(session.environment.devices):
        return called
    return called + min(
        OF_NO_ROW * class_ms(session, ["device_compute"]), class_ms(session, ["dispatch"]) / 2
    )


def _capacity(session: Session, allowed: float) -> float:
    """What the CPUs do together, as measured on this machine; no less than the run made them do."""
    measured = session.environment.cpu_capacity
    if measured is None:
        return allowed
    return max(measured, session.host.cores_busy if session.host is not None else 0.0)


def _stations(session: Session, ops: list[Operation]) -> tuple[dict[str, Station], str | None]:
    runs = {op.id: op for op in ops if op.fused_into is None and not op.removed_by_tensorflow}
    every = {op.id: op for op in ops}
    reads = reads_as_run(ops)
    stations = {
        op.id: _station(session, op, _inputs(op, reads, every, runs), _fused_batch(op, every))
        for op in runs.values()
    }
    read = {id for station in stations.values() for id in station.inputs}
    ends = [s.id for s in stations.values() if s.inside is None and s.id not in read]
    return stations, ends[-1] if ends else None


def _inputs(
    op: Operation,
    reads: dict[str, list[str]],
    every: dict[str, Operation],
    runs: dict[str, Operation],
) -> tuple[str, ...]:
    """Where it reads from, past what was fused or left out.

    An operation fused into this one reads from it by the plan.
    """
    found: list[str] = []
    waiting = list(reads[op.id])
    while waiting:
        parent = every.get(waiting.pop(0))
        if parent is None:
            continue
        carrier = parent.fused_into or parent.id
        if carrier == op.id or carrier not in runs:
            waiting += reads[parent.id]
        elif carrier not in found:
            found.append(carrier)
    return tuple(found)


def _station(
    session: Session, op: Operation, inputs: tuple[str, ...], batch: Operation | None
) -> Station:
    calls = float(op.parallelism or 1)
    return Station(
        id=op.id,
        kind=op.kind,
        inputs=inputs,
        elements=op.elements,
        service_ms=op.self_ms_per_step or 0.0,
        cpu_ms=0.0,
        calls=calls,
        asynchronous=_works_ahead(op),
        holds_lock=calls_python(op) and not computes_at_once(session, op),
        unbounded=bool(op.parameters.get("use_unbounded_threadpool")),
        inside=op.inside_function_of,
        batch_id=batch.id if batch else None,
        batch_size=_size(batch) if batch else None,
    )


def _works_ahead(op: Operation) -> bool:
    if op.iterator_name is not None:
        return works_ahead(op.iterator_name)
    return op.kind == "prefetch" or (op.parallelism or 1) > 1


def _fused_batch(op: Operation, every: dict[str, Operation]) -> Operation | None:
    fused = (every[id] for id in op.fused_from if id in every)
    return next((one for one in fused if one.kind in BATCHING), None)


def _size(batch: Operation) -> int | None:
    size = batch.parameters.get("batch_size")
    return size if isinstance(size, int) and size > 0 else None


def _calibrated(network: Network) -> Network:
    found = stages(network)
    slowest = max(found, key=lambda stage: stage.ms, default=None)
    if slowest is None or slowest.ms <= 0:
        return network
    late = network.step_ms - network.consumer_ms
    short = late < network.step_ms * INPUT_BOUND_PERCENT / 100.0
    if slowest.ahead and short and slowest.ms < IDLE * network.consumer_ms:
        return replace(network, consumer_share=1.0)
    if slowest.ahead:
        target = max(_supply_ms(network), min(slowest.ms, network.consumer_ms))
    else:
        target = network.step_ms - network.consumer_ms
        network = replace(network, consumer_share=1.0)
    factors = {
        id: min(1.0, network.step_ms / stage.ms)
        for stage in found
        if stage.ms
        for id in stage.stations
    }
    factors |= dict.fromkeys(slowest.stations, target / slowest.ms)
    calibrated = {
        id: replace(s, service_ms=s.service_ms * factors.get(outermost(network, id), 1.0))
        for id, s in network.stations.items()
    }
    return replace(network, stations=calibrated)


def _supply_ms(network: Network) -> float:
    """The pipeline's mean time per step, where each step takes the longer of the two.

    That is the step less the time for which the pipeline was ahead. Where some steps wait and some
    do not, those that do not are taken to be ahead by as much on average as the others are late.
    """
    share = network.consumer_share
    late = network.step_ms - network.consumer_ms
    return network.step_ms - late * share / (1.0 - share) if share < 1.0 else 0.0


def _consumer_share(session: Session) -> float:
    """Part of the steps that did not wait for input, by XProf's limit, as is the run as a whole."""
    percent = get_next_percent(session)
    if percent is not None and percent < INPUT_FINE_PERCENT:
        return 1.0
    waits = [
        100.0 * row.input_wait_ms > INPUT_FINE_PERCENT * row.duration_ms
        for row in session.step_rows
        if row.window == "baseline" and row.input_wait_ms is not None
    ]
    return 1.0 - sum(waits) / len(waits) if waits else 0.0


def _with_cpu(network: Network) -> Network:
    """The pipeline's CPU time, shared out in proportion to wall time.

    Python holds the lock for no longer than it computes: calls that mostly wait do not queue for
    it.
    """
    spent = sum(station.service_ms for station in network.stations.values())
    if spent <= 0:
        return replace(network, pipeline_cpu_ms=0.0)
    busy = network.pipeline_cpu_ms / spent
    computes = 100.0 * busy >= COMPUTES_PERCENT
    shared = {
        id: replace(s, cpu_ms=s.service_ms * busy, holds_lock=s.holds_lock and computes)
        for id, s in network.stations.items()
    }
    return replace(network, stations=shared)


def _cpu_ms(session: Session) -> tuple[float, float]:
    """CPU milliseconds per step of the threads that make the input, and of all others."""
    host = session.host
    if host is None or session.steps is None:
        return 0.0, 0.0
    pipeline = min(data_cores(host), host.cores_busy)
    step_ms = session.steps.mean_ms
    return pipeline * step_ms, (host.cores_busy - pipeline) * step_ms
