"""The input pipeline as written, with what each operation cost as TensorFlow ran it."""

from __future__ import annotations

import linecache
import re
from dataclasses import fields, replace

from pipediag.measures.pipeline_iterators import (
    Joined,
    RanIterator,
    join,
    node_rates,
    ran_iterators,
)
from pipediag.measures.steps import measure_perturbation, windows_of
from pipediag.session.pipeline import IteratorFigures, Operation, Pipeline
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recording import RecordedOperation, Recording
from pipediag.tensorflow_names import RUNS_A_FUNCTION
from pipediag.trace.pipeline import IteratorKey
from pipediag.trace.summary import TraceSummary


def with_python_calls(
    ops: list[Operation], recording: Recording, loop: RecordedLoop
) -> list[Operation]:
    """Fill in calls, wall time and CPU time of the operations that call Python.

    An operation takes itself at least the wall time of its Python, also where a profile lost some.
    """
    baseline = windows_of(recording, loop, "baseline")
    measured = [window for window in baseline if window.python_calls is not None]
    intervals = sum(len(block.durations_ns) for window in measured for block in window.blocks)
    steps = intervals * loop.batches_per_call
    if not steps:
        return ops
    # A function of a nested dataset is that of the innermost operation, whose call began last.
    owners = {
        token: operation.id
        for operation in recording.operations
        if operation.function is not None
        for token in operation.function.python_tokens
    }
    called = [calls for window in measured for calls in window.python_calls or ()]

    def filled(op: Operation) -> Operation:
        own = [calls for calls in called if owners.get(calls.token) == op.id]
        wall_ns, cpu_ns = sum(one.wall_ns for one in own), sum(one.cpu_ns for one in own)
        wall_ms = wall_ns / 1e6 / steps
        return replace(
            op,
            self_ms_per_step=max(op.self_ms_per_step or 0.0, wall_ms) or op.self_ms_per_step,
            python_calls_per_step=sum(one.calls for one in own) / steps,
            python_wall_ms_per_step=wall_ms,
            python_cpu_ms_per_step=cpu_ns / 1e6 / steps,
        )

    return [filled(op) if op.id in owners.values() else op for op in ops]


def plan_of(operations: list[RecordedOperation], root_id: str | None) -> list[RecordedOperation]:
    """Return every operation whose elements reach `root_id`, sources first. Datasets that a
    function makes stand before its operation; of a function that was traced again the last tracing
    counts."""
    by_id = {operation.id: operation for operation in operations}
    nested: dict[str, dict[tuple[object, ...], str]] = {}
    for operation in operations:
        if operation.inside_function_of is not None:
            place = (operation.kind, operation.file, operation.line)
            nested.setdefault(operation.inside_function_of, {})[place] = operation.id
    ordered: dict[str, RecordedOperation] = {}
    seen: set[str] = set()
    # Not by recursion: a chain of datasets can be longer than Python's stack.
    waiting = [] if root_id is None else [(root_id, False)]
    while waiting:
        op_id, sources_stand = waiting.pop()
        if op_id not in by_id:
            continue
        if sources_stand:
            ordered[op_id] = by_id[op_id]
        elif op_id not in seen:
            seen.add(op_id)
            sources = (*by_id[op_id].parent_ids, *nested.get(op_id, {}).values())
            waiting += [(op_id, True), *((source, False) for source in reversed(sources))]
    return list(ordered.values())


_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_VERSION = re.compile(r"V\d+$")

ABOUT_EQUAL = 0.9
"""Part of the largest latency. Own choice: repeated runs of one script differ by a tenth, so that
which of two such operations is the slowest may change from run to run."""


SEVERAL_ITERATORS = (
    "Each step draws from several iterators, and it is not known which of their pipelines it waits "
    "for. Combine their datasets with `tf.data.Dataset.zip`, or measure each of them with "
    "`pipediag.analyze_input`."
)


def measure_pipeline(
    recording: Recording, loop: RecordedLoop, trace: TraceSummary | None
) -> tuple[Pipeline, dict[IteratorKey, str]]:
    """Return the joined plan, model and profile, and which operation each iterator is.

    Without either of the last two the costs are None. A step that draws from several pipelines has
    none: the one that it waits for is not known.
    """
    if loop.several_iterators:
        return Pipeline(ops=[], bottleneck_op_id=None, missing=SEVERAL_ITERATORS), {}
    plan = plan_of(recording.operations, loop.root_op_id)
    rates = node_rates([s for s in recording.snapshots if s.loop_id == loop.id])
    names = {operation.name for operation in plan if operation.name}
    others = {operation.name for operation in recording.operations if operation.name} - names
    perturbation = measure_perturbation(recording, loop)
    slowed = max(1.0, (perturbation.ratio if perturbation is not None else None) or 1.0)
    ran = ran_iterators(rates, trace, names, others, slowed, loop.replicas)
    joined = join(plan, ran)
    ops = _with_inserted(_written(plan, joined), joined)
    ops = with_python_calls(ops, recording, loop)
    ops = with_latency(ops)
    limiting = slowest(ops)
    pipeline = Pipeline(
        ops=ops,
        bottleneck_op_id=limiting[0] if limiting else None,
        tied_op_ids=limiting[1:],
        options=dict(loop.dataset_options),
        autotune_enabled=loop.autotune_enabled,
        missing=_missing(plan, ran, loop, trace),
    )
    return pipeline, joined.operation_of


def written_pipeline(recording: Recording, loop: RecordedLoop) -> Pipeline | None:
    """Return the pipeline of a loop that is not diagnosed; None where it is not tf.data's."""
    plan = plan_of(recording.operations, loop.root_op_id)
    if not plan:
        return None
    return Pipeline(
        ops=_written(plan, Joined()),
        bottleneck_op_id=None,
        options=dict(loop.dataset_options),
        autotune_enabled=loop.autotune_enabled,
        missing="The cost of each operation is measured only for the diagnosed loop.",
    )


def slowest(ops: list[Operation]) -> list[str]:
    """Return the operations with the largest latency per step, the one to name first at the head.

    Latency is self time over the calls in flight: what an operation takes of a batch's way. What
    TensorFlow inserted hands batches on and is not named. About equals all limit the pipeline, and
    their order does not depend on the measurement: functions of the user's come first, then what is
    nearest to the source.
    """
    known = [op for op in ops if op.latency_ms_per_step and not op.inserted_by_tensorflow]
    most = max((op.latency_ms_per_step or 0.0 for op in known), default=0.0)
    equals = [op for op in known if (op.latency_ms_per_step or 0.0) >= ABOUT_EQUAL * most]
    return [op.id for op in sorted(equals, key=lambda op: op.kind not in RUNS_A_FUNCTION)]


def with_latency(ops: list[Operation]) -> list[Operation]:
    """Fill in self time over calls in flight; calls of an outer interleave multiply."""
    calls = {op.id: op.parallelism or 1 for op in ops}
    outer = {op.id: op.inside_function_of for op in ops}

    def in_flight(op_id: str) -> int:
        around = outer.get(op_id)
        return calls.get(op_id, 1) * (in_flight(around) if around is not None else 1)

    return [
        op
        if op.self_ms_per_step is None
        else replace(op, latency_ms_per_step=op.self_ms_per_step / max(1, in_flight(op.id)))
        for op in ops
    ]


def _written(plan: list[RecordedOperation], joined: Joined) -> list[Operation]:
    carrier_of = {fused: carrier for carrier, ids in joined.fused.items() for fused in ids}
    behind_cache = _behind_cache(plan, joined)
    rows = []
    for operation in plan:
        iterators = joined.of_operation.get(operation.id, [])
        row = _operation(operation, iterators)
        row.fused_from = joined.fused.get(operation.id, [])
        row.fused_into = carrier_of.get(operation.id)
        sizes = (op.parameters.get("batch_size") for op in plan if op.id in row.fused_from)
        batch = next((size for size in sizes if isinstance(size, int) and size > 0), None)
        if batch is not None and row.elements is not None:
            # A map fused with its batch is counted in batches; its function runs for each element.
            row.elements *= batch
            if row.bytes_per_element is not None:
                row.bytes_per_element /= batch
        if operation.id in behind_cache and not iterators and operation.id not in carrier_of:
            row.elements = row.self_ms_per_step = 0.0
        rows.append(row)
    return rows


def _operation(operation: RecordedOperation, iterators: list[RanIterator]) -> Operation:
    first = iterators[0] if iterators else None
    known = (iterator.self_ms_per_step for iterator in iterators)
    spent = [ms for ms in known if ms is not None]
    parallel = (i.parallelism for i in iterators if i.parallelism is not None)
    tunable = (i.autotuned for i in iterators if i.autotuned is not None)
    buffers = (i.buffer_size for i in iterators if i.buffer_size)
    buffered = (i.buffered_elements for i in iterators if i.buffered_elements is not None)
    # An operation with a function that ran without parallel calls has one in flight.
    serial = 1 if first is not None and operation.function is not None else None
    asked = operation.parameters.get("buffer_size")
    recorded = {
        **vars(operation),
        "name": operation.name or None,
        "function": operation.function and replace(operation.function, python_tokens=[]),
    }
    return Operation(
        **recorded,
        code=source_line(operation.file, operation.line),
        elements=first.elements if first else None,
        self_ms_per_step=sum(spent) if spent else None,
        bytes_per_element=first.bytes_per_element if first else None,
        parallelism=next(parallel, serial),
        autotuned=next(tunable, None),
        buffered_elements=next(buffered, None),
        buffer_size=next(buffers, asked if isinstance(asked, int) and asked > 0 else None),
    )


def _behind_cache(plan: list[RecordedOperation], joined: Joined) -> set[str]:
    """Return operations whose elements reach the loop only through a cache that is being read."""
    behind: set[str] = set()
    for operation in reversed(plan):
        reading = operation.kind == "cache" and operation.id in joined.of_operation
        if reading or operation.id in behind:
            behind.update(operation.parent_ids)
    return behind


def _with_inserted(ops: list[Operation], joined: Joined) -> list[Operation]:
    """Add the operations that TensorFlow put in, each after the one that it reads from."""
    ordered = list(ops)
    added: list[tuple[RanIterator, str | None, str]] = []
    for number, (iterator, written) in enumerate(reversed(joined.inserted), start=1):
        between = [
            inner_id
            for inner, below, inner_id in added
            if below == written and inner.path.startswith(f"{iterator.path}::")
        ]
        below = between[-1] if between else written
        inserted = Operation(
            id=f"tf{number}",
            kind=_CAMEL.sub("_", _VERSION.sub("", iterator.kind)).lower(),
            name=None,
            file=None,
            line=None,
            parent_ids=[below] if below else [],
            **{one.name: getattr(iterator, one.name) for one in fields(IteratorFigures)},
            inserted_by_tensorflow=True,
        )
        places = [place for place, op in enumerate(ordered, start=1) if op.id == below]
        ordered.insert(places[0] if places else len(ordered), inserted)
        added.append((iterator, written, inserted.id))
    return ordered


def source_line(file: str | None, line: int | None) -> str | None:
    """Return the source line without its indentation, or None where it can't be read."""
    if file is None or line is None:
        return None
    return linecache.getline(file, line).strip() or None


def _missing(
    plan: list[RecordedOperation],
    ran: list[RanIterator],
    loop: RecordedLoop,
    trace: TraceSummary | None,
) -> str | None:
    if ran:
        return None
    if not plan:
        return "No tf.data operation was recorded for this loop."
    why = "could not be read" if loop.autotune_enabled else "is not kept where autotune is off"
    profile = "the profile shows no iterator" if trace else "there is no profile"
    return f"The cost of each operation is not known: tf.data's model {why}, and {profile}."
