"""What each change of an edit does to the model; or that measurements do not tell."""

from __future__ import annotations

from dataclasses import replace

from pipediag.facts.callbacks import callback_percent, per_batch_callbacks
from pipediag.forecast.network import Network, Station, put_behind, scaled, taken_out, upstream
from pipediag.forecast.unknown import UnknownError
from pipediag.session.edits import (
    AUTOTUNE,
    Change,
    Insert,
    Move,
    MoveLayers,
    Remove,
    Replace,
    SetModel,
    SetOptions,
    SetParameters,
    SkipCallback,
    unknown_change,
)
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.vocabulary import Scalar

BATCHED = 1 / 19
"""What remains of a cheap map's time when it takes whole batches. Own measurements: 19 (parsing),
32 (a cast) and 37 (splitting) times the rate; the least of them."""

HAND_OVER_MS = 0.001
"""What an operation without a function spends on an element. Own measurements, by tf.data's own
clock in recorded sessions: 0.3 to 0.5 µs in a cache and 0.5 to 2.2 µs in batches, shuffles and
slices where a step takes hundreds of elements, which is where it matters; 2 to 6 µs where it takes
a few."""


def apply(network: Network, change: Change, session: Session) -> Network:
    """The network after one change.

    Raises:
        UnknownError: its effect does not follow from what was measured.
    """
    match change:
        case SetParameters():
            after = _set(network, change, session)
        case Insert():
            after = _insert(network, change, session)
        case Move():
            after = _move(network, change, session)
        case Remove():
            after = _remove(network, change.op_id)
        case Replace():
            after = _replace(network, change, session)
        case SetOptions():
            after = _options(network, change, session)
        case SetModel():
            after = _model(network, change)
        case SkipCallback():
            after = _skip(network, change, session)
        case MoveLayers():
            raise UnknownError("What the layers take of the step was not measured.")
        case unknown:
            unknown_change(unknown)
    return after


def _set(network: Network, change: SetParameters, session: Session) -> Network:
    for name, value in change.parameters.items():
        if name == "num_parallel_calls":
            network = _parallel(network, change.op_id, value, session)
        elif name == "num_parallel_reads":
            network = _parallel_reads(network, change.op_id, value, session)
        elif name == "batch_size":
            network = _batch_size(network, change.op_id, value, session)
        else:
            raise UnknownError(f"What `{name}` changes was not measured.")
    return network


def _parallel(network: Network, op_id: str, value: Scalar, session: Session) -> Network:
    """As many calls as asked for; AUTOTUNE gives one a CPU, which is tf.data's own CPU budget."""
    station = _measured(network, op_id, session)
    if not isinstance(value, int):
        raise UnknownError("The number of parallel calls is not known.")
    calls = network.cpus if value == AUTOTUNE else float(value)
    return network.with_station(replace(station, calls=max(1.0, calls), asynchronous=True))


def _parallel_reads(network: Network, op_id: str, value: Scalar, session: Session) -> Network:
    """Only where reading is CPU work, as decompression is: one reader tells nothing of a disk."""
    reader = session.operation(op_id)
    if reader is None or not _decompresses(reader):
        raise UnknownError("What the disk gives to several readers can't be known from one.")
    return _parallel(network, op_id, value, session)


def _decompresses(reader: Operation) -> bool:
    return reader.parameters.get("compression_type") not in (None, "")


def _batch_size(network: Network, op_id: str, value: Scalar, session: Session) -> Network:
    """All is per step of the old size: what a step costs whatever it holds is shared by more."""
    op = session.operation(op_id)
    before = op.parameters.get("batch_size") if op else None
    if not isinstance(before, int) or not isinstance(value, int) or before <= 0 or value <= 0:
        raise UnknownError("The batch size is not known.")
    return _less_consumer(network, network.fixed_ms * (1.0 - before / value))


def _less_consumer(network: Network, saved_ms: float) -> Network:
    """The consumer without a part of its time, slowed by the pipeline as all of it was."""
    left = max(0.0, 1.0 - saved_ms / network.consumer_ms) if network.consumer_ms > 0 else 1.0
    return replace(
        network,
        consumer_ms=network.consumer_ms * left,
        consumer_alone_ms=network.consumer_alone_ms * left,
        consumer_cpu_ms=network.consumer_cpu_ms * left,
    )


def _insert(network: Network, change: Insert, session: Session) -> Network:
    network, at = _alone(network, change.after, session)
    if at.inside is not None:
        raise UnknownError("What runs within a function starts anew for each element.")
    if change.kind == "prefetch":
        return put_behind(network, at.id, _new("prefetch", at, asynchronous=True))
    if change.kind == "cache" and change.parameters.get("on_disk"):
        raise UnknownError("How fast the disk gives elements back was not measured.")
    if change.kind == "cache":
        return _cached(network, at)
    raise UnknownError(f"What a {change.kind} would cost was not measured.")


def _cached(network: Network, at: Station) -> Network:
    """The cache is full: all that it holds costs nothing more, and handing it out little."""
    if not any(station.service_ms > 0 for station in network.stations.values()):
        raise UnknownError("What the operations cost was not measured.")
    held = upstream(network, at.id) | {at.id}
    held |= {s.id for s in network.stations.values() if s.inside == at.id}
    free = scaled(network, 0.0, held)
    cache = _new("cache", at, service_ms=_hand_over_ms(at.elements))
    return put_behind(free, at.id, cache)


def _new(kind: str, at: Station, service_ms: float = 0.0, *, asynchronous: bool = False) -> Station:
    """A station for as many elements as `at` has; it computes all of its time."""
    return Station(
        id=f"{kind} behind {at.id}",
        kind=kind,
        inputs=(at.id,),
        elements=at.elements,
        service_ms=service_ms,
        cpu_ms=service_ms,
        asynchronous=asynchronous,
    )


def _hand_over_ms(elements: float | None) -> float:
    return (elements or 0.0) * HAND_OVER_MS


def _alone(network: Network, op_id: str, session: Session) -> tuple[Network, Station]:
    """The network in which this operation is a station of its own, and that station.

    A map fused with its batch comes apart: TensorFlow fuses neighbours only. The batch then makes
    its batches from single elements, which the fused operation's time holds already.
    """
    station = _station_of(network, op_id, session)
    if station is None:
        raise UnknownError("The operation was not seen running.")
    if station.batch_id is None:
        return network, station
    elements = None
    if station.elements is not None and station.batch_size:
        elements = station.elements / station.batch_size
    batch = replace(
        _new("batch", station, _hand_over_ms(station.elements)),
        id=station.batch_id,
        elements=elements,
    )
    single = replace(station, batch_id=None, batch_size=None)
    split = put_behind(network.with_station(single), single.id, batch)
    return split, split.stations[op_id if op_id in split.stations else station.id]


def _move(network: Network, change: Move, session: Session) -> Network:
    """A map or a shuffle elsewhere in its chain.

    Behind a batch a map is called once a batch in place of once an element. What an element costs
    beyond the call is taken to fall alike, as its operations then run on long vectors.
    """
    network, station = _alone(network, change.op_id, session)
    network, target = _alone(network, change.after, session)
    station = network.stations[station.id]
    if station.kind not in ("map", "shuffle") or len(station.inputs) != 1 or station.inside:
        raise UnknownError("What the operations cost in another order was not measured.")
    if station.kind == "shuffle" and target.id in upstream(network, station.id):
        raise UnknownError("A shuffle's fill is paid once an epoch, which single steps don't show.")
    if target.elements is None or not station.elements:
        raise UnknownError("How many elements the operations take was not measured.")
    per_batch = target.elements < station.elements / 2
    if target.elements > station.elements * 2 or (per_batch and station.kind != "map"):
        raise UnknownError("What the operation costs for single elements was not measured.")
    moved = put_behind(
        taken_out(network, station), target.id, replace(station, elements=target.elements)
    )
    return scaled(moved, BATCHED, {station.id}) if per_batch else moved


def _remove(network: Network, op_id: str) -> Network:
    station = network.stations.get(op_id)
    if station is None:
        raise UnknownError("The operation runs as part of another one.")
    if len(station.inputs) != 1 or station.inside is not None:
        raise UnknownError("Without it, other elements would come.")
    return taken_out(network, station)


def _replace(network: Network, change: Replace, session: Session) -> Network:
    if change.kind not in ("interleave", "parallel_flat_map"):
        raise UnknownError(f"What a {change.kind} would cost was not measured.")
    inner = session.pipeline.ops if session.pipeline else []
    readers = [
        op
        for op in inner
        if op.inside_function_of == change.op_id and "file_count" in op.parameters
    ]
    if any(not _decompresses(op) for op in readers):
        raise UnknownError("What the disk gives to several readers can't be known from one.")
    asked = change.parameters.get("num_parallel_calls")
    cycle = change.parameters.get("cycle_length")
    after = _parallel(network, change.op_id, asked, session)
    if not isinstance(cycle, int) or cycle < 1:
        return after
    station = after.stations[_carrier(change.op_id, session)]
    return after.with_station(replace(station, calls=min(station.calls, float(cycle))))


def _options(network: Network, change: SetOptions, session: Session) -> Network:
    for name, value in change.options.items():
        if name.endswith("private_threadpool_size") and isinstance(value, int) and value > 0:
            network = replace(network, threads=float(value))
        elif name == "optimization.apply_default_optimizations" and value is True:
            network = _with_defaults(network, session)
        elif name == "optimization.inject_prefetch" and value is True:
            network = replace(network, overlaps=True)
        elif name != "autotune.enabled" or value is not True:
            raise UnknownError(f"What `{name}` changes was not measured.")
    return network


def _with_defaults(network: Network, session: Session) -> Network:
    """TensorFlow runs stateless maps in parallel, and appends a prefetch."""
    ops = session.pipeline.ops if session.pipeline else []
    for op in ops:
        stateless = op.function is not None and not op.function.stateful
        given = op.parameters.get("num_parallel_calls")
        if op.kind == "map" and stateless and given is None and not op.inside_function_of:
            network = _parallel(network, op.id, AUTOTUNE, session)
    return replace(network, overlaps=True)


def _model(network: Network, change: SetModel) -> Network:
    """Steps that share a call share its Python, and without an accelerator its dispatch."""
    calls = change.settings.get("steps_per_execution")
    if set(change.settings) != {"steps_per_execution"} or not isinstance(calls, int):
        raise UnknownError("What the model would cost compiled otherwise was not measured.")
    return _less_consumer(network, network.per_call_ms * (1.0 - 1.0 / max(1, calls)))


def _skip(network: Network, change: SkipCallback, session: Session) -> Network:
    """The consumer without the callback's part in the stack samples, which are spread evenly."""
    named = (change.callback, change.file, change.line)
    found = [one for one in per_batch_callbacks(session) if (one.name, one.file, one.line) == named]
    percent = callback_percent(session, found[0]) if found else 0.0
    if percent <= 0:
        raise UnknownError("What the callback costs was not measured.")
    return _less_consumer(network, network.step_ms * percent / 100.0)


def _measured(network: Network, op_id: str, session: Session) -> Station:
    """The station at which the operation's cost is counted, if it has one."""
    station = _station_of(network, op_id, session)
    cost = station.service_ms if station is not None else 0.0
    inner = [s.service_ms for s in network.stations.values() if s.inside == op_id]
    if station is None or cost + sum(inner) <= 0:
        raise UnknownError("What the operation costs was not measured.")
    return station


def _station_of(network: Network, op_id: str, session: Session) -> Station | None:
    return network.stations.get(op_id) or network.stations.get(_carrier(op_id, session))


def _carrier(op_id: str, session: Session) -> str:
    op = session.operation(op_id)
    return op.fused_into if op is not None and op.fused_into else op_id
