"""Checks of TensorFlow: its build, its import, the GPUs that it sees, environment variables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import distributions

from pipediag.doctor.machine import Check, warning_unless
from pipediag.tensorflow_versions import (
    OLDEST,
    installed_builds,
    is_too_old,
    too_old_sentence,
)

# A module in the working directory must not take the place of another.
_ASK = """
import sys
sys.path[:] = [entry for entry in sys.path if entry]
import json, tensorflow as tf
devices = [[d.name, d.device_type] for d in tf.config.list_physical_devices()]
print(json.dumps([tf.__version__, bool(tf.test.is_built_with_gpu_support()), devices]))
"""


@dataclass(frozen=True)
class Installed:
    """Installed distributions: versions by name of TensorFlow's builds, and CUDA's packages."""

    builds: dict[str, str]
    cuda_packages: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Imported:
    """TensorFlow's answers in a child process."""

    version: str | None = None
    gpu_build: bool | None = None
    gpus: list[str] = field(default_factory=list)
    error: str | None = None


def installed() -> Installed:
    """Read which distributions this interpreter has."""
    names = {(found.metadata["Name"] or "").lower().replace("_", "-") for found in distributions()}
    cuda = [name for name in names if name.startswith("nvidia-") and name != "nvidia-ml-py"]
    return Installed(installed_builds(), sorted(cuda))


def import_in_child(
    command: Sequence[str] = (sys.executable, "-c", _ASK), timeout_s: float = 60
) -> Imported:
    """Import TensorFlow elsewhere, so that neither its memory nor its crash becomes ours."""
    try:
        child = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired:
        return Imported(error=f"importing it took longer than {timeout_s:g} s")
    try:
        version, gpu_build, devices = json.loads(child.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        written = child.stderr.strip().splitlines() or [f"it ended with status {child.returncode}"]
        return Imported(error=written[-1])
    return Imported(version, gpu_build, [name for name, kind in devices if kind == "GPU"])


def build(found: Installed) -> Check:
    """Check which build is installed."""
    if not found.builds:
        return Check(
            "TensorFlow",
            "problem",
            "No TensorFlow is installed for this interpreter.",
            "`pipediag analyze` cannot run a training script; reports and gates work without.",
            f"Install it beside pipediag: {sys.executable} -m pip install tensorflow",
        )
    version = next(iter(found.builds.values()))
    if len(found.builds) == 1 and is_too_old(version):
        return Check(
            "TensorFlow",
            "problem",
            too_old_sentence(version),
            "`pipediag analyze` refuses to run a training script.",
            f"Use TensorFlow {'.'.join(map(str, OLDEST))} or newer.",
        )
    names = ", ".join(f"{name} {version}" for name, version in found.builds.items())
    return warning_unless(
        len(found.builds) == 1,
        "TensorFlow",
        f"{names}." if len(found.builds) == 1 else f"Several builds are installed: {names}.",
        "They overwrite each other's files; which one runs depends on the order of installation.",
        "Uninstall all of them, then install the one that you want.",
    )


def importable(imported: Imported) -> Check:
    """Check whether TensorFlow can be imported."""
    if imported.error is None:
        return Check("Import", "ok", f"TensorFlow {imported.version} imports.")
    return Check(
        "Import",
        "problem",
        f"TensorFlow does not import: {imported.error}.",
        "No training script runs here.",
        f'See the whole message: {sys.executable} -c "import tensorflow"',
    )


def gpus(
    present: list[str],
    driver: str | None,
    found: Installed,
    imported: Imported | None,
    environment: Mapping[str, str] = os.environ,
) -> Check:
    """Check whether TensorFlow sees the GPUs that the machine has, and why it may not.

    `imported` is None where TensorFlow was not asked: then the packages are what is known.
    """
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
        "the reason is not known",
        "Read what TensorFlow logs while it is imported, with TF_CPP_MIN_LOG_LEVEL=0.",
    )
    seen = "will not see them" if imported is None else "sees none of them"
    return Check(
        "GPU",
        "problem",
        f"{names}; TensorFlow {seen}: {why}.",
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
    """Return why TensorFlow cannot see the GPUs and what to do, the surest cause first."""
    hidden = environment.get("CUDA_VISIBLE_DEVICES")
    if hidden is not None and hidden.strip() in ("", "-1"):
        return f"CUDA_VISIBLE_DEVICES={hidden!r} hides them", "Unset CUDA_VISIBLE_DEVICES."
    install = 'pip install "tensorflow[and-cuda]"'
    cpu_only = found.builds and all(name.endswith("-cpu") for name in found.builds)
    if cpu_only or (imported is not None and imported.gpu_build is False):
        replace = f"Replace it: pip uninstall tensorflow-cpu; {install}"
        return "this build of TensorFlow has no GPU support", replace
    if all(name.startswith("AMD") for name in present):
        return None
    if driver is None:
        return "the NVIDIA driver does not answer", "Install it; nvidia-smi then lists the GPUs."
    if not found.cuda_packages and imported is not None:
        return "no CUDA libraries are installed as packages", f"Install them: {install}"
    return None


VARIABLES = """
CUDA_LAUNCH_BLOCKING CUDA_VISIBLE_DEVICES KERAS_BACKEND MALLOC_CONF OMP_NUM_THREADS
TF_CPU_ALLOCATOR_USE_BFC TF_DETERMINISTIC_OPS TF_ENABLE_ONEDNN_OPTS TF_FORCE_GPU_ALLOW_GROWTH
TF_GPU_THREAD_MODE TF_NUM_INTEROP_THREADS TF_NUM_INTRAOP_THREADS TF_USE_LEGACY_KERAS TF_XLA_FLAGS
XLA_FLAGS
""".split()
_SLOWING = {
    "CUDA_LAUNCH_BLOCKING": "every kernel launch waits for the one before",
    "TF_DETERMINISTIC_OPS": "slower kernels are chosen, and tf.data's maps stay in order",
}


def variables(environment: Mapping[str, str] = os.environ) -> Check:
    """Check which variables are set that change TensorFlow's speed."""
    given = {name: environment[name] for name in VARIABLES if name in environment}
    if not given:
        return Check("Environment", "ok", "No variable is set that changes TensorFlow's speed.")
    found = ", ".join(f"{name}={value}" for name, value in given.items()) + "."
    slowing = [
        f"with {name}, {effect}"
        for name, effect in _SLOWING.items()
        if given.get(name, "").lower() not in ("", "0", "false")
    ]
    return warning_unless(
        not slowing,
        "Environment",
        found,
        "The script runs slower than it would without: " + "; ".join(slowing) + ".",
        "Unset them, unless the script needs them.",
    )
