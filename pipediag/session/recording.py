"""What the child process writes down while the script runs: facts only, nothing computed.

Plain dataclasses, because they are made inside the user's process, where nothing may be imported
that the script would not have imported. Times are `time.monotonic_ns()`, which parent and child
share on one machine, so that the parent can lay its host samples over the child's windows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pipediag.session.recorded_tables import RecordedSoftmax, RecordedVariable
from pipediag.session.recorded_widening import RecordedWidening
from pipediag.vocabulary import LoopKind, LoopRole, RecordedOutcome, Scalar, WindowKind

RECORDING_FORMAT = 1


@dataclass
class RecordedFunction:
    """The Python function given to a tf.data operation, and the graph it was traced into."""

    name: str
    file: str | None
    line: int | None
    stateful: bool
    """True when tf.data regards the traced function as stateful, and so keeps its map serial."""
    graph_ops: dict[str, int]
    """Number of graph operations by type, nested functions included."""
    python_names: list[str]
    """Global and attribute names that the function's bytecode mentions, such as `sleep`."""
    python_function_names: list[str] = field(default_factory=list)
    """`file:line name` of each Python function that it calls back (py_function, numpy_function)."""
    side_effect: str | None = None
    """What one of those visibly changes outside of itself, as the end of a sentence."""
    trace_count: int | None = None
    """How often the Python body ran. The rate of elements says how often it did not."""
    trace_ms: float | None = None
    """Wall time that tracing the function took, once, in milliseconds."""
    widenings: list[RecordedWidening] = field(default_factory=list)
    constant_bytes: int | None = None
    """Of the constants in its graph, nested functions included."""


@dataclass
class RecordedOperation:
    """One public tf.data call: what was called, from which line, with which parameters."""

    id: str
    kind: str
    """The method or class as users write it: `map`, `batch`, `TFRecordDataset`, ..."""
    name: str
    """The `name=` given to TensorFlow, ours or the user's; it comes back in the trace. Empty where
    the call takes none."""
    file: str | None
    line: int | None
    parent_ids: list[str] = field(default_factory=list)
    """Operations whose elements this one consumes."""
    parameters: dict[str, Scalar] = field(default_factory=dict)
    """Buffer sizes, batch sizes, parallel calls, file counts; what was left out is not here."""
    function: RecordedFunction | None = None
    cardinality: int | None = None
    """Elements in one pass; None when unknown, -1 when infinite."""
    element_bytes: int | None = None
    """Bytes of one element where the shapes are static."""
    made_by_framework: bool = False
    """True when Keras or TensorFlow made the call (an array adapter, an inner dataset)."""
    helper: str | None = None
    """The library's function that made the call for the user, who called it for a dataset:
    `make_csv_dataset`, `image_dataset_from_directory`, ..."""
    inside_function_of: str | None = None
    """The operation whose function made this dataset (`flat_map`, `interleave`)."""

    @property
    def calls_python(self) -> bool:
        """Whether elements pass through Python while the pipeline runs, not only while traced."""
        if self.kind == "from_generator":
            return True
        return self.function is not None and bool(self.function.python_function_names)


@dataclass
class RecordedCallback:
    """A Keras callback that the user passed to `fit`."""

    name: str
    file: str | None
    line: int | None
    batch_hooks: list[str]
    """The per-batch methods that it overrides."""


@dataclass
class RecordedInputLayer:
    """A layer of a Keras model that prepares inputs: looks up strings, encodes, normalises."""

    name: str
    kind: str
    """Its class."""
    behind_input: bool
    """Whether it sees nothing but inputs, as they are or prepared by such a layer."""
    handed_on: bool
    """Whether what it gives goes on to the rest of the model."""


@dataclass
class RecordedKeras:
    """How the model of a Keras loop was built and compiled."""

    model: str
    optimizer: str | None
    loss: str | None
    run_eagerly: bool
    jit_compile: bool | None
    steps_per_execution: int
    epochs: int | None
    steps_per_epoch: int | None
    data_adapter: str | None
    """Class of the Keras adapter: TFDatasetAdapter, ArrayDataAdapter, PyDatasetAdapter, ..."""
    source: str | None
    """Class of the object that was passed as `x`."""
    source_file: str | None
    source_line: int | None
    workers: int | None
    use_multiprocessing: bool | None
    callbacks: list[RecordedCallback] = field(default_factory=list)
    """The user's own."""
    deciding_callbacks: list[str] = field(default_factory=list)
    """Classes of Keras' own that end the training, or change its learning rate, by a metric."""
    parameter_count: int | None = None
    variable_bytes: int | None = None
    """Of the model."""
    trainable_bytes: int | None = None
    """Of those that are trained, which have gradients."""
    optimizer_bytes: int | None = None
    """Of the optimizer's own variables."""
    optimizer_settings: dict[str, Scalar] = field(default_factory=dict)
    """Those of its arguments that are set and pass over whole variables, or scale gradients."""
    input_layers: list[RecordedInputLayer] = field(default_factory=list)
    unsplit: str | None = None
    """Why the model can't be taken apart behind them, as a sentence."""


@dataclass
class RecordedSeam:
    """Between two runs of steps, such as epochs: from one's last step to the next one's first."""

    start_ns: int
    """When the last step was over."""
    asked_ns: int
    """When the next batch was asked for, or a step was called that asks for it itself."""
    handed_ns: int | None
    """When it was there; None where the step asks for it, which no clock of ours sees."""
    first_step_ns: int | None = None
    """Duration of that step, the wait for its batch included; None where `handed_ns` is known."""
    making_ns: int = 0
    """Of the time until it was asked for, what making the next iterators took."""


@dataclass
class RecordedEvaluation:
    """Steps of a loop that evaluates, one after the other, its first ones left out."""

    batches: int
    elapsed_ns: int
    gaps_us: list[int] = field(default_factory=list)
    """tf.data's time between two get_next calls, of the last of these batches, oldest first."""


@dataclass
class RecordedNestedCall:
    """A call of Keras' `predict` or `evaluate` within the steps of a loop."""

    what: str
    file: str | None
    line: int | None
    count: int = 0
    elapsed_ns: int = 0


@dataclass
class RecordedLoop:
    """A place in the script that consumes batches."""

    id: str
    kind: LoopKind
    role: LoopRole
    role_reason: str
    file: str | None
    line: int | None
    function: str | None
    root_op_id: str | None
    iterators: int
    steps: int
    """Batches handed over, in all its iterators."""
    elapsed_ns: int
    """In steps, from one hand-over to the next; seams between epochs are not in it."""
    updates_variables: bool
    started_ns: int
    batch_size: int | None = None
    batches_per_call: int = 1
    planned_steps: int | None = None
    """Steps that the loop would run if left alone, where the script says so."""
    planned_rounds: int | None = None
    """How often the script comes to it, by the loops of its source around it, where they tell."""
    shapes_vary: bool = False
    """Whether a function of its step was traced again for batches of another length."""
    only_reads: bool = False
    """Whether, by its source, no model is called for what it hands out."""
    first_step_ns: int | None = None
    fill_ns: int | None = None
    """Time in which the first batch was waited for: the pipeline's start and its shuffle fill."""
    trace_count: int = 0
    """How often a training function was traced while the loop ran."""
    retrace_steps: list[int] = field(default_factory=list)
    """Step numbers at which a training function was traced again."""
    seams: int = 0
    """Ends of epochs and validations seen between two steps; such intervals are no steps."""
    epoch_seams: list[RecordedSeam] = field(default_factory=list)
    """The first of them, in order, with their times."""
    asked_ns: int | None = None
    """When the first batch was asked for."""
    warm_ns: int | None = None
    """When the first step was over."""
    last_ns: int | None = None
    """The last hand-over."""
    warm_steps: int = 0
    """Batches whose step lies between `warm_ns` and `last_ns`."""
    set_aside_ns: int = 0
    """Between `warm_ns` and `last_ns`, what the script would not have spent: reading the model,
    starting and stopping the profiler, trials."""
    element_spec: str | None = None
    replicas: int = 1
    keras: RecordedKeras | None = None
    dataset_options: dict[str, Scalar] = field(default_factory=dict)
    autotune_enabled: bool = True
    step_functions: list[str] = field(default_factory=list)
    """The tf.functions that run within a step, as `file:line name`."""
    vocabulary_operations: list[str] = field(default_factory=list)
    """Operations of a step on a number for each of many classes: logits, their loss, and back."""
    constant_bytes: int | None = None
    """Of the constants in the graph of its step; None where that was not read."""
    tables_missing: str | None = None
    """Why the step's embedding tables are not known."""
    untried: str | None = None
    """Why no trial could be made in it, as a sentence."""
    beside: str | None = None
    """Id of another training loop that another thread ran at the same time."""
    evaluation: RecordedEvaluation | None = None
    """Of a loop that evaluates, in its first evaluation that is long enough."""
    strategy: str | None = None
    """Class of what distributes its batches to the replicas."""
    softmaxes: list[RecordedSoftmax] = field(default_factory=list)
    from_python: bool = False
    """Whether Python hands each step its batch, as with `train_on_batch`: no tf.data iterator."""
    nested: list[RecordedNestedCall] = field(default_factory=list)
    """What Keras does in each of its steps beside training."""


@dataclass
class RecordedBlock:
    """Consecutive steps without a seam, with tf.data's own gap times for them.

    Lists run in parallel, one entry a step: `starts_ns[i]` is when step i began (its batch was
    asked for or handed over), `durations_ns[i]` lasts to the next step's begin.
    """

    starts_ns: list[int] = field(default_factory=list)
    durations_ns: list[int] = field(default_factory=list)
    waits_ns: list[int] = field(default_factory=list)
    """Time inside the iterator's `next`, where the loop calls it from Python; empty elsewhere."""
    gaps_us: list[int] = field(default_factory=list)
    """tf.data's time between two get_next calls, for the steps of this block, oldest first."""


@dataclass
class RecordedWindow:
    kind: WindowKind
    loop_id: str
    start_ns: int
    end_ns: int
    blocks: list[RecordedBlock] = field(default_factory=list)
    complete: bool = True
    reason: str | None = None
    """Why the window ended where it did, if not as planned."""
    stable: bool | None = None
    """Warm-up only: whether the step time had settled when the window ended."""
    python_thread_cpu_ns: dict[str, int] = field(default_factory=dict)
    """CPU time that each Python thread took in the window, by `name#native id`."""
    trace_directory: str | None = None


@dataclass
class ModelNode:
    """A node of tf.data's model proto. Times are nanoseconds of wall time."""

    id: int
    name: str
    inputs: list[int]
    num_elements: int
    processing_time_ns: int
    bytes_produced: int
    bytes_consumed: int
    buffered_elements: int
    buffered_bytes: int
    autotune: bool
    parallelism: int | None = None
    parallelism_tunable: bool | None = None
    buffer_size: int | None = None
    buffer_size_tunable: bool | None = None


@dataclass
class ModelSnapshot:
    """tf.data's model of the training iterator at one moment; two of them give rates."""

    loop_id: str
    iterator: int
    """Ordinal of the iterator in its loop: counters restart with each."""
    at_ns: int
    steps: int
    """Steps of the loop so far."""
    iterator_steps: int
    """Batches that this iterator has handed over so far."""
    nodes: list[ModelNode]
    output_id: int


@dataclass
class StackLine:
    file: str
    line: int
    function: str
    thread: str
    """`main`, `source` (a generator, a PyDataset or a py_function) or `other`."""
    samples: int
    """Samples in which this was the innermost line of user code on a running thread."""


@dataclass
class RecordedStacks:
    """Python stacks sampled beside the training loop, and the sampler's waits for the lock."""

    loop_id: str
    samples: int
    interval_ns: int
    elapsed_ns: int
    """The time in which the waits for the lock were taken, before stacks were sampled."""
    lock_wait_ns: int
    """Time by which the sampler woke late because another thread held the interpreter lock."""
    lines: list[StackLine] = field(default_factory=list)
    thread_samples: dict[str, int] = field(default_factory=dict)
    """Samples in which each kind of thread was seen running Python code."""
    callbacks_ns: dict[str, int] = field(default_factory=dict)
    """What each class of Keras callbacks took after batches meanwhile, by the clock."""
    steps_ns: int = 0
    """What the steps took, these callbacks among them."""


@dataclass
class RecordedDevice:
    name: str
    kind: str


@dataclass
class RecordedEnvironment:
    python: str
    executable: str
    tensorflow: str | None = None
    keras: str | None = None
    keras_backend: str | None = None
    jax: str | None = None
    numpy: str | None = None
    cuda_build: bool | None = None
    """Whether this TensorFlow was built with CUDA or ROCm; None when it was not imported."""
    devices: list[RecordedDevice] = field(default_factory=list)
    cuda_visible_devices: str | None = None
    logical_cpus_configured: bool = False
    run_functions_eagerly: bool = False
    tf_data_debug_mode: bool = False
    legacy_keras: bool = False
    mixed_precision: str | None = None
    framework_messages: list[str] = field(default_factory=list)
    """Lines that TensorFlow itself logged about missing GPU libraries."""


@dataclass
class RecordedOtherUse:
    """Something seen that is not a training loop, for the sentence that says what was seen."""

    what: str
    file: str | None
    line: int | None
    count: int


@dataclass
class RecordedProfilerConflict:
    """The script's own profiler: it keeps its right, ours waits or gives up."""

    what: str
    file: str | None
    line: int | None
    consequence: str


@dataclass
class Recording:
    format: int
    pid: int
    started_ns: int
    outcome: RecordedOutcome
    exit_status: int | None
    """The script's own exit status; None while it runs or when it was stopped."""
    ended_ns: int | None
    stop_reason: str | None
    error: str | None
    """Type and message of the exception that ended the script."""
    environment: RecordedEnvironment
    operations: list[RecordedOperation] = field(default_factory=list)
    loops: list[RecordedLoop] = field(default_factory=list)
    windows: list[RecordedWindow] = field(default_factory=list)
    snapshots: list[ModelSnapshot] = field(default_factory=list)
    stacks: list[RecordedStacks] = field(default_factory=list)
    variables: list[RecordedVariable] = field(default_factory=list)
    other_uses: list[RecordedOtherUse] = field(default_factory=list)
    profiler_conflicts: list[RecordedProfilerConflict] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What went otherwise than planned, in sentences for the report."""

    def table(self, like: RecordedVariable) -> RecordedVariable:
        """What is recorded of that table; it is entered where it is new, and told anew until a
        step that uses it was read."""
        found = next((one for one in self.variables if one.is_of(like)), None)
        if found is None:
            self.variables.append(like)
            return like
        if found.use is None:
            found.tell_anew(like)
        return found

    def upstream(self, op_id: str | None) -> Iterator[RecordedOperation]:
        """The operation with that id and what it reads from, nearest first, along first inputs."""
        operations = {operation.id: operation for operation in self.operations}
        while op_id is not None and (operation := operations.get(op_id)) is not None:
            yield operation
            op_id = operation.parent_ids[0] if operation.parent_ids else None
