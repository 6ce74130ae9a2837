"""Summaries of profiles: steps, input pipeline and devices, of one host or of several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pipediag.errors import PipediagError
from pipediag.session.devices import UnreadFile
from pipediag.tensorflow_names import DEVICE_PREFETCH
from pipediag.trace import ON_TPU
from pipediag.trace.classes import classify
from pipediag.trace.devices import DeviceTrace, device_traces
from pipediag.trace.events import TraceEvents
from pipediag.trace.files import host_of, read, read_profile
from pipediag.trace.operations import ComputeTimes, compute_times, text_ns
from pipediag.trace.pipeline import IteratorActivity, iterator_activity, pipeline_records
from pipediag.trace.steps import StepSplit, StepWindows, find_steps, split_steps
from pipediag.vocabulary import Framework, TraceFormat

_OWN_WINDOWS = frozenset({"markers", "get_next"})
"""Steps that limit the devices' window. Annotations of others, and inferred steps, may leave out a
part of the training: then the whole recording counts."""

_SIGNS: tuple[tuple[Framework, tuple[str, ...]], ...] = (
    ("pytorch", ("aten::", "ProfilerStep#")),
    # Keras on JAX may take its batches from tf.data: then both have left events.
    ("jax", ("PjitFunction(", "PJRT_LoadedExecutable_Execute")),
)

NO_STEPS = (
    "The profile has no step markers or annotations, too few batches to tell the steps apart, and "
    "no function whose calls take nearly all of the time."
)


@dataclass(frozen=True)
class TraceSummary:
    """Summary of one file, which is of one host."""

    path: Path
    host: str
    """Taken from the file's name."""
    format: TraceFormat
    event_count: int
    window_ns: tuple[int, int]
    """First step's start to last step's end; without steps, the whole profile."""
    steps: StepSplit | None
    iterators: tuple[IteratorActivity, ...]
    """Within the window."""
    devices: tuple[DeviceTrace, ...]
    get_next_calls: int
    """Batches that were asked for in the window; each replica asks for its own."""
    compute: ComputeTimes | None = None
    """Operations of the steps' compute, where they were asked for and there are steps."""
    text_ns: int | None = None
    """Time of work on text within the steps, where there are steps."""
    steps_missing: str | None = None
    """Reason why there are no steps, as a sentence."""
    framework: Framework = "tensorflow"
    warnings: tuple[str, ...] = ()
    """Notes of the profiler, or of the reader."""


def summarise(path: Path, *, by_operation: bool = False) -> TraceSummary:
    """Return where the time of a profile's steps went, given a file or a log directory.

    With `by_operation` their compute is divided among operations. Raises PipediagError.
    """
    return summarise_events(read(path), by_operation=by_operation)


def summarise_events(events: TraceEvents, *, by_operation: bool = False) -> TraceSummary:
    """Return where the time of the steps went."""
    records, activity = pipeline_records(events), classify(events)
    steps = find_steps(events, activity)
    window = _window(events, steps)
    iterators = iterator_activity(records, window)
    split = split_steps(activity.by_class, steps) if steps else None
    measured = window if steps is not None and steps.basis in _OWN_WINDOWS else None
    # The host's operations are no measure of a TPU.
    devices = [] if events.on_tpu else device_traces(events, activity, records, measured)
    compute, text = None, None
    if split is not None:
        text = text_ns(activity, split.windows)
        if by_operation:
            total_ns = int(split.column("device_compute").sum())
            compute = compute_times(events, activity, split.windows, total_ns)
    return TraceSummary(
        path=events.path,
        host=host_of(events.path),
        format=events.format,
        event_count=events.event_count,
        window_ns=window,
        steps=split,
        iterators=tuple(iterators),
        devices=tuple(devices),
        get_next_calls=_batches(iterators),
        compute=compute,
        text_ns=text,
        steps_missing=None if steps is not None else NO_STEPS,
        framework=_framework_of(events),
        warnings=(*([ON_TPU] if events.on_tpu else []), *events.warnings),
    )


def _batches(iterators: list[IteratorActivity]) -> int:
    """Return the root's calls. Replicas draw from a prefetch that reads from the host's root, whose
    calls are for the same batches."""
    roots = [entry for entry in iterators if entry.kind == "Root"]
    of_replicas = [entry for entry in roots if DEVICE_PREFETCH in entry.names]
    return sum(entry.calls for entry in of_replicas or roots)


def _window(events: TraceEvents, steps: StepWindows | None) -> tuple[int, int]:
    if steps is not None:
        return int(steps.windows[0, 0]), int(steps.windows[-1, 1])
    ends = (int(line.end_ns.max()) for line in events.lines() if len(line))
    return events.first_ns, max(ends, default=0)


def read_hosts(paths: Sequence[Path]) -> tuple[list[TraceSummary], list[UnreadFile]]:
    """Return the summary of each host's file, in the order of the paths, and why others have none.

    Files of one name from several directories get the directory's name in front.
    """
    hosts: list[TraceSummary] = []
    unread: list[UnreadFile] = []
    for path in paths:
        try:
            hosts.append(summarise_events(read_profile(path)))
        except PipediagError as error:
            unread.append(UnreadFile(path=str(path), reason=str(error)))
        except MemoryError:
            reason = f"{path} was not read: there is not enough memory."
            unread.append(UnreadFile(path=str(path), reason=reason))
    of_name = Counter(host.host for host in hosts)
    return [
        replace(host, host=f"{host.path.absolute().parent.name}/{host.host}")
        if of_name[host.host] > 1
        else host
        for host in hosts
    ], unread


def _framework_of(events: TraceEvents) -> Framework:
    """Return the framework that the host's threads called; TensorFlow where none shows."""
    for framework, prefixes in _SIGNS:
        if any(len(line.starting(*prefixes)) for line in events.host_lines):
            return framework
    return "tensorflow"
