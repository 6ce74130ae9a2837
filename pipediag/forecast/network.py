"""The model itself: stations, the stages that they form, and the laws that bound the step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

Limit = Literal["input", "consumer", "cpu"]


@dataclass(frozen=True)
class Station:
    """One operation as it runs; all times are milliseconds per step."""

    id: str
    kind: str
    inputs: tuple[str, ...]
    """The stations that it reads from."""
    elements: float | None
    """Visits: elements that it hands over per step."""
    service_ms: float
    """Wall time in it alone, summed over its calls, its thread's waits included."""
    cpu_ms: float
    """The part of it that is spent on a CPU."""
    calls: float = 1.0
    """Calls in flight at once, before the thread pool's limit."""
    asynchronous: bool = False
    """Whether it works ahead in threads of its own, so that a new stage begins below it."""
    holds_lock: bool = False
    """Whether its CPU time may be spent under the interpreter lock."""
    unbounded: bool = False
    """Whether its calls need no thread of the pool."""
    inside: str | None = None
    """The station whose function it is part of, and on whose threads it runs."""
    batch_id: str | None = None
    """The batch that is fused into it, by the id that it has as it was written."""
    batch_size: int | None = None


@dataclass(frozen=True)
class Network:
    """Pipeline and consumer; all times are milliseconds per step."""

    stations: Mapping[str, Station]
    root: str | None
    """The station that hands batches to the consumer; None where no operation is known."""
    step_ms: float
    """The step as it was measured."""
    consumer_ms: float
    """The consumer's own time while this pipeline runs beside it."""
    consumer_alone_ms: float
    """The same with no pipeline beside it; at most `consumer_ms`."""
    consumer_cpu_ms: float
    pipeline_cpu_ms: float
    """CPU time of the stations as it was measured: `consumer_ms` holds at that much."""
    fixed_ms: float
    """The part of the consumer's time that does not grow with the batch."""
    per_call_ms: float
    """The part of the consumer's time that is paid once a call, however many steps it runs."""
    cpus: float
    """How many the process may use."""
    capacity: float
    """What they do together, in those that run alone: less where two are threads of one core, or
    are shared with others."""
    threads: float
    """Threads that parallel calls share."""
    consumer_share: float
    """Part of the steps that the consumer set and not the pipeline, 0 to 1."""
    overlaps: bool
    """Whether TensorFlow appends a prefetch where the last operation is synchronous."""

    def with_station(self, station: Station) -> Network:
        """The network with this station in place of the one of the same id."""
        return replace(self, stations={**self.stations, station.id: station})


@dataclass(frozen=True)
class Stage:
    """What one thread does one after the other, or one operation with its parallel calls."""

    stations: tuple[str, ...]
    ms: float
    """Milliseconds per step."""
    ahead: bool
    """Whether it works ahead of the consumer; otherwise the two take turns."""


@dataclass(frozen=True)
class Bound:
    """The shortest step that one law allows, in milliseconds."""

    ms: float
    limit: Limit


def step(network: Network, measured: Network) -> Bound:
    """The step after an edit that made this network of the measured one, and what then sets it.

    The tightest of the laws' bounds, and one for a consumer and a pipeline that vary from step to
    step: each step takes the longer of the two, so its mean is convex in what both are scaled by,
    and lies above the tangent at what was measured. There the steps that the consumer set scale as
    the consumer, and the others as the pipeline.
    """
    before, after = _means(measured), _means(network)
    share = measured.consumer_share
    consumers = min(measured.step_ms, share * before[0])
    pipelines = (measured.step_ms - consumers) * (_ratio(after[1], before[1]) if share < 1 else 1.0)
    scaled = consumers * _ratio(after[0], before[0]) + pipelines
    limit: Limit = "consumer" if after[0] > after[1] else "input"
    return max([*bounds(network), Bound(scaled, limit)], key=_ms)


def _ratio(after: float, before: float) -> float:
    return after / before if before > 0 else 1.0


def _ms(bound: Bound) -> float:
    return bound.ms


def _means(network: Network) -> tuple[float, float]:
    """Milliseconds per step of the consumer's thread, and of the slowest stage ahead of it."""
    found = stages(network)
    beside = sum(stage.ms for stage in found if not stage.ahead)
    ahead = max((stage.ms for stage in found if stage.ahead), default=0.0)
    return consumer_ms(network) + beside, ahead


def bounds(network: Network) -> list[Bound]:
    """What each law allows at best."""
    found = stages(network)
    beside = sum(stage.ms for stage in found if not stage.ahead)
    consumer = consumer_ms(network)
    turns: Limit = "input" if beside > consumer else "consumer"
    cpu = sum(station.cpu_ms for station in network.stations.values())
    consumer_cpu = network.consumer_cpu_ms
    if network.consumer_ms > 0:
        consumer_cpu *= consumer / network.consumer_ms
    # CPU time is shared out by wall time: what a call seems to take beyond its own is others'.
    lock = sum(min(s.cpu_ms, s.service_ms) for s in network.stations.values() if s.holds_lock)
    return [
        Bound(consumer + beside, turns),
        *(Bound(stage.ms, "input") for stage in found if stage.ahead),
        Bound((cpu + consumer_cpu) / network.capacity, "cpu"),
        Bound(lock, "cpu"),
    ]


def consumer_ms(network: Network) -> float:
    """The consumer's time, which grows from what it takes alone with the pipeline's CPU time.

    Both share the CPUs: each millisecond of CPU that the pipeline spends per step is taken to cost
    the consumer the same as it did when it was measured, wherever in the step it falls.
    """
    if network.pipeline_cpu_ms <= 0:
        return network.consumer_ms
    cpu = sum(station.cpu_ms for station in network.stations.values())
    share = min(1.0, cpu / network.pipeline_cpu_ms)
    slowed = network.consumer_ms - network.consumer_alone_ms
    return network.consumer_alone_ms + slowed * share


def stages(network: Network) -> list[Stage]:
    """The stages of the pipeline, the one nearest to the consumer first."""
    if network.root is None:
        return []
    below: list[Stage] = []
    # The stations that the thread that reads from each one serves.
    serves: dict[str, list[str]] = {}
    for station in _sources_first(network, network.root):
        served = [id for above in station.inputs for id in serves[above]]
        serves[station.id] = [] if station.asynchronous else [station.id, *served]
        if station.asynchronous:
            below[:0] = [_stage(network, [station.id]), _stage(network, served)]
    last = serves[network.root]
    found = [_stage(network, last, ahead=network.overlaps), *below]
    return [stage for stage in found if stage.stations]


def _sources_first(network: Network, root_id: str) -> Iterator[Station]:
    """Every station above the root and itself, each behind what it reads from."""
    done: set[str] = set()
    # Not by recursion: a chain of datasets can be longer than Python's stack.
    waiting = [(root_id, False)]
    while waiting:
        id, inputs_done = waiting.pop()
        station = network.stations[id]
        if inputs_done:
            yield station
        elif id not in done:
            done.add(id)
            waiting += [(id, True), *((above, False) for above in reversed(station.inputs))]


def _stage(network: Network, ids: list[str], *, ahead: bool = True) -> Stage:
    ms = sum(station_ms(network, network.stations[id]) for id in ids)
    return Stage(tuple(ids), ms, ahead)


def station_ms(network: Network, station: Station) -> float:
    """Service time over calls in flight, with what runs in its function."""
    inner = [s for s in network.stations.values() if s.inside == station.id]
    spent = station.service_ms + sum(station_ms(network, one) for one in inner)
    return spent / in_flight(network, station)


def in_flight(network: Network, station: Station) -> float:
    """Calls at once, no more than there are threads for."""
    limit = station.calls if station.unbounded else network.threads
    return max(1.0, min(station.calls, limit))


def outermost(network: Network, station_id: str) -> str:
    """The station on whose threads this one runs: itself, unless it is part of a function."""
    around = network.stations[station_id].inside
    if around is None or around not in network.stations:
        return station_id
    return outermost(network, around)


def upstream(network: Network, station_id: str) -> set[str]:
    """The stations whose elements reach this one, with those in their functions."""
    found: set[str] = set()
    waiting = list(network.stations[station_id].inputs)
    while waiting:
        above = waiting.pop()
        if above not in found:
            found.add(above)
            waiting += network.stations[above].inputs
    return found | {s.id for s in network.stations.values() if s.inside in found}


def scaled(network: Network, factor: float, ids: set[str]) -> Network:
    """The network whose stations of these ids take `factor` times as long, wall and CPU."""
    changed = {
        id: replace(s, service_ms=s.service_ms * factor, cpu_ms=s.cpu_ms * factor)
        for id, s in network.stations.items()
        if id in ids
    }
    return replace(network, stations={**network.stations, **changed})


def put_behind(network: Network, above: str, station: Station) -> Network:
    """A new station takes the elements of `above`; what read from that reads from the new one."""
    readers = _rewired(network, above, station.id)
    root = station.id if network.root == above else network.root
    new = replace(station, inputs=(above,))
    return replace(network, stations={**readers, station.id: new}, root=root)


def taken_out(network: Network, station: Station) -> Network:
    """What read from the station reads from the one that it read from itself."""
    above = station.inputs[0]
    others = {id: s for id, s in _rewired(network, station.id, above).items() if id != station.id}
    root = above if network.root == station.id else network.root
    return replace(network, stations=others, root=root)


def _rewired(network: Network, old: str, new: str) -> dict[str, Station]:
    return {
        id: replace(s, inputs=tuple(new if above == old else above for above in s.inputs))
        for id, s in network.stations.items()
    }
