"""The session: the versioned record of one run, which reports, rules and gates are functions of.

A measurement that is missing is None, and the field `<name>_missing` or the section's `missing`
says why. Field names carry their units.
"""

from __future__ import annotations

from typing import Literal

from pipediag.session.devices import DeviceActivity
from pipediag.session.edits import Edit
from pipediag.session.record import Interval, Record, Scalar
from pipediag.session.trials import NOT_TRIED, Combined, PipelineAlone, Trial, TrialRun

SCHEMA_VERSION = "1"

Bottleneck = Literal["input", "compute", "transfer", "overhead", "balanced", "inconclusive"]
VerdictSeverity = Literal["ok", "moderate", "high", "unknown"]
Confidence = Literal["high", "medium", "low"]
StepClass = Literal[
    "input_wait",
    "device_compute",
    "device_copy",
    "collective",
    "compile",
    "dispatch",
    "python",
    "device_wait",
    "unattributed",
]
FindingStatus = Literal["fail", "pass", "informative", "not-applicable", "inconclusive", "error"]
FindingSeverity = Literal["error", "warn", "info"]
FindingSubject = Literal["precondition", "correctness", "quality", "speed"]
"""What a finding is about. Correctness and quality are about results: no trial of speed settles
them."""
EffectOnResults = Literal[
    "same results",
    "same up to order or rounding",
    "changes a hyper-parameter",
    "mends results",
    "not known",
    "not safe here",
]
"""`mends results`: they change to what was meant. `not known`: only the author of a function knows
whether it always gives the same. `not safe here`: the function is known to be random or stateful,
so that the results would not be the same."""


class Script(Record):
    path: str
    """The script as typed, or the module name after `-m`."""
    args: list[str]
    module: bool = False
    status: int | None = None
    """The script's own exit status; negative for a signal; None where pipediag stopped it."""
    outcome: Literal[
        "finished",
        "stopped",
        "exited",
        "raised",
        "interrupted",
        "killed",
        "timed-out",
        "hung-in-exit",
    ]
    """How it ended."""
    detail: str | None = None
    """One sentence on that: the exception, the signal, where it was stopped."""
    files_written: list[str] = []
    """Of a script that was stopped: the first files that it had made or changed by then, in its
    working directory and its own."""


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


class Verdict(Record):
    bottleneck: Bottleneck
    severity: VerdictSeverity
    summary: str
    """One sentence for a person in a hurry."""
    confidence: Confidence
    reasons: list[str]
    next_steps: list[str] = []
    """What to do, most useful first."""
    file: str | None = None
    line: int | None = None
    op_id: str | None = None


class Steps(Record):
    count: int
    """Steps in the baseline window, without any profiler."""
    warmup_count: int
    mean_ms: float
    median_ms: float
    p95_ms: float
    ci95_ms: Interval
    """Of the median."""
    examples_per_s: float | None
    batch_size: int | None
    first_step_ms: float | None = None
    fill_ms: float | None = None
    """How long the first batch was waited for: iterator start and shuffle fill."""
    retraces: int = 0
    trace_count: int = 0
    seams: int = 0
    batches_per_call: int = 1
    stable: bool = True
    samples_ms: list[float] = []
    """Every baseline step, in order."""


class Share(Record):
    """One class of the step's time."""

    ms: float
    percent: float
    ci95_percent: Interval


Contention = Literal["lock", "cpu"]
"""What input's threads and the training loop fight for: the interpreter lock, or the CPUs."""


class InputWait(Record):
    """Input wait by both methods, so that a reader can see whether they agree."""

    native_percent: float | None
    """From tf.data's own gap times, no profiler running."""
    native_ci95_percent: Interval | None
    trace_percent: float | None
    """From the profile: waiting in GetNext while no device computes."""
    method: Literal["native", "trace", "differential", "none"]
    """The one that the breakdown uses."""
    contention: Contention | None = None
    """Where it slows the loop, the consumer alone on a repeated batch tells what input costs."""
    disagreement: str | None
    """Why the two differ, where they do."""
    contested_by_percent: float | None = None
    """What input costs by a repeated batch, where that contradicts the share that is used."""


class Perturbation(Record):
    baseline_step_ms: float
    profiled_step_ms: float | None
    ratio: float | None
    missing: str | None = None


class Ceiling(Record):
    speedup_if_input_free: float | None
    """Step divided by step without input wait, as the breakdown has them."""
    ci95: Interval | None = None
    next_bottleneck: StepClass | None
    missing: str | None = None
    loop_speedup_if_input_free: float | None = None
    """The same of the whole loop, with the waits for each epoch's first batch; None where these
    are not known."""


class Differential(Record):
    """The consumer alone on a repeated batch: what the step costs when input is free."""

    step_ms: float
    ci95_ms: Interval
    steps: int
    input_share_percent: float
    """100 * (1 - repeated-batch step / baseline step)."""


class OperationFunction(Record):
    name: str
    file: str | None
    line: int | None
    stateful: bool
    graph_ops: dict[str, int]
    python_names: list[str] = []
    python_function_names: list[str] = []
    side_effect: str | None = None
    """What Python that it calls back visibly changes outside of itself; the end of a sentence."""
    trace_count: int | None = None
    trace_ms: float | None = None


class Operation(Record):
    """One operation of the input pipeline: what was written, and what it cost."""

    id: str
    kind: str
    name: str | None
    file: str | None
    line: int | None
    code: str | None = None
    """The source line, where it could be read."""
    parent_ids: list[str]
    """The operations that this one reads from."""
    elements: float | None
    """Elements per step."""
    self_ms_per_step: float | None
    """Wall time in this operation alone, summed over its parallel calls."""
    cpu_ms_per_step: float | None
    """CPU time, where the trace tells it."""
    bytes_per_element: float | None
    parallelism: int | None
    autotuned: bool | None
    buffered_elements: float | None
    buffer_size: int | None
    inserted_by_tensorflow: bool
    fused_from: list[str] = []
    """Ids of the operations that TensorFlow fused into this one."""
    fused_into: str | None = None
    """The operation that TensorFlow fused this one into; its cost is counted there."""
    removed_by_tensorflow: bool = False
    parameters: dict[str, Scalar] = {}
    function: OperationFunction | None = None
    cardinality: int | None = None
    element_bytes: int | None = None
    made_by_framework: bool = False
    inside_function_of: str | None = None
    iterator_name: str | None = None
    """TensorFlow's name for the iterator that ran: `MapAndBatch`, `ParallelMapV2`, ..."""
    latency_ms_per_step: float | None = None
    """Self time divided by the calls in flight: what the operation adds to a batch's delay."""


class Pipeline(Record):
    ops: list[Operation]
    """In the order of the data: sources first."""
    bottleneck_op_id: str | None
    options: dict[str, Scalar] = {}
    autotune_enabled: bool = True
    missing: str | None = None


class HotLine(Record):
    file: str
    line: int
    function: str
    percent: float
    """Share of the stack samples in which this line of the thread was running."""
    thread: str


class GpuUse(Record):
    name: str
    utilisation_percent: float | None
    memory_used_bytes: int | None
    memory_total_bytes: int | None


class Host(Record):
    cpu_percent: float
    """Of the CPUs that the process may use."""
    cores_busy: float
    cores_allowed: float
    threads: dict[str, float]
    """Percent of one core by pool: `tf_data`, `eigen`, `python_main`, `python_other`, `others`."""
    rss_bytes: int
    rss_peak_bytes: int | None = None
    available_bytes: int | None = None
    page_cache_bytes: int | None = None
    io_wait_percent: float | None
    read_bytes_per_s: float | None
    context_switches_per_s: float | None = None
    involuntary_switches_per_s: float | None = None
    hot_python: list[HotLine]
    lock_percent: float | None = None
    """Share of the time in which a thread that woke had to wait for the interpreter lock."""
    python_source_cpu_ms_per_step: float | None = None
    """CPU time per step of Python threads other than the training loop's."""
    gpus: list[GpuUse] = []
    samples: int = 0
    missing: str | None = None


class HostSample(Record):
    """One reading of the host sampler; the rows of host.csv."""

    at_ms: float
    window: str
    cpu_percent: float
    rss_bytes: int
    available_bytes: int | None
    io_wait_percent: float | None
    read_bytes_per_s: float | None
    pools_percent: dict[str, float]
    gpu_percent: float | None = None


class Embedding(Record):
    layer: str
    rows: int
    dim: int
    dtype: str
    table_bytes: int
    slot_bytes: int | None
    gradient: Literal["sparse", "dense"] | None
    update: Literal["sparse", "dense"] | None
    rows_touched_per_step: int | None
    trainable: bool = True
    missing: str | None = None


class Finding(Record):
    """What one rule says of this run."""

    rule: str
    title: str
    status: FindingStatus
    severity: FindingSeverity
    subject: FindingSubject = "speed"
    file: str | None = None
    line: int | None = None
    op_id: str | None = None
    evidence: dict[str, Scalar] = {}
    """The numbers it rests on; units are in the names."""
    advice: str
    effect_on_results: EffectOnResults | None = None
    predicted_speedup: float | None = None
    speedup_at_most: float | None = None
    """Where nothing is predicted: the step over the step without the classes of its time that the
    advice could free, so no prediction but a limit."""
    edit: Edit | None = None
    """What the advice would change, in a form that a trial can apply."""
    trial: Trial = NOT_TRIED
    needs_first: str | None = None
    """A rule whose finding must be dealt with before this one."""

    @property
    def about_results(self) -> bool:
        """Whether it is about what the training learns, so that a trial only tells its price."""
        return self.subject in ("correctness", "quality")

    @property
    def dropped(self) -> bool:
        """Whether a trial showed that its advice buys nothing, and that is all it was about."""
        return self.trial.state == "refuted" and not self.about_results


class Callback(Record):
    name: str
    file: str | None
    line: int | None
    batch_hooks: list[str]


class KerasUse(Record):
    model: str
    optimizer: str | None
    loss: str | None
    run_eagerly: bool
    jit_compile: bool | None
    steps_per_execution: int
    epochs: int | None
    steps_per_epoch: int | None
    data_adapter: str | None
    source: str | None
    source_file: str | None = None
    source_line: int | None = None
    workers: int | None
    use_multiprocessing: bool | None
    callbacks: list[Callback] = []
    parameter_count: int | None = None


class LoopTime(Record):
    """Where a loop's time goes from the end of its first step on; the parts add up to the whole.

    What pipediag took is not in it: trials, and steps under the profiler or on a repeated batch.
    """

    basis: Literal["measured", "projected"]
    """As far as the loop was seen, or as the script plans it."""
    total_s: float
    steps_s: float
    """Steps times `step_ms`."""
    step_ms: float
    """Mean step, which holds no wait for an epoch's first batch here."""
    first_batches_s: float
    """Waiting for the first batch of each epoch after the first."""
    between_epochs_s: float
    """Between the last step of an epoch and the request for the next batch: validation, callbacks,
    checkpoints, and whatever else the script does there."""
    unexplained_s: float
    """The rest as far as it was seen: steps that took longer than the mean, or work between steps
    that no measured step had."""
    epoch_ends_seen: int
    first_batch_ms: float | None
    """Mean wait for an epoch's first batch; None where no epoch's end was seen."""


class Loop(Record):
    """A place in the script that consumes batches."""

    id: str
    kind: Literal["keras", "eager", "tf_function", "in_graph", "distributed"]
    role: Literal[
        "training", "validation", "evaluate", "predict", "adapt", "preview", "preparation", "other"
    ]
    role_reason: str
    diagnosed: bool
    file: str | None
    line: int | None
    function: str | None
    steps: int
    elapsed_s: float
    """From the first request to the last hand-over, without what pipediag took."""
    median_step_ms: float | None = None
    projected_s: float | None = None
    """What the whole loop would take, its epochs' ends as far as one was seen, where the script
    says how long it runs."""
    time: LoopTime | None = None
    time_missing: str | None = None
    batch_size: int | None = None
    planned_steps: int | None = None
    updates_variables: bool = False
    iterators: int = 1
    replicas: int = 1
    keras: KerasUse | None = None
    step_functions: list[str] = []
    element_spec: str | None = None
    untried: str | None = None
    """Why no trial could be made in it, where that is not the whole run's reason."""
    beside: str | None = None
    """Id of another training loop, which another thread ran at the same time."""


class Window(Record):
    kind: Literal["warmup", "baseline", "stacks", "profile", "repeat"]
    loop_id: str
    start_ms: float
    """Since the script was started."""
    duration_ms: float
    steps: int
    complete: bool
    reason: str | None = None


class StepRow(Record):
    """One step; the rows of steps.csv."""

    index: int
    window: str
    block: int
    start_ms: float
    duration_ms: float
    input_wait_ms: float | None
    batches: int


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


class Session(Record):
    schema_version: str
    pipediag_version: str
    created_at: str
    """ISO 8601, UTC."""
    script: Script
    environment: Environment
    verdict: Verdict
    steps: Steps | None
    steps_missing: str | None = None
    breakdown: dict[StepClass, Share] | None
    breakdown_missing: str | None = None
    input_wait: InputWait | None = None
    perturbation: Perturbation | None
    perturbation_missing: str | None = None
    differential: Differential | None = None
    differential_missing: str | None = None
    ceiling: Ceiling | None
    ceiling_missing: str | None = None
    pipeline: Pipeline | None
    pipeline_missing: str | None = None
    devices: list[DeviceActivity] = []
    host: Host | None
    host_missing: str | None = None
    embeddings: list[Embedding] = []
    findings: list[Finding] = []
    """In the order in which to deal with them, which is decided once, when the run is concluded."""
    combined: Combined | None = None
    combined_missing: str | None = None
    pipeline_alone: PipelineAlone | None = None
    pipeline_alone_missing: str | None = None
    trials: TrialRun | None = None
    trials_missing: str | None = None
    loops: list[Loop] = []
    windows: list[Window] = []
    step_rows: list[StepRow] = []
    host_samples: list[HostSample] = []
    other_uses: list[OtherUse] = []
    other_processes: OtherProcesses | None = None
    profiler_conflicts: list[ProfilerConflict] = []
    notes: list[str] = []
    wall_s: float
    """From the start of the script to its end or stop."""

    def operation(self, op_id: str | None) -> Operation | None:
        """The pipeline operation with that id, or None."""
        if self.pipeline is None:
            return None
        return next((op for op in self.pipeline.ops if op.id == op_id), None)

    def diagnosed_loop(self) -> Loop | None:
        """The loop that the verdict speaks of, or None."""
        return next((loop for loop in self.loops if loop.diagnosed), None)
