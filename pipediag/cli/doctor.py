"""`pipediag doctor`: find what would spoil a measurement on this machine.

Thresholds are this project's judgement of what moves a median step time by more than the noise
between two blocks of steps, which is 2 to 5 %.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import distributions
from pathlib import Path
from typing import Literal

import click

from pipediag.cli.common import deliver, say, text_width
from pipediag.encoding import one_line
from pipediag.sensors import machine
from pipediag.sensors.machine import ROOT, Nvml, cpu_model, installed_gpus, usable_cores
from pipediag.tensorflow_names import OLDEST, installed_builds, is_too_old, too_old_sentence

BUSY_SHARE = 0.25
"""Load of others, as a share of the cores."""


@dataclass(frozen=True)
class Check:
    name: str
    state: Literal["ok", "warn", "problem"]
    found: str
    follows: str = ""
    """Consequence for a measurement; empty where there is none."""
    do: str = ""
    """Remedy; empty where nothing need be done."""


def warning_unless(fine: bool, name: str, found: str, follows: str, do: str) -> Check:
    """Return a check that warns of what follows, unless all is fine."""
    return Check(name, "ok", found) if fine else Check(name, "warn", found, follows, do)


def quota(root: Path = ROOT) -> Check:
    """Check whether the control group allows fewer CPUs than the scheduler shows."""
    cores, allowed = usable_cores(), machine.cpu_quota(root)
    lower = allowed is not None and allowed < cores
    quota = f"but the quota is {allowed:.3g} CPUs" if lower else "no lower quota"
    return warning_unless(
        not lower,
        "CPU",
        f"{cpu_model(root) or 'unknown processor'}; {cores} cores may be used, {quota}.",
        "TensorFlow and tf.data size their thread pools by the cores, so more threads run than the "
        "quota feeds, and all of them are paused when it is used up.",
        "Start the script with as many cores as the quota allows, with taskset for instance, or "
        "raise the quota.",
    )


def load(load_1min: float | None = None) -> Check:
    """Check whether other programs use the CPUs."""
    load_1min = os.getloadavg()[0] if load_1min is None else load_1min
    cores = usable_cores()
    return warning_unless(
        load_1min < BUSY_SHARE * cores,
        "Load",
        f"Over the last minute {load_1min:.1f} threads wanted to run, on {cores} cores.",
        "Other programs take CPU time from the script; steps get longer and vary more.",
        "Wait until they have ended, or measure on a quieter machine.",
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
class Imported:
    """TensorFlow's answers in a child process."""

    version: str | None = None
    gpu_build: bool | None = None
    gpus: list[str] = field(default_factory=list)
    error: str | None = None


def has_cuda_packages() -> bool:
    """Return True if this interpreter has CUDA's libraries as packages."""
    names = {(found.metadata["Name"] or "").lower().replace("_", "-") for found in distributions()}
    return any(name.startswith("nvidia-") for name in names - {"nvidia-ml-py"})


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


def build(builds: Mapping[str, str]) -> Check:
    """Check which build is installed, given the versions of those that are."""
    names = ", ".join(f"{name} {version}" for name, version in builds.items())
    if not builds:
        return Check(
            "TensorFlow",
            "problem",
            "No TensorFlow is installed for this interpreter.",
            "`pipediag analyze` cannot run a training script; reports and gates work without.",
            f"Install it beside pipediag: {sys.executable} -m pip install tensorflow",
        )
    if len(builds) > 1:
        return Check(
            "TensorFlow",
            "warn",
            f"Several builds are installed: {names}.",
            "They overwrite each other's files; which one runs depends on the order of "
            "installation.",
            "Uninstall all of them, then install the one that you want.",
        )
    [version] = builds.values()
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
    builds: Collection[str],
    imported: Imported,
    *,
    cuda_packages: bool,
    environment: Mapping[str, str] = os.environ,
) -> Check:
    """Check whether TensorFlow sees the GPUs that the machine has, and why it may not."""
    if not present:
        return Check("GPU", "ok", "This machine has none; TensorFlow trains on the CPU.")
    names = ", ".join(present)
    if imported.gpus:
        version = f", driver {driver}" if driver else ""
        return Check("GPU", "ok", f"TensorFlow sees {len(imported.gpus)} of: {names}{version}.")
    hidden = environment.get("CUDA_VISIBLE_DEVICES")
    cpu_only = builds and all(name.endswith("-cpu") for name in builds)
    install = 'pip install "tensorflow[and-cuda]"'
    why = "the reason is not known"
    do = "Read what TensorFlow logs while it is imported, with TF_CPP_MIN_LOG_LEVEL=0."
    # The surest cause first.
    if hidden is not None and hidden.strip() in ("", "-1"):
        why, do = f"CUDA_VISIBLE_DEVICES={hidden!r} hides them", "Unset CUDA_VISIBLE_DEVICES."
    elif cpu_only or imported.gpu_build is False:
        why = "this build of TensorFlow has no GPU support"
        do = f"Replace it: pip uninstall tensorflow-cpu; {install}"
    elif driver is None:
        why = "the NVIDIA driver does not answer"
        do = "Install it; nvidia-smi then lists the GPUs."
    elif not cuda_packages:
        why, do = "no CUDA libraries are installed as packages", f"Install them: {install}"
    follows = "Training runs on the CPU, and any other advice would be about the wrong machine."
    return Check("GPU", "problem", f"{names}; TensorFlow sees none of them: {why}.", follows, do)


def all_checks() -> Iterator[Check]:
    """Yield each check as soon as it is made. Importing TensorFlow takes seconds."""
    # Before anything else of ours makes the machine busy.
    others = load()
    builds = installed_builds()
    yield build(builds)
    if builds:
        imported = import_in_child()
        yield importable(imported)
        nvml = Nvml()
        driver = nvml.driver_version()
        nvml.close()
        cuda = has_cuda_packages()
        yield gpus(installed_gpus(), driver, builds, imported, cuda_packages=cuda)
    yield from (quota(), others)


STATE_WIDTH = 9
TEXT_WIDTH = 100


@click.command(name="doctor")
def command() -> None:
    """Find what would spoil a measurement on this machine.

    It looks at TensorFlow and its GPU libraries, CPU quota and load. Exit status: 0, whatever is
    found.
    """
    states: Counter[str] = Counter()
    for check in all_checks():
        deliver(render(check) + "\n")
        states[check.state] += 1
    summary = f"Problems: {states['problem']}. Warnings: {states['warn']}. The rest is fine."
    if states.keys() <= {"ok"}:
        summary = "Nothing here would spoil a measurement."
    say(f"\n{summary}", err=False)


def render(check: Check) -> str:
    """Return a line, and below it what follows and what to do."""
    width = text_width(sys.stdout, TEXT_WIDTH)
    indent = " " * STATE_WIDTH
    texts = (f"{check.name}: {check.found}", check.follows, check.do and f"To do: {check.do}")
    lines = [click.wrap_text(one_line(text), width, indent, indent) for text in texts if text]
    return f"{check.state:<{STATE_WIDTH}}" + "\n".join(lines)[STATE_WIDTH:]
