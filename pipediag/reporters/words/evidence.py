"""A finding's evidence in words and with units, for those who read a report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

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


@dataclass(frozen=True)
class _Shown:
    """What a number is called, and what it is counted in."""

    label: str
    unit: str = ""


_OF_STEP = "% of the step"
_OF_SPAN = "% of the device's time"
_OPERATION = "operation"
"""The value is the id of one."""

LABELS: Mapping[str, _Shown] = {
    "autotune.enabled": _Shown("autotuning is on"),
    "available_bytes": _Shown("memory available", "bytes"),
    "also_tried": _Shown("also tried"),
    "batch": _Shown("number of the batch"),
    "batch_size": _Shown("batch size", "examples"),
    "batches": _Shown("batches looked at"),
    "blocked_in_copy_ms": _Shown("idle while the host is in a copy that blocks", "ms"),
    "buffer_size": _Shown("buffer", "elements"),
    "buffered_elements": _Shown("batches ready on average"),
    "busy_percent": _Shown("device busy", "%"),
    "bytes": _Shown("copied", "bytes"),
    "cache_bytes": _Shown("size of the cache", "bytes"),
    "cache_cardinality": _Shown("elements that reach the cache"),
    "callback": _Shown("callback"),
    "callback_percent_of_samples": _Shown("seen in the callback", "% of the stack samples"),
    "callback_percent_of_step": _Shown("the callback", _OF_STEP),
    "calls_python": _Shown("it calls Python"),
    "cast_bytes_per_step": _Shown("the table is cast", "bytes per step"),
    "cast_from": _Shown("ids before the cast"),
    "cast_through": _Shown("ids are cast to"),
    "changed": _Shown("lookups by another id than was meant"),
    "classes": _Shown("classes"),
    "collective_idle_ms": _Shown("idle for another device", "ms"),
    "collective_idle_percent_of_span": _Shown("idle for another device", _OF_SPAN),
    "collided": _Shown("ids that share a row for it"),
    "compile_percent": _Shown("compiling and tracing", _OF_STEP),
    "compressed": _Shown("files are compressed"),
    "constant_bytes": _Shown("constants in the graph", "bytes"),
    "constraint": _Shown("constraint over the table"),
    "copied_bytes_per_step": _Shown("the table is copied", "bytes per step"),
    "copied_on_lookup": _Shown("a lookup reads the whole table first"),
    "copies": _Shown("copies from the host"),
    "copies_to_host": _Shown("copies to the host"),
    "copy_idle_ms": _Shown("idle for copies", "ms"),
    "copy_idle_percent_of_span": _Shown("idle for copies", _OF_SPAN),
    "copy_ms": _Shown("copies from the host take", "ms"),
    "copy_ms_per_step": _Shown("copying the table takes", "ms per step"),
    "copy_percent_of_step": _Shown("copying the table takes about", _OF_STEP),
    "cpus": _Shown("CPUs that may be used"),
    "cuda_build": _Shown("TensorFlow was built for CUDA"),
    "cuda_visible_devices": _Shown("CUDA_VISIBLE_DEVICES"),
    "delay_ms_per_step": _Shown("the operation's delay", "ms per step"),
    "delay_percent_of_step": _Shown("the operation's delay", _OF_STEP),
    "device": _Shown("device"),
    "device_busy_percent": _Shown("this device busy", "%"),
    "device_compute_percent": _Shown("device compute", _OF_STEP),
    "device_waits_percent_of_span": _Shown("this device waits for others", _OF_SPAN),
    "devices": _Shown("devices"),
    "dispatch_and_python_percent": _Shown("launching operations and Python", _OF_STEP),
    "dispatch_percent": _Shown("launching operations", _OF_STEP),
    "element_spec": _Shown("a batch is"),
    "elements": _Shown("elements in all"),
    "elements_per_step": _Shown("elements in a step"),
    "epoch_ends_seen": _Shown("ends of epochs seen"),
    "estimated_fill_ms": _Shown("filling the buffer, by its size", "ms"),
    "evaluation_wait_percent": _Shown("waiting for input", "% of an evaluation's step"),
    "exact_up_to": _Shown("it holds all integers up to"),
    "exception": _Shown("error"),
    "exposed_ms": _Shown("copies while nothing is computed", "ms"),
    "exposed_percent_of_span": _Shown("copies while nothing is computed", _OF_SPAN),
    "features": _Shown("numbers that each class is multiplied with"),
    "file_count": _Shown("files"),
    "fill_ms": _Shown("wait for the first batch", "ms"),
    "fill_percent_of_loop": _Shown("filling the buffer", "% of the loop"),
    "first_batch_ms": _Shown("wait for an epoch's first batch", "ms"),
    "first_batch_percent_of_loop": _Shown(
        "waiting for the first batch of each epoch", "% of the loop"
    ),
    "fixed_cost_percent": _Shown("cost whatever the batch holds", _OF_STEP),
    "framework_message": _Shown("TensorFlow said"),
    "free_disk_bytes": _Shown("free disk", "bytes"),
    "from_disk_percent": _Shown("read from the disk, not from memory", "%"),
    "functions": _Shown("functions whose graphs were read"),
    "gb_per_s": _Shown("rate of the copies", "GB/s"),
    "gpu_installed": _Shown("installed"),
    "gpus_used": _Shown("GPUs in use"),
    "host_begins_steps_late_ms": _Shown("its host begins steps late by", "ms"),
    "hours_to_fill_memory": _Shown("filling the free memory takes", "hours"),
    "id": _Shown("id"),
    "idle_percent": _Shown("device idle", "%"),
    "input_idle_ms": _Shown("idle for input", "ms"),
    "input_idle_percent_of_span": _Shown("idle for input", _OF_SPAN),
    "input_share_percent": _Shown("what input costs, by a repeated batch", _OF_STEP),
    "input_wait_ms": _Shown("waiting for input", "ms per step"),
    "input_wait_percent": _Shown("waiting for input", _OF_STEP),
    "io_wait_percent": _Shown("CPUs that wait for the disk", "%"),
    "iterator": _Shown("at work in the gaps"),
    "iterator_gap_ms": _Shown("its part in the gaps", "ms"),
    "kernels": _Shown("kernels"),
    "kernels_per_s": _Shown("kernels", "a second"),
    "kernels_with_launch": _Shown("kernels whose launch was seen"),
    "known_from": _Shown("known from"),
    "labels": _Shown("labels"),
    "largest_id": _Shown("largest id"),
    "launch_idle_ms": _Shown("idle for launches", "ms"),
    "launch_idle_percent_of_span": _Shown("idle for launches", _OF_SPAN),
    "launching_thread_in": _Shown("meanwhile the launching thread is in"),
    "layer": _Shown("layer"),
    "layers": _Shown("layers that prepare inputs"),
    "limit_bytes": _Shown("TensorFlow takes", "bytes"),
    "line_percent_of_samples": _Shown("seen in the line", "% of the stack samples"),
    "longest_collective_gap_ms": _Shown("longest gap for another device", "ms"),
    "longest_copy_gap_ms": _Shown("longest gap for a copy", "ms"),
    "longest_input_gap_ms": _Shown("longest gap for input", "ms"),
    "longest_launch_gap_ms": _Shown("longest gap for launches", "ms"),
    "longest_python_gap_ms": _Shown("longest gap for Python", "ms"),
    "longest_sync_gap_ms": _Shown("longest gap for a result", "ms"),
    "lookups": _Shown("lookups in these batches"),
    "maps": _Shown("maps looked at"),
    "matmul_ms": _Shown("matrix products take", "ms"),
    "matmul_percent_of_busy": _Shown("matrix products", "% of the busy time"),
    "median_delay_us": _Shown("from launch to start, median", "µs"),
    "median_kernel_us": _Shown("a kernel takes, median", "µs"),
    "median_launch_us": _Shown("a launch takes, median", "µs"),
    "message": _Shown("it says"),
    "model": _Shown("model of the device"),
    "modified_z_score": _Shown("distance from the others, in their spread"),
    "most_frequent_kernel": _Shown("most frequent kernel"),
    "opens_files": _Shown("it opens files"),
    "operations_that_may_not_broadcast": _Shown("operations that may not work on a batch"),
    "optimizer_arguments": _Shown("arguments of the optimizer that pass over it"),
    "others_median_busy_percent": _Shown("the others busy, median", "%"),
    "ms_per_call": _Shown("a call takes", "ms"),
    "others_wait_percent_of_span": _Shown("the others wait for it", _OF_SPAN),
    "outside": _Shown("lookups outside the table"),
    "own_lines_percent": _Shown("lines of the script's own", "% of the stack samples"),
    "padding_operation": _Shown("padding", _OPERATION),
    "padding_percent": _Shown("padding among the ids", "%"),
    "parallelism": _Shown("calls that may run at once"),
    "passes_over_data": _Shown("passes over the data"),
    "pcie_gb_per_s": _Shown("rate that PCIe gives", "GB/s"),
    "percent_of_limit": _Shown("constants in the graph", "% of what TensorFlow takes"),
    "policy": _Shown("policy of number types"),
    "pool_threads": _Shown("threads in the pool"),
    "at_most_if_the_same": _Shown("at most, if each epoch gives the same", "x"),
    "profiled_step_ratio": _Shown("a step under the profiler takes", "x"),
    "predict_ms": _Shown("a call of `predict`", "ms"),
    "predict_on_batch_ms": _Shown("`predict_on_batch` on the same data", "ms"),
    "python_calls_per_step": _Shown("calls of its Python", "per step"),
    "python_idle_ms": _Shown("idle for Python", "ms"),
    "python_idle_percent_of_span": _Shown("idle for Python", _OF_SPAN),
    "python_calls": _Shown("Python in the function"),
    "python_ms_per_call": _Shown("a call of its Python takes", "ms"),
    "python_off_cpu_ms_per_call": _Shown("of that off the CPU", "ms"),
    "python_off_cpu_percent": _Shown("off the CPU", "% of the calls' time"),
    "python_percent": _Shown("Python", _OF_STEP),
    "python_percent_of_step": _Shown("Python", _OF_STEP),
    "random_operation": _Shown("draws random numbers", _OPERATION),
    "regularizer": _Shown("regulariser over the table"),
    "removed_by_tensorflow": _Shown("TensorFlow leaves the map out"),
    "repeat_operation": _Shown("endless", _OPERATION),
    "replicas": _Shown("replicas"),
    "retraces": _Shown("traced again while measured", "times"),
    "rows": _Shown("rows"),
    "rows_touched_per_step": _Shown("rows used in a step"),
    "run_functions_eagerly": _Shown("all functions are set to run eagerly"),
    "savable_percent_of_run": _Shown("what could be saved of it at most", "% of the run"),
    "savable_percent_of_what_was_seen": _Shown(
        "what could have been saved at most", "% of what was seen of the run"
    ),
    "savable_percent_of_span": _Shown("what 16 bits could save", _OF_SPAN),
    "shorter_than_launch_percent": _Shown("kernels shorter than their launch", "%"),
    "shuffle_operation": _Shown("shuffles", _OPERATION),
    "slot_bytes": _Shown("the optimizer's slots", "bytes"),
    "smallest_id": _Shown("smallest id"),
    "stateful_because": _Shown("it keeps state by"),
    "step_ms": _Shown("a step takes", "ms"),
    "steps_per_execution": _Shown("steps in a call"),
    "steps_with_such_gaps": _Shown("steps with such gaps"),
    "switched_off": _Shown("switched off"),
    "switched_off_by": _Shown("switched off by"),
    "sync_idle_ms": _Shown("idle for a result", "ms"),
    "sync_idle_percent_of_span": _Shown("idle for a result", _OF_SPAN),
    "table_bytes": _Shown("the table", "bytes"),
    "tables": _Shown("tables"),
    "text_operations": _Shown("its operations on text"),
    "text_work_ms_per_step": _Shown("work on text", "ms per step"),
    "text_work_percent_of_step": _Shown("work on text", _OF_STEP),
    "take_count": _Shown("the take lets through", "elements"),
    "taken_percent_of_run": _Shown("takes in all", "% of the run"),
    "taken_s": _Shown("takes in all", "s"),
    "temporary_bytes": _Shown("tensors as large as the table that a step makes", "bytes"),
    "tensor_core_ms": _Shown("of them on tensor cores", "ms"),
    "tensor_core_percent_of_matmul": _Shown("matrix products on tensor cores", "%"),
    "there_ms": _Shown("for", "ms"),
    "times": _Shown("comes", "times"),
    "took_ms_per_step": _Shown("it takes", "ms per step"),
    "took_percent_of_step": _Shown("it takes", _OF_STEP),
    "trace_count": _Shown("traced in all", "times"),
    "traces": _Shown("traced", "times"),
    "training_thread_in": _Shown("meanwhile the training thread is in"),
    "tried": _Shown("tried", "changes"),
    "update_known_from": _Shown("the kind of update is known from"),
    "us_per_element": _Shown("a call takes", "µs"),
    "wait_not_counted_ms": _Shown("waiting that no operation's clock counts", "ms"),
    "waiting_thread_in": _Shown("meanwhile the waiting thread is in"),
    "weights": _Shown("weights"),
    "whole_table_operations": _Shown("operations that make them"),
    "work_left_s": _Shown("work that the steps would have beside them", "s"),
    "works_longer_percent_of_span": _Shown("it works longer than the others", _OF_SPAN),
    "zero_is_a_token": _Shown("the lookup layer gives 0 for a token"),
    "zero_percent": _Shown("lookups by id 0", "%"),
    "zeros_within": _Shown("zeros between other ids"),
    "zeros_within_percent": _Shown("zeros between other ids, of all", "%"),
}

_WRITTEN: Mapping[str, Callable[[float], str]] = {
    "": number,
    "bytes": byte_count,
    "ms": duration,
    "µs": microseconds,
    "x": speedup,
}
_BY_SUFFIX = (
    ("_ms_per_step", "ms per step"),
    ("_bytes_per_s", "bytes/s"),
    ("_per_step", "per step"),
    ("_per_s", "a second"),
    ("_percent", "%"),
    ("_bytes", "bytes"),
    ("_ms", "ms"),
    ("_us", "µs"),
    ("_s", "s"),
)
"""For the evidence of a newer version."""


def evidence(session: Session, key: str, value: Scalar) -> tuple[str, str]:
    """Words and value with its unit: `input_wait_percent: 76.31` gives `waiting for input`,
    `76.3 % of the step`."""
    shown = LABELS.get(key) or _by_suffix(key)
    if value is None:
        return shown.label, NOTHING
    if isinstance(value, bool):
        return shown.label, "yes" if value else "no"
    if isinstance(value, str):
        return shown.label, _operation(session, value) if shown.unit == _OPERATION else value
    return shown.label, _with_unit(value, shown.unit)


def _by_suffix(key: str) -> _Shown:
    for suffix, unit in _BY_SUFFIX:
        name = key.removesuffix(suffix)
        if name != key and name:
            return _Shown(name.replace("_", " "), unit)
    return _Shown(key.replace("_", " "))


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
