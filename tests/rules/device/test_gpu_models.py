from __future__ import annotations

import pytest

from pipediag.rules.device.gpu_models import pcie_gb_per_s, sixteen_bit_policy


@pytest.mark.parametrize(
    ("model", "policy", "gb_per_s"),
    [
        ("NVIDIA H200", "mixed_bfloat16", 50.0),
        ("NVIDIA H100 80GB HBM3, compute capability 9.0", "mixed_bfloat16", 50.0),
        ("NVIDIA GB200", "mixed_bfloat16", 50.0),
        ("NVIDIA Unheard-of, compute capability 12.0", "mixed_bfloat16", 50.0),
        ("NVIDIA A100-PG509-200, compute capability 8.0", "mixed_bfloat16", 24.0),
        ("NVIDIA A10G", "mixed_bfloat16", 24.0),
        ("NVIDIA GeForce RTX 4090", "mixed_bfloat16", 24.0),
        ("NVIDIA RTX 6000 Ada Generation", "mixed_bfloat16", 24.0),
        ("compute capability 8.6", "mixed_bfloat16", 24.0),
        ("Tesla V100-SXM2-32GB, compute capability 7.0", "mixed_float16", 12.0),
        ("compute capability 7.0", "mixed_float16", 12.0),
        ("Tesla T4", "mixed_float16", 12.0),
        ("NVIDIA GeForce RTX 2080 Ti", "mixed_float16", 12.0),
        ("NVIDIA GeForce GTX 1660 Ti, compute capability 7.5", "none", 12.0),
        ("Tesla P100-PCIE-16GB", "none", 12.0),
        ("NVIDIA TITAN Xp", "none", 12.0),
        ("compute capability 6.1", "none", 12.0),
    ],
)
def test_known_models(model: str, policy: str, gb_per_s: float) -> None:
    assert sixteen_bit_policy(model) == policy
    assert pcie_gb_per_s(model) == gb_per_s


@pytest.mark.parametrize(
    "model",
    [None, "", "Unheard-of 1", "AMD Instinct MI300X", "compute capability 9.4"],
)
def test_unknown_models(model: str | None) -> None:
    assert sixteen_bit_policy(model) is None
    assert pcie_gb_per_s(model) is None
