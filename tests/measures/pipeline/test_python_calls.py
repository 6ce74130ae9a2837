from __future__ import annotations

import pytest

from pipediag.measures.pipeline import with_python_calls
from pipediag.session.pipeline import Operation
from pipediag.session.recorded_windows import RecordedPythonCalls
from tests.recordings import (
    make_block,
    make_recorded_function,
    make_recorded_loop,
    make_recorded_operation,
    make_recording,
    make_window,
)
from tests.records import make_operation

MS = 1_000_000


def measured(
    *calls: RecordedPythonCalls, batches: int = 1, known: bool = True
) -> dict[str, Operation]:
    outer = make_recorded_function(python_tokens=["a", "b"])
    inner = make_recorded_function(python_tokens=["b"])
    recording = make_recording(
        operations=[
            make_recorded_operation("op1", "flat_map", function=outer),
            make_recorded_operation("op2", "map", function=inner, inside_function_of="op1"),
            make_recorded_operation("op3", "batch"),
        ],
        windows=[
            make_window(
                "baseline", make_block(10, 5.0), python_calls=list(calls) if known else None
            )
        ],
    )
    ops = [make_operation(op_id, "map") for op_id in ("op1", "op2", "op3")]
    loop = make_recorded_loop(batches_per_call=batches)
    return {op.id: op for op in with_python_calls(ops, recording, loop)}


def test_calls_belong_to_the_innermost_operation_that_makes_them() -> None:
    ops = measured(
        RecordedPythonCalls("a", 20, 40 * MS, 10 * MS),
        RecordedPythonCalls("b", 320, 160 * MS, 8 * MS),
        RecordedPythonCalls("of another pipeline", 1, MS, MS),
    )

    outer, inner, batch = ops["op1"], ops["op2"], ops["op3"]
    assert outer.python_calls_per_step == 2.0
    assert (outer.python_wall_ms_per_step, outer.python_cpu_ms_per_step) == (4.0, 1.0)
    assert outer.python_off_cpu_percent == 75.0
    assert inner.python_calls_per_step == 32.0
    assert inner.python_off_cpu_percent == pytest.approx(95.0)
    assert batch.python_calls_per_step is None


def test_a_function_that_was_not_called_took_nothing() -> None:
    inner = measured()["op2"]

    assert (inner.python_calls_per_step, inner.python_wall_ms_per_step) == (0.0, 0.0)
    assert inner.python_off_cpu_percent is None


def test_a_step_is_one_batch() -> None:
    ops = measured(RecordedPythonCalls("a", 20, 40 * MS, 10 * MS), batches=2)

    assert ops["op1"].python_calls_per_step == 1.0


def test_what_was_not_measured_is_none() -> None:
    assert measured(known=False)["op2"].python_calls_per_step is None
