"""The run itself: its script, where it ran, and what else was seen of it."""

from __future__ import annotations

from pathlib import Path

from pipediag.session.record import Record
from pipediag.vocabulary import Call, ScriptOutcome


class Script(Record):
    path: str
    """The script as typed, or the module name after `-m`."""
    args: list[str]
    module: bool = False
    directory: str | None = None
    """Working directory in which the command started it, absolute; None for other programs."""
    call: Call | None = None
    """The function of pipediag's that the program at `path` called, or `cell` where a notebook's
    cell was measured; null where the command ran it as a script."""
    status: int | None = None
    """The script's own exit status; negative for a signal; None where pipediag stopped it."""
    outcome: ScriptOutcome
    """How it ended."""
    detail: str | None = None
    """One sentence on that: the exception, the signal, where it was stopped."""
    files_written: list[str] = []
    """Of a script that was stopped: the first files that it had made or changed by then, in its
    working directory and its own; or of one that was stopped in its second run."""
    second_run: str | None = None
    """What came of running it a second time, for trials only, where `--rerun` asked for that; the
    rest of the session tells of the first run."""

    @property
    def main_file(self) -> Path | None:
        """The source file that ran as `__main__`; None for a module that is elsewhere."""
        named = Path(self.directory or "", *(self.path.split(".") if self.module else [self.path]))
        if named.is_dir():
            return named / "__main__.py"
        if not self.module:
            return named
        file = named.with_name(f"{named.name}.py")
        return file if file.is_file() else None


class Device(Record):
    name: str
    kind: str


class Environment(Record):
    python: str
    tensorflow: str | None
    keras: str | None
    keras_backend: str | None
    jax: str | None = None
    numpy: str | None = None
    cpu_model: str | None
    cores: int
    cpu_quota: float | None
    """CPUs that the control group allows; None where there is no limit."""
    cpu_capacity: float | None = None
    """How many times the work of one thread alone as many threads as CPUs do together: less than
    the CPUs where two share a core or others use them. None in sessions that did not measure it."""
    memory_bytes: int
    free_disk_bytes: int | None = None
    """Where temporary files go; None in sessions that did not look."""
    devices: list[Device]
    cuda_build: bool | None = None
    gpu_installed: list[str] = []
    """GPUs that the driver or the PCI bus shows, whether TensorFlow sees them or not."""
    cuda_visible_devices: str | None = None
    run_functions_eagerly: bool = False
    tf_data_debug_mode: bool = False
    legacy_keras: bool = False
    mixed_precision: str | None = None
    framework_messages: list[str] = []
    platform: str
    fingerprint: str
    """Hash of what makes two machines comparable: CPU model, cores, quota, devices, TensorFlow."""


class OtherUse(Record):
    what: str
    file: str | None
    line: int | None
    count: int


class OtherProcesses(Record):
    """Processes that the script started, which pipediag does not measure."""

    count: int
    """Helpers such as multiprocessing's resource tracker included."""
    cpu_s: float


class ProfilerConflict(Record):
    what: str
    file: str | None
    line: int | None
    consequence: str
