"""What is known of a GPU from its model: tensor cores, 16-bit types, and the bus it is made for.

A model is a name, a compute capability, or both: `Tesla V100-SXM2-32GB, compute capability 7.0`.
Profiles of AMD GPUs write the number of their own architecture in that place, so that a capability
of 9 and up counts only beside a name of NVIDIA's; theirs of 7 and 8 are older than any framework.
"""

from __future__ import annotations

import re

from pipediag.vocabulary import Policy

_CAPABILITY = re.compile(r"compute capability (\d+)\.\d+")
_NVIDIA = re.compile(r"NVIDIA|Tesla|Quadro|GeForce|TITAN|RTX", re.IGNORECASE)
_AMD = re.compile(r"AMD|Radeon|Instinct", re.IGNORECASE)
_NO_TENSOR_CORES = re.compile(r"\b[KMP]\d{1,4}\b|GTX|\bMX\d|TITAN X", re.IGNORECASE)
"""GTX 16 has none in spite of its capability of 7.5."""
_GENERATIONS = (
    (re.compile(r"\b(H[12]00|H800|H20|GH200|G?B[123]00)\b|RTX (50|PRO)"), 9),
    (re.compile(r"\b(A2|A1[06]G?|A30|A40|A[18]00|L4|L40S?|L20)\b|RTX ([34]0|A\d)|Ada\b"), 8),
    (re.compile(r"\b(V100|GV100|T4G?|TITAN (V|RTX))\b|RTX 20|Quadro RTX", re.IGNORECASE), 7),
    (_NO_TENSOR_CORES, 6),
)
"""Major compute capability by name, 9 for all later ones too."""
_PCIE_GB_PER_S = {7: 12.0, 8: 24.0}


def sixteen_bit_policy(model: str | None) -> Policy | None:
    """The Keras policy that uses the tensor cores; `none` where it has none, None if not known.

    Tensor cores from compute capability 7.0 on, as Keras' own check has it; bfloat16 from 8.0 on.
    """
    major = _major(model)
    if major is None:
        return None
    if major < 7 or _NO_TENSOR_CORES.search(model or ""):
        return "none"
    return "mixed_bfloat16" if major >= 8 else "mixed_float16"


def pcie_gb_per_s(model: str | None) -> float | None:
    """What 16 lanes of the PCIe version that the model is made for carry in use, or None.

    About 80 % of the nominal rate: 12 GB/s for PCIe 3, 24 for 4, 50 for 5. The slot may give less.
    """
    major = _major(model)
    if major is None:
        return None
    return 50.0 if major >= 9 else _PCIE_GB_PER_S.get(major, 12.0)


def _major(model: str | None) -> int | None:
    if model is None or _AMD.search(model):
        return None
    named = next((major for pattern, major in _GENERATIONS if pattern.search(model)), None)
    if named is not None:
        return named
    told = _CAPABILITY.search(model)
    major = int(told.group(1)) if told else None
    trusted = major is not None and (major < 9 or _NVIDIA.search(model) is not None)
    return major if trusted else None
