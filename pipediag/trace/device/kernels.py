"""A device's kernels: which took the time, and how they compare with the calls that launched them.

Which kernels are matrix products, and which of those use tensor cores, is told by name, as NVIDIA's
libraries, CUTLASS and AMD's Tensile form theirs: `volta_sgemm_128x64_nn` uses none,
`volta_h884gemm`, `ampere_s16816gemm`, `sm80_xmma_gemm_..._tensor16x8x16`, `hopper_hgmma` and
`Cijk_..._MI16x16x4x1` do.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipediag.trace.device.launches import NOT_FOUND, LaunchCalls
from pipediag.trace.device.streams import DeviceEvents

_MATMUL = re.compile(
    r"gemm|gemv|nvjet|cutlass|xmma|gmma|Cijk_|matmul|winograd|scudnn|implicit_con|conv(?!ert)\w*(2d|3d|fwd|_)"
    r"|wgrad|dgrad|MIOpen\w*Conv",
    re.IGNORECASE,
)
# XLA's and Triton's kernels are named after what they compute, not how.
_COMPILED = re.compile(r"fusion|triton", re.IGNORECASE)
_TENSOR_CORE = re.compile(
    r"[hs]?(884|1688|16816|8816|16832)|tensor\w*\d+x\d+|tensorop|nvjet|[hiqs]?mma_|gmma|wmma|imma|hmma"
    r"|_MI\d+x\d+",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Kernel:
    """All runs of one kernel."""

    name: str
    count: int
    total_ns: int
    matmul: bool
    tensor_core: bool | None
    """None where it is no matrix product, or a compiler's whose name does not say."""


@dataclass(frozen=True)
class KernelLaunches:
    """The kernels against the calls that launched them; medians in nanoseconds."""

    kernels: int
    matched: int
    median_kernel_ns: float
    median_launch_ns: float | None
    shorter_than_launch_percent: float | None
    """Calls whose kernels together ran for less time than the call took, of those matched."""
    median_delay_ns: float | None
    """From a call's end to its first kernel's start; 0 where that started before."""


def device_kernels(device: DeviceEvents) -> tuple[Kernel, ...]:
    """Every kernel that ran, the one that took most time first."""
    chosen = ~device.of_class("device_copy")
    names, lengths = device.name_ids[chosen], (device.end_ns - device.start_ns)[chosen]
    counts = np.bincount(names, minlength=1)
    totals = np.bincount(names, weights=lengths, minlength=1)
    by_name: dict[str, tuple[int, int]] = {}
    for key in np.flatnonzero(counts).tolist():
        count, total_ns = by_name.get(device.plane.names[key], (0, 0))
        by_name[device.plane.names[key]] = count + int(counts[key]), total_ns + int(totals[key])
    kernels = [_kernel(name, count, time) for name, (count, time) in by_name.items()]
    return tuple(sorted(kernels, key=lambda kernel: -kernel.total_ns))


def kernel_launches(
    device: DeviceEvents, launched_by: NDArray[np.intp], calls: LaunchCalls
) -> KernelLaunches | None:
    """How the kernels compare with their launches; None where no kernel ran.

    `launched_by` is the place of each activity's call, as `LaunchCalls.of` gives it. One call may
    launch many kernels, as a CUDA graph does: then they count together.
    """
    kernels = np.flatnonzero(~device.of_class("device_copy"))
    if not len(kernels):
        return None
    lengths = (device.end_ns - device.start_ns)[kernels]
    of_kernels = launched_by[kernels]
    matched = of_kernels != NOT_FOUND
    # In order of start, so that the first kernel of each call comes first.
    call, first, which = np.unique(of_kernels[matched], return_index=True, return_inverse=True)
    launch = calls.end_ns[call] - calls.start_ns[call]
    together = np.bincount(which.reshape(-1), weights=lengths[matched], minlength=len(call))
    delay = np.maximum(device.start_ns[kernels][matched][first] - calls.end_ns[call], 0)
    any_matched = bool(matched.any())
    return KernelLaunches(
        kernels=len(kernels),
        matched=int(matched.sum()),
        median_kernel_ns=float(np.median(lengths)),
        median_launch_ns=float(np.median(launch)) if any_matched else None,
        shorter_than_launch_percent=(
            100.0 * float(np.mean(together < launch)) if any_matched else None
        ),
        median_delay_ns=float(np.median(delay)) if any_matched else None,
    )


def _uses_tensor_cores(name: str) -> bool | None:
    if _TENSOR_CORE.search(name):
        return True
    return None if _COMPILED.search(name) else False


def _kernel(name: str, count: int, total_ns: int) -> Kernel:
    matmul = _MATMUL.search(name) is not None
    tensor_core = _uses_tensor_cores(name) if matmul else None
    return Kernel(name, count, total_ns, matmul, tensor_core)
