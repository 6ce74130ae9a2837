"""A finding's evidence in words and with units, for those who read a report."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from pipediag.reporters.words.quantities import (
    NO_BREAK,
    NOTHING,
    byte_count,
    duration,
    microseconds,
    number,
    percent,
    speedup,
)
from pipediag.session.model import Session
from pipediag.vocabulary import Scalar

_OPERATION = "operation"
"""Unit of a value that is the id of an operation."""
_UNITS = (
    ("_percent_of_samples", "% of the stack samples"),
    ("_percent_of_step", "% of the step"),
    ("_percent_of_span", "% of the device's time"),
    ("_percent_of_loop", "% of the loop"),
    ("_percent_of_run", "% of the run"),
    ("_percent_of_busy", "% of the busy time"),
    ("_ms_per_step", "ms per step"),
    ("_bytes_per_step", "bytes per step"),
    ("_bytes_per_s", "bytes/s"),
    ("_gb_per_s", "GB/s"),
    ("_per_step", "per step"),
    ("_per_s", "a second"),
    ("_percent", "%"),
    ("_bytes", "bytes"),
    ("_ms", "ms"),
    ("_us", "µs"),
    ("_s", "s"),
    ("_operation", _OPERATION),
    ("_ratio", "x"),
)
"""Ends of keys, and the unit that each stands for."""
_CAUSES = {
    "collective": "another device",
    "copy": "copies",
    "input": "input",
    "launch": "launches",
    "python": "Python",
    "sync": "a result",
}
_OF_A_CAUSE = re.compile(rf"(longest_)?({'|'.join(_CAUSES)})_(?:idle|gap)_(?:ms|percent_of_span)")

LABELS: Mapping[str, str | tuple[str, str]] = {
    "at_most_if_the_same": ("at most, if each epoch gives the same", "x"),
    "available_bytes": "memory available",
    "batches": "batches looked at",
    "bytes": ("copied", "bytes"),
    "cast_through": "ids are cast to",
    "changed": "lookups by another id than was meant",
    "collided": "ids that share a row for it",
    "compile_percent": ("compiling and tracing", "% of the step"),
    "constant_bytes": "constants in the graph",
    "copied_bytes_per_step": "the table is copied",
    "copy_ms": "copies from the host take",
    "copy_percent_of_step": "copying the table takes about",
    "cpus": "CPUs that may be used",
    "cuda_build": "TensorFlow was built for CUDA",
    "device_compute_percent": ("device compute", "% of the step"),
    "dispatch_and_python_percent": ("launching operations and Python", "% of the step"),
    "dispatch_percent": ("launching operations", "% of the step"),
    "estimated_fill_ms": "filling the buffer, by its size",
    "evaluation_wait_percent": ("waiting for input", "% of an evaluation's step"),
    "exact_up_to": "it holds all integers up to",
    "exposed_ms": "copies while nothing is computed",
    "exposed_percent_of_span": "copies while nothing is computed",
    "features": "numbers that each class is multiplied with",
    "fill_ms": "wait for the first batch",
    "fill_percent_of_loop": "filling the buffer",
    "first_batch_percent_of_loop": "waiting for first batches",
    "fixed_cost_percent": ("cost whatever the batch holds", "% of the step"),
    "from_disk_percent": "read from the disk, not from memory",
    "frozen_operation": "the cache freezes",
    "gb_per_s": ("rate of the copies", "GB/s"),
    "gpu_installed": "installed",
    "host_begins_steps_late_ms": "its host begins steps late by",
    "input_wait_ms": ("waiting for input", "ms per step"),
    "input_wait_percent": ("waiting for input", "% of the step"),
    "launching_thread_in": "meanwhile the launching thread is in",
    "limit_bytes": "TensorFlow takes",
    "line_percent_of_samples": "seen in the line",
    "matmul_percent_of_busy": "matrix products",
    "median_delay_us": "from launch to start, median",
    "ms_per_call": ("a call takes", "ms"),
    "operations_that_may_not_broadcast": "operations that may not work on a batch",
    "others_wait_percent_of_span": "the others wait for it",
    "outside": "lookups outside the table",
    "own_lines_percent": ("lines of the script's own", "% of the stack samples"),
    "python_ms_per_call": ("a call of its Python takes", "ms"),
    "python_off_cpu_ms_per_call": ("of that off the CPU", "ms"),
    "python_off_cpu_percent": ("off the CPU", "% of the calls' time"),
    "python_percent": ("Python", "% of the step"),
    "retraces": ("traced again while measured", "times"),
    "savable_percent_of_run": "what could be saved of it at most",
    "savable_percent_of_what_was_seen": (
        "what could have been saved at most",
        "% of what was seen of the run",
    ),
    "shorter_than_launch_percent": "kernels shorter than their launch",
    "slot_bytes": "the optimizer's slots",
    "take_count": ("the take lets through", "elements"),
    "taken_percent_of_run": "takes in all",
    "taken_s": "takes in all",
    "temporary_bytes": "tensors as large as the table that a step makes",
    "tensor_core_percent_of_matmul": ("matrix products on tensor cores", "%"),
    "times": ("it came", "times"),
    "took_ms_per_step": "it took",
    "took_percent_of_step": "it took",
    "trace_count": ("traced in all", "times"),
    "traces": ("traced", "times"),
    "training_thread_in": "meanwhile the training thread is in",
    "us_per_element": ("a call takes", "µs"),
    "wait_not_counted_ms": "waiting that no operation's clock counts",
    "waiting_thread_in": "meanwhile the waiting thread is in",
    "works_longer_percent_of_span": "it works longer than the others",
    "zero_is_a_token": "the lookup layer gives 0 for a token",
    "zeros_within_percent": "zeros between other ids, of all",
}
"""Words for a key, with the unit where the end of the key does not say it. Other keys are read as
they are: `batch_size` is the batch size."""

_WRITTEN: Mapping[str, Callable[[float], str]] = {
    "": number,
    "bytes": byte_count,
    "ms": duration,
    "µs": microseconds,
    "x": speedup,
}


def evidence(session: Session, key: str, value: Scalar) -> tuple[str, str]:
    """Return words and value with its unit.

    `input_wait_percent: 76.31` gives `waiting for input` and `76.3 % of the step`.
    """
    label, unit = _label(key)
    if value is None:
        return label, NOTHING
    if isinstance(value, bool):
        return label, "yes" if value else "no"
    if isinstance(value, str):
        return label, _operation(session, value) if unit == _OPERATION else value
    return label, _with_unit(value, unit)


def _label(key: str) -> tuple[str, str]:
    suffix, unit = next((one for one in _UNITS if key.endswith(one[0]) and key != one[0]), ("", ""))
    if found := _OF_A_CAUSE.fullmatch(key):
        return f"{'longest gap' if found[1] else 'idle'} for {_CAUSES[found[2]]}", unit
    known = LABELS.get(key) or key.removesuffix(suffix).replace("_", " ").replace(
        "python", "Python"
    )
    return (known, unit) if isinstance(known, str) else known


def _operation(session: Session, op_id: str) -> str:
    op = session.operation(op_id)
    if op is None:
        return op_id
    return f"{op.kind} in line {op.line}" if op.line else op.kind


def _with_unit(value: float, unit: str) -> str:
    if unit in _WRITTEN:
        return _WRITTEN[unit](value)
    if unit.startswith("%"):
        return percent(value) + unit.removeprefix("%")
    return f"{number(value)}{NO_BREAK}{unit}"
