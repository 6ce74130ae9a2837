"""Classes of the step's time: which events belong to which.

- Device compute is every kernel on any stream of an accelerator. Without one, the executor threads'
  operation events (`scope/op:Type`) take its place, XLA's thunks (events with the statistic
  `hlo_op`), and an eager operation's `KernelAndDeviceFunc::Run` inside `EagerExecute`. An operation
  that only calls a function wraps other events and is not compute. Nor are operations of tf.data's
  own functions, whatever thread they are on.
- A collective is a kernel that exchanges values between devices, or such an operation on the host.
  It includes the wait for other workers, which a strategy has in its iterators, too.
- Input wait is the time in `IteratorGetNextOp::DoCompute`, where the consumer blocks; in PyTorch,
  the time in which the training thread takes a batch from its DataLoader. A multi-device iterator's
  GetNext is called by a background prefetcher and blocks nobody.
- A call with `tf_function_call` = `traced-*` is compilation from end to end. Other compilation is
  known by the compilers' event names.
- Dispatch is any call into TensorFlow, JAX or XLA on the training thread, and on an accelerator
  also what the executor threads do, which is launching. On a CPU it includes the time in which a
  graph function runs but no operation does. Inside a graph that loops by itself there is no
  training thread, and all the rest is dispatch.
- Waiting for the device: the runtime's synchronisation calls, and on an accelerator the time in
  which the training thread is blocked in a graph function that neither launches nor compiles.
- Python is the rest of the training thread's time, waiting for the GIL included.
- Unattributed is what lies outside the training thread's record, or everything where there is none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from pipediag.trace.device_events import DEVICE_CLASSES, DeviceEvents, device_events
from pipediag.trace.events import Indices, Line, Times, TraceEvents
from pipediag.trace.intervals import EMPTY, Intervals, intersect, normalise, subtract, union
from pipediag.trace.threads import (
    FEWEST_BATCHES,
    OPERATION,
    THUNK,
    TrainingGraph,
    captured_function_ids,
    training_line,
)
from pipediag.vocabulary import StepClass

STEP_CLASSES: tuple[StepClass, ...] = (
    "device_compute",
    "input_wait",
    "device_copy",
    "collective",
    "device_wait",
    "compile",
    "dispatch",
    "python",
    "unattributed",
)
"""Classes in order of priority: where several hold at once, the first takes the time.

Input wait stands below compute and above copies, as in XProf (`event_span.h`): input that arrives
while the device computes costs nothing.
"""

_GET_NEXT = re.compile(r"IteratorGetNext(Sync|AsOptional)?Op::DoCompute$")

_LOADER = re.compile(r"enumerate\(DataLoader\)")
_EAGER_KERNEL = re.compile(r"KernelAndDeviceFunc::Run$")
_COMPILE = re.compile(
    r"(?!\$).*(Compiler?::|::Compile|\bCompileTo|[Cc]ompil(e|ing|ation)\b|graph_building"
    r"|HLO passes)"
)
_SYNCHRONISE = re.compile(
    r"(?!\$).*(BlockUntilReady|BlockHostUntil|(Stream|Ctx|Context|Event|Device)Synchronize|::Await)"
)
_DISPATCH = re.compile(
    r"TFE_|Eager|KernelAndDeviceFunc::|FunctionRun$|Executor|ValidateInputType|convert_to_tensor"
    r"|tf\.constant|PjitFunction|PJRT_|PjRt|ParseArguments|DevicePut|\w+Executable::|\w*Thunk"
    r"|(cu|hip)[A-Z]\w*(Launch|Memcpy)"
)
# PyTorch's backward pass launches from a thread of its own, while the training thread waits for it.
_TORCH = re.compile(r"(aten|autograd|torch|c10d|nccl)::?\w|(cuda|hip)[A-Z]|Optimizer\.|torch\.")


@dataclass(frozen=True)
class Activity:
    """Times of each class by itself: overlaps are not resolved yet."""

    line: Line | None
    """The training thread; None where no call of a graph function ended."""
    by_class: dict[StepClass, Intervals]
    handed_over_ns: Times
    """Times at which batches had come, in order; the replicas' parts of a batch are one."""
    graph: TrainingGraph
    devices: list[DeviceEvents]
    """Accelerators on which anything ran."""
    eager: Intervals
    """Times at which the training thread ran the kernel of an eager operation."""


def classify(events: TraceEvents) -> Activity:
    """Return one set of intervals for each class."""
    functions = captured_function_ids(events)
    line = training_line(events, functions)
    fetches = _fetches(events.host_lines, functions)
    get_next = union(*(found.during(indices) for found, indices in fetches))
    graph = TrainingGraph(events.host_lines, frozenset(functions))
    eager = EMPTY
    by_class: dict[StepClass, Intervals] = dict.fromkeys(STEP_CLASSES[:-1], EMPTY)
    if line is None:
        by_class["input_wait"] = get_next
        # A loop inside of a graph calls nothing from Python.
        if len(get_next) >= FEWEST_BATCHES:
            by_class["dispatch"] = normalise([get_next[0, 0]], [get_next[-1, 1]])
    else:
        by_class.update(_on_thread(line, graph, get_next))
        eager = subtract(line.during_like(_EAGER_KERNEL), _eager_calls(line, graph_only=False))
    devices = [device_events(plane) for plane in events.accelerators]
    if devices:
        by_class = _with_accelerators(by_class, devices, graph, line)
    else:
        by_class["device_compute"] = union(eager, graph.operations())
        by_class["collective"] = graph.collectives()
    return Activity(
        line=line,
        by_class=by_class,
        handed_over_ns=_handed_over(fetches),
        graph=graph,
        devices=devices,
        eager=eager,
    )


def _on_thread(line: Line, graph: TrainingGraph, get_next: Intervals) -> dict[StepClass, Intervals]:
    calls = line.having(line.names_with("tf_function_call"))
    texts, text_of = line.statistics.texts("tf_function_call", calls)
    traced = calls[np.array([text.startswith("traced") for text in texts])[text_of]]
    return {
        "input_wait": union(get_next, line.during_like(_LOADER)),
        "device_wait": line.during_like(_SYNCHRONISE),
        # XLA compiles a step within a step where an operation of the outer one calls it.
        "compile": union(
            line.during_like(_COMPILE), line.during(traced), graph.on_executors(_COMPILE)
        ),
        "dispatch": union(
            line.during_like(_DISPATCH),
            line.during_like(OPERATION),
            line.during(calls),
            line.during(line.having(line.names_with(THUNK))),
        ),
        "python": normalise([line.start_ns.min()], [line.end_ns.max()]),
    }


def _with_accelerators(
    host: dict[StepClass, Intervals],
    devices: list[DeviceEvents],
    graph: TrainingGraph,
    line: Line | None,
) -> dict[StepClass, Intervals]:
    """The executor's threads launch; a graph call in which they do not is a wait for the device."""
    launching = union(graph.executing(), *(other.during_like(_TORCH) for other in graph.lines))
    calls, called = host["dispatch"], EMPTY
    if line is not None:
        called = calls
        calls = intersect(line.during_like(_EAGER_KERNEL), _eager_calls(line, graph_only=True))
    blocked = subtract(calls, union(launching, host["compile"]))
    return {
        **host,
        **{name: union(*(device.running(name) for device in devices)) for name in DEVICE_CLASSES},
        "collective": union(*(d.running("collective") for d in devices), graph.collectives()),
        "device_wait": union(host["device_wait"], blocked),
        "dispatch": union(called, launching),
    }


def _eager_calls(line: Line, *, graph_only: bool) -> Intervals:
    """Return eager calls of graph functions, and unless `graph_only` of what waits too."""
    calls = line.starting("EagerExecute")
    chosen = calls[line.integers("is_func", calls) != 0]
    if not graph_only:
        # The event around it names its operation only in a statistic.
        other = ("EagerLocalExecute: IteratorGetNext", "EagerLocalExecute: Collective")
        chosen = np.concatenate((chosen, line.starting(*other)))
    return line.during(chosen)


def _fetches(lines: list[Line], functions: set[int]) -> list[tuple[Line, Indices]]:
    """Return the consumer's calls of GetNext on each line.

    A tf.data function that reads another iterator is no consumer.
    """
    found = [(line, line.matching(_GET_NEXT)) for line in lines]
    ids = list(functions)
    return [(line, calls[~np.isin(line.step_ids(calls), ids)]) for line, calls in found]


def _handed_over(fetches: list[tuple[Line, Indices]]) -> Times:
    """Return the end of the last fetch of each iteration of each run of a graph function."""
    nothing = np.empty(0, np.int64)
    runs = np.concatenate([nothing, *(line.step_ids(i) for line, i in fetches)])
    found = [line.statistics.integers("iter_num", i) for line, i in fetches]
    rounds = np.concatenate([nothing, *(np.where(known, number, -1) for number, known in found)])
    ends = np.concatenate([nothing, *(line.end_ns[i] for line, i in fetches)])
    order = np.lexsort((ends, rounds, runs))
    runs, rounds, ends = runs[order], rounds[order], ends[order]
    # A fetch that does not say which iteration it belongs to is one of its own.
    another = (runs[1:] != runs[:-1]) | (rounds[1:] != rounds[:-1]) | (rounds[1:] == -1)
    return np.sort(ends[np.append(another, True)[: len(ends)]])
