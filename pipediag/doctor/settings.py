"""Environment variables that change how fast TensorFlow runs."""

from __future__ import annotations

import os
from collections.abc import Mapping

from pipediag.doctor.check import Check

VARIABLES = (
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_VISIBLE_DEVICES",
    "KERAS_BACKEND",
    "MALLOC_CONF",
    "OMP_NUM_THREADS",
    "TF_CPU_ALLOCATOR_USE_BFC",
    "TF_DETERMINISTIC_OPS",
    "TF_ENABLE_ONEDNN_OPTS",
    "TF_FORCE_GPU_ALLOW_GROWTH",
    "TF_GPU_THREAD_MODE",
    "TF_NUM_INTEROP_THREADS",
    "TF_NUM_INTRAOP_THREADS",
    "TF_USE_LEGACY_KERAS",
    "TF_XLA_FLAGS",
    "XLA_FLAGS",
)

_SLOWING = {
    "CUDA_LAUNCH_BLOCKING": "every kernel launch waits for the one before",
    "TF_DETERMINISTIC_OPS": "slower kernels are chosen, and tf.data's maps stay in order",
}


def variables(environment: Mapping[str, str] = os.environ) -> Check:
    """Which variables are set that change TensorFlow's speed."""
    given = {name: environment[name] for name in VARIABLES if name in environment}
    if not given:
        return Check("Environment", "ok", "No variable is set that changes TensorFlow's speed.")
    found = ", ".join(f"{name}={value}" for name, value in given.items()) + "."
    slowing = [f"with {name}, {_SLOWING[name]}" for name in given if _slows(name, given[name])]
    if not slowing:
        return Check("Environment", "ok", found)
    return Check(
        "Environment",
        "warn",
        found,
        "The script runs slower than it would without: " + "; ".join(slowing) + ".",
        "Unset them, unless the script needs them in earnest.",
    )


def _slows(name: str, value: str) -> bool:
    return name in _SLOWING and value.lower() not in ("", "0", "false")
