from __future__ import annotations

from pathlib import Path

import pytest

from tests.trace.cuda import US, CudaProfile


@pytest.mark.parametrize(
    ("name", "matmul", "tensor_core"),
    [
        ("volta_sgemm_128x64_nn", True, False),
        ("volta_h884gemm_256x64_ldg8_tn", True, True),
        ("ampere_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x4_nn", True, True),
        ("sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize64x64x64_tensor16x8x16_kernel", True, True),
        ("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT", True, True),
        ("Cijk_Ailk_Bljk_SB_MT128x128x16_MI32x32x1", True, True),
        ("gemm_fusion_dot_1", True, None),
        ("triton_gemm_dot_4", True, None),
        ("loop_convert_fusion", False, None),
        ("void Eigen::internal::EigenMetaKernel<float>", False, None),
    ],
)
def test_what_a_kernels_name_says(
    tmp_path: Path, name: str, matmul: bool, tensor_core: bool | None
) -> None:
    profile = CudaProfile()
    profile.kernel((0, 20), name=name)
    [device] = profile.devices(tmp_path)
    [kernel] = device.kernels
    assert (kernel.matmul, kernel.tensor_core, kernel.total_ns) == (matmul, tensor_core, 20 * US)


def test_kernels_against_their_calls(tmp_path: Path) -> None:
    profile = CudaProfile()
    profile.kernel((10, 12), launch=(0, 5), name="a")
    profile.kernel((20, 40), launch=(8, 12), name="b")
    profile.kernel((40, 50), name="b")
    [device] = profile.devices(tmp_path)
    assert [(kernel.name, kernel.count) for kernel in device.kernels] == [("b", 2), ("a", 1)]
    assert device.launches is not None
    assert (device.launches.kernels, device.launches.matched) == (3, 2)
    assert device.launches.shorter_than_launch_percent == 50
    assert device.launches.median_delay_ns == 6.5 * US
