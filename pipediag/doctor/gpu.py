"""GPUs: what the machine has, what the driver says, and why TensorFlow may not see them."""

from __future__ import annotations

import os
from collections.abc import Mapping

from pipediag.doctor.check import Check
from pipediag.doctor.framework import Imported, Installed


def gpus(
    present: list[str],
    driver: str | None,
    found: Installed,
    imported: Imported | None,
    environment: Mapping[str, str] = os.environ,
) -> Check:
    """`imported` is None where TensorFlow was not asked; the packages then have to do."""
    if not present:
        return Check("GPU", "ok", "This machine has none; TensorFlow trains on the CPU.")
    names = ", ".join(present)
    if imported is not None and imported.gpus:
        version = f", driver {driver}" if driver else ""
        return Check("GPU", "ok", f"TensorFlow sees {len(imported.gpus)} of: {names}{version}.")
    cause = _cause(driver, found, imported, environment, present)
    if imported is None and cause is None:
        return Check("GPU", "ok", f"{names}; TensorFlow was not asked whether it sees them.")
    why, do = cause or (
        "no reason is plain",
        "Read what TensorFlow logs while it is imported, with TF_CPP_MIN_LOG_LEVEL=0.",
    )
    seen = (
        "TensorFlow sees none of them" if imported is not None else "TensorFlow will not see them"
    )
    return Check(
        "GPU",
        "problem",
        f"{names}; {seen}: {why}.",
        "Training runs on the CPU, and any other advice would be about the wrong machine.",
        do,
    )


def _cause(
    driver: str | None,
    found: Installed,
    imported: Imported | None,
    environment: Mapping[str, str],
    present: list[str],
) -> tuple[str, str] | None:
    """Why TensorFlow cannot see the GPUs and what to do, the surest cause first."""
    hidden = environment.get("CUDA_VISIBLE_DEVICES")
    if hidden is not None and hidden.strip() in ("", "-1"):
        return f"CUDA_VISIBLE_DEVICES={hidden!r} hides them", "Unset CUDA_VISIBLE_DEVICES."
    if found.cpu_only or (imported is not None and imported.gpu_build is False):
        return (
            "this build of TensorFlow has no GPU support",
            'Replace it: pip uninstall tensorflow-cpu; pip install "tensorflow[and-cuda]"',
        )
    if all(name.startswith("AMD") for name in present):
        return None
    if driver is None:
        return (
            "the NVIDIA driver does not answer",
            "Install the driver; nvidia-smi then lists them.",
        )
    if not found.cuda_packages and imported is not None:
        return (
            "no CUDA libraries are installed as packages",
            'pip install "tensorflow[and-cuda]"',
        )
    return None
