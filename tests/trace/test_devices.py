from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.trace.classes import classify
from pipediag.trace.devices import DeviceTrace, device_traces, uses_tensor_cores
from pipediag.trace.files import read
from pipediag.trace.pipeline import pipeline_records
from pipediag.trace.summary import summarise
from tests.trace.builder import US, CudaProfile, LineBuilder, TraceBuilder, main_causes

TRACES = Path(__file__).parents[3] / "shared" / "traces"


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
    found = device.activity
    assert (found.name, found.kind) == ("GPU:0", "gpu")
    assert (found.span_ms, found.busy_ms, found.idle_ms) == (0.1, 0.07, 0.03)
    assert found.longest_gap_ms == 0.03


def test_gaps_under_the_floor_are_noise(tmp_path: Path) -> None:
    builder = TraceBuilder()
    stream = gpu(builder)
    stream.event("k", 0, 10).event("k", 5_009, 6_000).event("k", 11_000, 12_000)
    [device] = devices(builder, tmp_path, None)
    assert (device.activity.noise_ms, device.activity.noise_count) == (0.004_999, 1)
    assert device.gaps.spans.tolist() == [[6_000, 11_000]]
    assert device.gaps.by_cause() == {"unknown": 5_000}


def test_the_steps_window_counts_idle_before_the_first_kernel(tmp_path: Path) -> None:
    builder = TraceBuilder()
    gpu(builder).event("k", 0, 10 * US).event("k", 60 * US, 70 * US)
    [device] = devices(builder, tmp_path, (20 * US, 100 * US))
    found = device.activity
    assert (found.span_ms, found.busy_ms, found.idle_ms) == (0.08, 0.01, 0.07)
    assert device.gaps.spans.tolist() == [[20 * US, 60 * US], [70 * US, 100 * US]]


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
    assert main_causes(device) == ["input"]
    assert device.gaps.iterators[device.gaps.iterator_ids[0]] == ("Root::Map", ("m",))


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
            round(device.activity.span_ms, 3),
            round(device.activity.busy_ms, 3),
            round(device.activity.idle_ms, 3),
            round(device.activity.longest_gap_ms, 3),
            int((device.gaps.lengths_ns > 1e6).sum()),
        )
        for device in device_traces(events, classify(events), pipeline_records(events), None)
    }
    expected = {key: value for key, value in REFERENCE.items() if key[0] == trace}
    assert found.keys() == expected.keys()
    for key, figures in expected.items():
        assert found[key] == pytest.approx(figures, abs=0.0011)


@pytest.mark.parametrize(
    ("name", "tensor_core"),
    [
        ("volta_sgemm_128x64_nn", False),
        ("volta_h884gemm_256x64_ldg8_tn", True),
        ("ampere_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x4_nn", True),
        ("sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize64x64x64_tensor16x8x16_kernel", True),
        ("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT", True),
        ("Cijk_Ailk_Bljk_SB_MT128x128x16_MI32x32x1", True),
        ("sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nhwc_g1_ffma_t1r3s3", False),
        ("cutlass_80_simt_sgemm_128x64_8x5_nn_align1", False),
        ("gemm_fusion_dot_1", None),
        ("triton_gemm_dot_4", None),
        ("void Eigen::internal::EigenMetaKernel<float>", None),
    ],
)
def test_what_a_kernels_name_says(tmp_path: Path, name: str, tensor_core: bool | None) -> None:
    profile = CudaProfile()
    profile.kernel((0, 20), name=name)
    [device] = profile.devices(tmp_path)
    assert uses_tensor_cores(name) is tensor_core
    found = device.activity
    products = 0.0 if tensor_core is None else 0.02
    assert [(kernel.name, kernel.ms) for kernel in found.kernels] == [(name, 0.02)]
    assert (found.matmul_ms, found.tensor_core_ms) == (products, 0.02 if tensor_core else 0.0)


@pytest.mark.parametrize(
    ("name", "in_tf32"),
    [
        ("sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_warpgroupsize1x1x1", True),
        ("nvjet_sss_tf32_128x256_TNT", True),
        ("nvjet_sss_128x256_64x4_1x2_h_bz_coopA_NNT", True),
        ("nvjet_tss_128x256_64x4_1x2_h_bz_coopA_NNT", False),
        ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x256_16x3_nn_align4>", True),
        ("ampere_fp16_s1688gemm_fp16_128x128_ldg8_f2f_stages_32x1_nn", False),
        ("ampere_bf16_s1688gemm_bf16_128x64_ldg8_relu_f2f_tn", False),
        ("turing_h1688gemm_128x128_ldg8_stages_32x1_tn", False),
        ("volta_sgemm_128x64_nn", False),
    ],
)
def test_tensor_cores_in_tf32_are_told_from_those_in_16_bits(
    tmp_path: Path, name: str, in_tf32: bool
) -> None:
    profile = CudaProfile()
    profile.kernel((0, 20), name=name)
    [device] = profile.devices(tmp_path)
    found = device.activity
    assert found.tf32_ms == (0.02 if in_tf32 else 0.0)
    assert found.tensor_core_ms == (0.0 if name.startswith("volta") else 0.02)


def test_kernels_against_their_calls(tmp_path: Path) -> None:
    profile = CudaProfile()
    profile.kernel((10, 12), launch=(0, 5), name="a")
    profile.kernel((20, 40), launch=(8, 12), name="b")
    profile.kernel((40, 50), name="b")
    [device] = profile.devices(tmp_path)
    assert [(kernel.name, kernel.count) for kernel in device.activity.kernels] == [
        ("b", 2),
        ("a", 1),
    ]
    assert (device.activity.kernel_count, device.activity.median_kernel_us) == (3, 10.0)
    assert device.activity.median_delay_us == 6.5


@pytest.mark.parametrize(
    ("name", "details", "direction", "size"),
    [
        ("MemcpyD2H", "size:4 dest:1 async:1", "device_to_host", 4),
        ("MemcpyP2P", "num_bytes:16", "peer_to_peer", 16),
        ("Memcpy HtoD (Pageable -> Device)", "", "host_to_device", None),
        ("CopyDeviceToDevice", "size:8", "device_to_device", 8),
        ("MemcpyOther", "kind_src:device kind_dst:device size:8", "device_to_device", 8),
        ("Memset", "kind:device num_bytes:4096 async:1", "set", 4096),
        ("__amd_rocclr_copyBuffer.kd", "", "unknown", None),
        ("__amd_rocclr_fillBufferAligned.kd", "", "set", None),
        ("MemcpyOther", "kind_src:pageable kind_dst:pinned size:4", "unknown", 4),
    ],
)
def test_the_direction_and_the_size_of_a_copy(
    tmp_path: Path, name: str, details: str, direction: str, size: int | None
) -> None:
    builder = TraceBuilder()
    key = "memset_details" if name == "Memset" else "memcpy_details"
    stats = {key: details} if details else {}
    builder.plane("/device:GPU:0").line("Stream #14", 14).event(name, 0, 50, **stats)
    [device] = summarise(builder.save(tmp_path)).devices
    [copies] = device.activity.copies
    assert (copies.direction, copies.count, copies.bytes) == (direction, 1, size)
    assert copies.ms == copies.exposed_ms == 0.000_05
    assert copies.gb_per_s == (None if size is None else size / 50)
