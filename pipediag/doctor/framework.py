"""TensorFlow: which build is installed, and what it sees when a child process imports it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import distributions

from pipediag.doctor.check import Check
from pipediag.sensors.tensorflow_builds import BUILDS
from pipediag.tensorflow_versions import OLDEST, is_too_old, too_old_sentence

IMPORT_TIMEOUT_S = 60

# A module of the user's that lies in the working directory must not take another's place.
_ASK = """
import sys
sys.path[:] = [entry for entry in sys.path if entry]
import json, tensorflow as tf
devices = [[d.name, d.device_type] for d in tf.config.list_physical_devices()]
print(json.dumps([tf.__version__, bool(tf.test.is_built_with_gpu_support()), devices]))
"""


@dataclass(frozen=True)
class Installed:
    """What the installed distributions say, without importing any of them."""

    builds: dict[str, str]
    """Version of each distribution that installs TensorFlow."""
    cuda_packages: list[str] = field(default_factory=list)

    @property
    def cpu_only(self) -> bool:
        return bool(self.builds) and all(name.endswith("-cpu") for name in self.builds)


@dataclass(frozen=True)
class Imported:
    """What TensorFlow said of itself in a child process."""

    version: str | None = None
    gpu_build: bool | None = None
    gpus: list[str] = field(default_factory=list)
    error: str | None = None


def installed() -> Installed:
    """Look through the distributions of this interpreter."""
    versions = {
        (dist.metadata["Name"] or "").lower().replace("_", "-"): dist.version
        for dist in distributions()
    }
    cuda = sorted(n for n in versions if n.startswith("nvidia-") and n != "nvidia-ml-py")
    return Installed({name: versions[name] for name in BUILDS if name in versions}, cuda)


def import_in_child(
    command: Sequence[str] = (sys.executable, "-c", _ASK),
    timeout_s: float = IMPORT_TIMEOUT_S,
    environment: Mapping[str, str] | None = None,
) -> Imported:
    """Import TensorFlow elsewhere, so that neither its memory nor its crash becomes ours."""
    try:
        child = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout_s, check=False, env=environment
        )
    except subprocess.TimeoutExpired:
        return Imported(error=f"importing it took longer than {timeout_s:g} s")
    try:
        version, gpu_build, devices = json.loads(child.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        words = child.stderr.strip().splitlines()
        return Imported(error=words[-1] if words else f"it ended with status {child.returncode}")
    return Imported(version, gpu_build, [name for name, kind in devices if kind == "GPU"])


def build(found: Installed) -> Check:
    """Which build is installed."""
    if not found.builds:
        return Check(
            "TensorFlow",
            "problem",
            "No TensorFlow is installed for this interpreter.",
            "`pipediag analyze` cannot run a training script; reports and gates work without.",
            f"Install it beside pipediag: {sys.executable} -m pip install tensorflow",
        )
    names = ", ".join(f"{name} {version}" for name, version in found.builds.items())
    if len(found.builds) > 1:
        return Check(
            "TensorFlow",
            "warn",
            f"Several builds are installed: {names}.",
            "They overwrite each other's files; which one runs depends on the order they came in.",
            "Uninstall all of them, then install the one that you want.",
        )
    (version,) = found.builds.values()
    if is_too_old(version):
        return Check(
            "TensorFlow",
            "problem",
            too_old_sentence(version),
            "`pipediag analyze` refuses to run a training script.",
            f"Use TensorFlow {'.'.join(map(str, OLDEST))} or newer.",
        )
    return Check("TensorFlow", "ok", f"{names}.")


def importable(imported: Imported) -> Check:
    """Whether TensorFlow can be imported."""
    if imported.error is None:
        return Check("Import", "ok", f"TensorFlow {imported.version} imports.")
    return Check(
        "Import",
        "problem",
        f"TensorFlow does not import: {imported.error}.",
        "No training script runs here.",
        f'See the whole message: {sys.executable} -c "import tensorflow"',
    )
