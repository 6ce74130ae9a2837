"""What the Python functions of a pipeline took, by operation and step."""

from __future__ import annotations

from collections.abc import Iterable

from pipediag.measures.recorded_windows import windows_of
from pipediag.session.pipeline import Operation
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recorded_operations import RecordedOperation
from pipediag.session.recording import Recording


def with_python_calls(
    ops: list[Operation], recording: Recording, loop: RecordedLoop
) -> list[Operation]:
    """Fill in calls, wall time and CPU time of the operations that call Python."""
    measured = [
        window
        for window in windows_of(recording, loop, "baseline")
        if window.python_calls is not None
    ]
    intervals = sum(len(block.durations_ns) for window in measured for block in window.blocks)
    steps = intervals * loop.batches_per_call
    if not steps:
        return ops
    owners = _owners(recording.operations)
    spent = dict.fromkeys(owners.values(), (0, 0, 0))
    for window in measured:
        for calls in window.python_calls or ():
            owner = owners.get(calls.token)
            if owner is not None:
                count, wall_ns, cpu_ns = spent[owner]
                spent[owner] = (
                    count + calls.calls,
                    wall_ns + calls.wall_ns,
                    cpu_ns + calls.cpu_ns,
                )
    return [
        op.model_copy(update=_per_step(*spent[op.id], steps)) if op.id in spent else op
        for op in ops
    ]


def _owners(operations: Iterable[RecordedOperation]) -> dict[str, str]:
    """Operation ids by token; a function of a nested dataset is that of the innermost operation,
    whose call began last."""
    return {
        token: operation.id
        for operation in operations
        if operation.function is not None
        for token in operation.function.python_tokens
    }


def _per_step(count: int, wall_ns: int, cpu_ns: int, steps: int) -> dict[str, float | None]:
    # The two clocks differ by their resolution.
    off_ns = max(0, wall_ns - cpu_ns)
    return {
        "python_calls_per_step": count / steps,
        "python_wall_ms_per_step": wall_ns / 1e6 / steps,
        "python_cpu_ms_per_step": cpu_ns / 1e6 / steps,
        "python_off_cpu_percent": 100.0 * off_ns / wall_ns if wall_ns else None,
    }
