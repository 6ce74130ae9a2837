"""The session: the versioned record of one run, which reports, rules and gates are functions of.

A section that is missing is None, and only then `<name>_missing` says why. A part of a section that
is missing is None, and the section's own `missing` says why.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pipediag.session.devices import DeviceActivity
from pipediag.session.findings import Finding, Patch, Verdict
from pipediag.session.ledger import Run
from pipediag.session.loops import (
    Ceiling,
    Differential,
    Embedding,
    InputWait,
    Loop,
    Perturbation,
    Share,
    StepRow,
    Steps,
    TextWork,
)
from pipediag.session.pipeline import Operation, Pipeline
from pipediag.session.record import Record
from pipediag.session.recorded_loops import KerasUse
from pipediag.session.recording import OtherUse, Prediction, RecordedEnvironment
from pipediag.session.timeline import GpuReading
from pipediag.session.trials import Combined, PipelineAlone, TrialRun
from pipediag.session.worker import Worker
from pipediag.vocabulary import Call, HotThread, ScriptOutcome, StepClass


class HotLine(Record):
    file: str
    line: int
    function: str
    function_line: int | None = None
    percent: float
    """Share of the stack samples in which this line of the thread was running."""
    thread: str
    code: str | None = None


class Host(Record):
    cpu_percent: float
    """CPU time used, in percent of the CPUs that the process may use."""
    cores_busy: float
    cores_allowed: float
    cores_of_others: float | None = None
    """CPUs, of those that the process may use, that worked for others on the average."""
    cores_idle: float | None = None
    """CPUs, of the same, that had nothing to do."""
    threads: dict[str, float]
    """Percent of one core by pool: `tf_data`, `eigen`, `python_main`, `python_other`, `others`."""
    rss_bytes: int
    available_bytes: int | None = None
    io_wait_percent: float | None
    """Share of the machine's CPU time in which a CPU was idle with disk reads or writes waiting."""
    read_bytes_per_s: float | None
    """Bytes that came from storage; those that the page cache had are not among them."""
    asked_bytes_per_s: float | None = None
    """Bytes that the process asked for, wherever they came from."""
    hot_python: list[HotLine]
    gpus: list[GpuReading] = []


class HostSample(Record):
    """One reading of the host sampler; the rows of host.csv."""

    at_ms: float
    window: str
    cpu_percent: float
    rss_bytes: int
    available_bytes: int | None
    io_wait_percent: float | None
    read_bytes_per_s: float | None
    gpu_percent: float | None = None


def hot_line(host: Host | None, *threads: HotThread) -> HotLine | None:
    """Return the line that was seen running most often on threads of these kinds."""
    lines = host.hot_python if host else []
    of_threads = [line for line in lines if line.thread in threads]
    return max(of_threads, key=lambda line: line.percent, default=None)


class Script(Record):
    path: str
    """The script as typed, or the module name after `-m`."""
    args: list[str]
    module: bool = False
    directory: str | None = None
    """Working directory in which the command started it, absolute; None for other programs."""
    call: Call | None = None
    """The function of pipediag's that the program called, or `cell`; null for the command."""
    status: int | None = None
    """The script's own exit status; negative for a signal; None where pipediag stopped it."""
    outcome: ScriptOutcome
    detail: str | None = None
    """One sentence on that: the exception, the signal, where it was stopped."""
    second_run: str | None = None
    """Outcome of running it a second time, for trials only (`--rerun`)."""
    loop: int | None = None
    """Line of the training loop that was asked for (`--loop`)."""
    steps: int | None = None
    """Measured steps that were asked for (`--steps`)."""
    timeout_s: float | None = None
    """Limit on its time (`--timeout`)."""

    @property
    def main_file(self) -> Path | None:
        """Return the source file that ran as `__main__`; None for a module that is elsewhere."""
        named = Path(self.directory or "", *(self.path.split(".") if self.module else [self.path]))
        if named.is_dir():
            return named / "__main__.py"
        if not self.module:
            return named
        file = named.with_name(f"{named.name}.py")
        return file if file.is_file() else None


@dataclass(kw_only=True)
class Environment(RecordedEnvironment):
    """The machine, with Python and the frameworks on it."""

    cpu_model: str | None
    cores: int
    cpu_quota: float | None
    """CPUs that the control group allows; None where there is no limit."""
    memory_bytes: int
    gpu_installed: list[str] = field(default_factory=list)
    """NVIDIA's GPUs that the driver or the PCI bus shows, whether TensorFlow sees them or not."""
    platform: str
    fingerprint: str
    """Hash of what makes two machines comparable: CPU model, cores, quota, devices, TensorFlow."""
    worker: Worker | None = None
    """The worker of a job that it was; None for a process that trains alone."""


class OtherProcesses(Record):
    """Processes that the script started, which pipediag does not measure."""

    count: int
    """Helpers such as multiprocessing's resource tracker included."""
    cpu_s: float


class Session(Record):
    # Keys may be added, renamed and removed under it until the first release, which freezes it.
    schema_version: Literal["1"] = "1"
    """Version of the format; files of other versions are refused."""
    pipediag_version: str
    """Version of pipediag that wrote it."""
    created_at: str
    """ISO 8601, UTC."""
    script: Script
    """Path or module, arguments, exit status, how the script ended, and options of the analysis."""
    environment: Environment
    """Python, TensorFlow, Keras and its backend, machine and devices; a fingerprint of the machine.
    """
    verdict: Verdict
    """Bottleneck, severity, one sentence, confidence, reasons, next steps; file and line; the part
    of the run that costs the most (`where`); the source lines concerned."""
    run: Run | None = None
    """Ledger of the run's time: each second is in one of `parts`, with a row for each part and
    place, measured or projected. The percentages add up to 100 of the whole: `total_s`, or
    `projected_total_s` if the script was stopped. `pipediag_s` is in no part; `not_seen` lists what
    is missing."""
    run_missing: str | None = None
    steps: Steps | None
    """Steps of the window without a profiler, warm-up excluded: count, mean, median, 95th
    percentile, 95 % interval, examples per second, batch size."""
    steps_missing: str | None = None
    breakdown: dict[StepClass, Share] | None
    """The step divided into classes, from `input_wait` to `unattributed`, each with ms, percent and
    a 95 % interval. The percentages add up to 100."""
    breakdown_missing: str | None = None
    input_wait: InputWait | None = None
    """Input wait by tf.data's own clock and by the trace, which of them the breakdown uses, and why
    they differ."""
    perturbation: Perturbation | None
    """Slow-down of the step by the profiler."""
    perturbation_missing: str | None = None
    differential: Differential | None = None
    """The step on a repeated batch, which shows the cost of input while the pipeline is busy."""
    ceiling: Ceiling | None
    """Speed-up of the steps, and of the whole loop, if input were free; the next bottleneck."""
    ceiling_missing: str | None = None
    pipeline: Pipeline | None
    """Each tf.data operation with its source line, time, elements, bytes and buffers."""
    pipeline_missing: str | None = None
    devices: list[DeviceActivity] = []
    """Busy and idle time of each device, and its 2,000 longest gaps with their causes (`gaps.csv`).
    """
    host: Host | None
    """CPU by thread pool, memory, disk reads, I/O wait, the hottest lines of Python, GPU use."""
    host_missing: str | None = None
    embeddings: list[Embedding] = []
    """Embedding tables, the largest first: size, slots, reads and updates by the traced step, and
    the ids of a few batches."""
    embeddings_missing: str | None = None
    """Reason why tables may be missing: the step of the loop could not be read."""
    vocabulary_ms: float | None = None
    """Time of a step in operations on a number for each of many classes: logits, loss, gradients,
    and the update of weights that are no embedding table."""
    metrics_ms: float | None = None
    """Time of a step in operations that nothing but its metrics needs; None as above."""
    device_memory_bytes: int | None = None
    """Value of `--device-memory`; None if it was not given."""
    text_work: TextWork | None = None
    """Text work in the step's own graph, which the pipeline could do during the previous step."""
    findings: list[Finding] = []
    """Result of each rule: status, severity, place, evidence, advice, effect on results, upper
    bound or measured gain, edit, trial and `patch`, the most useful first."""
    combined: Combined | None = None
    """All confirmed edits together that keep hyper-parameters, and those `dropped` from it."""
    combined_missing: str | None = None
    patch: Patch | None = None
    """All confirmed edits as one change of the source. `null` if none was confirmed, and with
    PIPEDIAG_NO_SOURCE."""
    pipeline_alone: PipelineAlone | None = None
    """The pipeline without its consumer: ms per batch, 95 % interval, blocks."""
    pipeline_alone_missing: str | None = None
    trials: TrialRun | None = None
    """The trials: loop and consumer, seconds given and used, and `blocks` (`trials.csv`)."""
    trials_missing: str | None = None
    predictions: list[Prediction] = []
    """Lines that repeatedly call `predict` on little data, compared with `predict_on_batch`."""
    loops: list[Loop] = []
    """Every place in the script that took batches, and which of them was diagnosed."""
    step_rows: list[StepRow] = []
    """Every recorded step of the diagnosed loop; the rows of `steps.csv`."""
    host_samples: list[HostSample] = []
    """Readings of the host; the rows of `host.csv`."""
    other_uses: list[OtherUse] = []
    """Uses of TensorFlow other than training loops."""
    other_processes: OtherProcesses | None = None
    """Processes that the script started, and their CPU time."""
    notes: list[str] = []
    """Notes on what did not go as planned."""
    wall_s: float
    """Seconds from the start of the script to its end or stop."""

    @property
    def ops(self) -> list[Operation]:
        """Return the operations of the diagnosed loop's pipeline; none where it is not known."""
        return self.pipeline.ops if self.pipeline is not None else []

    def operation(self, op_id: str | None) -> Operation | None:
        """Return the pipeline operation with that id, or None."""
        return next((op for op in self.ops if op.id == op_id), None)

    def diagnosed_loop(self) -> Loop | None:
        """Return the loop that the verdict speaks of, or None."""
        return next((loop for loop in self.loops if loop.diagnosed), None)

    @property
    def keras(self) -> KerasUse | None:
        """Return how the diagnosed loop trains with Keras; None for a loop of the script's own."""
        loop = self.diagnosed_loop()
        return loop.keras if loop is not None else None
