from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.trace.device.gap_histogram import LengthBucket
from pipediag.trace.device.traces import DeviceTrace, device_traces
from pipediag.trace.files import read
from pipediag.trace.host.classes import classify
from pipediag.trace.pipeline.records import pipeline_records
from tests.trace.builder import LineBuilder, TraceBuilder, add_graph_call

TRACES = Path(__file__).parents[4] / "shared" / "traces"
US = 1_000
CAPABLE = {"compute_cap_major": 9, "compute_cap_minor": 4}


def devices(
    builder: TraceBuilder, directory: Path, window: tuple[int, int] | None
) -> list[DeviceTrace]:
    events = builder.events(directory)
    return device_traces(events, classify(events), pipeline_records(events), window)


def gpu(builder: TraceBuilder) -> LineBuilder:
    return builder.plane("/device:GPU:0").line("Stream #13(Kernel)", 13)


def test_busy_is_the_union_of_all_streams(tmp_path: Path) -> None:
    builder = TraceBuilder()
    plane = builder.plane("/device:GPU:0")
    plane.line("Stream #13(Kernel)", 13).event("gemm", 0, 40 * US).event("gemm", 90 * US, 100 * US)
    plane.line("Stream #14(MemcpyH2D)", 14).event("MemcpyH2D", 30 * US, 60 * US)
    plane.line("Steps", 0xDEADBEEF).event("0", 0, 100 * US)
    [device] = devices(builder, tmp_path, None)
    assert (device.name, device.kind) == ("GPU:0", "gpu")
    assert (device.span_ns, device.busy_ns, device.idle_ns) == (100 * US, 70 * US, 30 * US)
    assert device.longest_gap_ns == 30 * US


def test_gaps_under_the_floor_are_noise(tmp_path: Path) -> None:
    builder = TraceBuilder()
    stream = gpu(builder)
    stream.event("k", 0, 10).event("k", 5_009, 6_000).event("k", 11_000, 12_000)
    [device] = devices(builder, tmp_path, None)
    assert device.noise_ns == 4_999
    assert device.gaps.spans.tolist() == [[6_000, 11_000]]
    assert device.gap_histogram == (
        LengthBucket(0, 5_000, 1, 4_999),
        LengthBucket(5_000, 10_000, 1, 5_000),
    )
    assert device.gaps.by_cause() == {"unknown": 5_000}


def test_the_steps_window_counts_idle_before_the_first_kernel(tmp_path: Path) -> None:
    builder = TraceBuilder()
    gpu(builder).event("k", 0, 10 * US).event("k", 60 * US, 70 * US)
    [device] = devices(builder, tmp_path, (20 * US, 100 * US))
    assert (device.span_ns, device.busy_ns, device.idle_ns) == (80 * US, 10 * US, 70 * US)
    assert device.gaps.spans.tolist() == [[20 * US, 60 * US], [70 * US, 100 * US]]


def test_the_cause_of_a_gap_is_what_the_host_did_most(tmp_path: Path) -> None:
    builder = TraceBuilder()
    host = builder.host()
    line = host.line("python")
    line.event("pipediag_step", 0, 600 * US, step_num=0)
    stream = gpu(builder)
    for start in range(0, 600, 100):
        stream.event("gemm", start * US, (start + 10) * US)
    host.line("tf_data_iterator_get_next/1").event(
        "IteratorGetNextOp::DoCompute", 10 * US, 80 * US, id=5
    )
    add_graph_call(line, 110 * US, 200 * US)
    host.line("tf_Compute/1").event("a:AddV2", 110 * US, 195 * US)
    add_graph_call(line, 210 * US, 300 * US, tf_function_call="traced-nonXla")
    line.event("cuStreamSynchronize", 310 * US, 390 * US)
    [device] = devices(builder, tmp_path, (0, 600 * US))
    assert device.gaps.causes == [
        "input",
        "launch",
        "compile",
        "sync",
        "python",
        "python",
    ]


def test_an_input_gap_names_the_iterator_that_worked_longest(tmp_path: Path) -> None:
    builder = TraceBuilder()
    host = builder.host()
    waiter = host.line("tf_data_iterator_get_next/1")
    waiter.event("IteratorGetNextOp::DoCompute", 10 * US, 90 * US, id=5)
    waiter.event("Iterator::Root", 11 * US, 89 * US, id=1, name="m")
    waiter.event("Iterator::Root::Map", 12 * US, 88 * US, id=2, parent_id=1, name="m")
    waiter.event("Iterator::Root::Map::TFRecord", 13 * US, 20 * US, id=3, parent_id=2, name="files")
    gpu(builder).event("gemm", 0, 10 * US).event("gemm", 95 * US, 99 * US)
    [device] = devices(builder, tmp_path, None)
    assert device.gaps.causes == ["input"]
    assert device.gaps.details.iterator(0) == ("Root::Map", ("m",))


def test_a_gap_of_older_tensorflow_is_inputs_too(tmp_path: Path) -> None:
    builder = TraceBuilder()
    host = builder.host()
    add_graph_call(host.line("python"), 0, 100 * US)
    host.line("tf_gpu_private_0/1").event("IteratorGetNext:IteratorGetNext", 10 * US, 90 * US)
    gpu(builder).event("gemm", 0, 10 * US).event("gemm", 95 * US, 99 * US)
    [device] = devices(builder, tmp_path, None)
    assert device.gaps.by_cause()["input"] == 80 * US
    assert device.gaps.causes == ["input"]


def test_the_executor_stands_for_the_device_without_one(tmp_path: Path) -> None:
    builder = TraceBuilder()
    line = builder.host().line("tf_Compute/1")
    line.event("a:AddV2", 0, 10 * US).event("b:MatMul", 30 * US, 40 * US)
    [device] = devices(builder, tmp_path, None)
    assert (device.name, device.kind) == ("CPU", "cpu")
    assert (device.busy_ns, device.idle_ns) == (20 * US, 20 * US)


@pytest.mark.parametrize(
    ("said", "model"),
    [
        ({"gpu_device_name": "Tesla V100", "device_vendor": "Nvidia", **CAPABLE}, "Tesla V100, {}"),
        ({"device_vendor": "Nvidia", **CAPABLE}, "{}"),
        ({"device_vendor": "AMD", **CAPABLE}, "AMD, gfx94x"),
        ({"gpu_device_name": "AMD Instinct MI300X", **CAPABLE}, "AMD Instinct MI300X, gfx94x"),
        ({"gpu_device_name": "AMD Instinct MI300X"}, "AMD Instinct MI300X"),
        ({}, None),
    ],
)
def test_a_device_is_called_what_the_profile_calls_it(
    said: dict[str, str | int], model: str | None, tmp_path: Path
) -> None:
    builder = TraceBuilder()
    plane = builder.plane("/device:GPU:0")
    plane.line("Stream #13(Kernel)", 13).event("k", 0, 10)
    for key, value in said.items():
        plane.stat(key, value)
    [device] = devices(builder, tmp_path, None)
    assert device.model == (model and model.format("compute capability 9.4"))


def test_no_activity_no_device(tmp_path: Path) -> None:
    builder = TraceBuilder()
    builder.host().line("python").event("TFE_Py_Execute", 0, 10)
    assert devices(builder, tmp_path, None) == []


# Span, busy, idle and longest gap in ms, and gaps over 1 ms: the table in the traces' README.
REFERENCE = {
    ("tf-v100x8-2020", "GPU:1"): (13.417, 0.034, 13.384, 11.615, 1),
    ("tf-v100x8-2020", "GPU:4"): (119.309, 14.984, 104.325, 11.861, 18),
    ("tf-v100x8-2020", "GPU:6"): (490.470, 15.050, 475.419, 368.332, 9),
    ("jax-mi300x-attention", "GPU:0"): (32.563, 3.846, 28.717, 20.693, 2),
    ("jax-mi300x-conv-legacy", "GPU:0"): (27.868, 0.889, 26.979, 3.703, 8),
    ("jax-mi300x-conv-legacy", "GPU:7"): (15.761, 3.586, 12.175, 2.875, 4),
}


@pytest.mark.skipif(
    not TRACES.is_dir(), reason="needs the real accelerator traces in ../shared/traces"
)
@pytest.mark.parametrize("trace", sorted({trace for trace, _ in REFERENCE}))
def test_real_accelerator_traces(trace: str) -> None:
    events = read(TRACES / f"{trace}.xplane.pb")
    found = {
        (trace, device.name): (
            round(device.span_ns / 1e6, 3),
            round(device.busy_ns / 1e6, 3),
            round(device.idle_ns / 1e6, 3),
            round(device.longest_gap_ns / 1e6, 3),
            int((device.gaps.lengths_ns > 1e6).sum()),
        )
        for device in device_traces(events, classify(events), pipeline_records(events), None)
    }
    expected = {key: value for key, value in REFERENCE.items() if key[0] == trace}
    assert found.keys() == expected.keys()
    for key, figures in expected.items():
        assert found[key] == pytest.approx(figures, abs=0.0011)
