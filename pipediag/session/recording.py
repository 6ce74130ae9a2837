"""Records that the child process writes while the script runs: facts only, nothing computed.

Plain dataclasses, because they are made inside the user's process. Times are `time.monotonic_ns()`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pipediag.session.recorded_loops import RecordedLoop, RecordedVariable, TimedPairs
from pipediag.vocabulary import RecordedOutcome, Scalar, WindowKind


@dataclass
class Prediction(TimedPairs):
    """One line that calls `predict`, a model itself, or a metric, on one batch after another."""

    file: str
    line: int
    rows: int
    """Rows of the data in the last call that was timed."""
    calls: int = 0
    """All calls of that line so far, where it calls a model itself."""
    model: str | None = None
    """The code that names that model or metric, which is called eagerly: `self.model`."""
    method: str | None = None
    """The method that is called, if not the model itself."""
    traced_ms: float = 0.0
    """Time to trace it once, as a run with a `tf.function` does."""
    objects: int = 1
    """Models or metrics that the line called while it was timed: each is traced."""
    made_again: bool = False
    """True if the line calls another one in each epoch."""
    loop_id: str | None = None
    """The loop whose batch it is then called on; None between its epochs, and after a training."""
    began_ns: int = 0
    """Time of its first call."""
    after_training: bool = False
    """True if that was in no `fit`, and no step was trained since."""


@dataclass
class ModelNode:
    """A node of tf.data's model proto. Times are nanoseconds of wall time."""

    id: int
    name: str
    inputs: list[int]
    num_elements: int
    processing_time_ns: int
    bytes_produced: int
    buffered_elements: int
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
    iterator_steps: int
    """Batches that this iterator has handed over so far."""
    nodes: list[ModelNode]
    output_id: int


@dataclass
class RecordedBlock:
    """Consecutive steps without a boundary, one entry each, that last to the next one's begin."""

    starts_ns: list[int] = field(default_factory=list)
    durations_ns: list[int] = field(default_factory=list)
    waits_ns: list[int] = field(default_factory=list)
    """Time inside the iterator's `next`, where the loop calls it from Python; empty elsewhere."""
    gaps_us: list[int] = field(default_factory=list)
    """tf.data's time between two get_next calls, for the steps of this block, oldest first."""
    last_gap_unknown: bool = False
    """True if the last step's last gap is not among them: tf.data knows of it with the next one."""


@dataclass
class RecordedPythonCalls:
    """Calls of one Python function of a pipeline that began while steps of the window ran."""

    token: str
    """Token by which TensorFlow's registry knows the function."""
    calls: int
    wall_ns: int
    cpu_ns: int
    """CPU time of the threads that called it, without that of threads which it used itself."""


@dataclass
class RecordedWindow:
    kind: WindowKind
    loop_id: str
    start_ns: int
    end_ns: int
    blocks: list[RecordedBlock] = field(default_factory=list)
    complete: bool = True
    reason: str | None = None
    """Reason why the window ended where it did, if not as planned."""
    stable: bool | None = None
    """Warm-up only: whether the step time had settled when the window ended."""
    python_threads: list[int] = field(default_factory=list)
    """Native ids of the threads that Python made, as the stacks were sampled."""
    trace_directory: str | None = None
    python_calls: list[RecordedPythonCalls] | None = None
    """Baseline only: the Python functions of pipelines; None where they were not measured."""


@dataclass
class StackLine:
    file: str
    line: int
    function: str
    thread: str
    """`main`, `source` (a generator, a PyDataset or a py_function) or `other`."""
    samples: int
    """Samples in which this was the innermost line of user code on a running thread."""
    function_line: int | None = None


@dataclass
class RecordedStacks:
    """Python stacks sampled while the steps of the training loop run."""

    loop_id: str
    samples: int
    lines: list[StackLine] = field(default_factory=list)
    callbacks_ns: dict[str, int] = field(default_factory=dict)
    """Time that each class of Keras callbacks took after batches during the sampling."""
    steps_ns: int = 0
    """Time that the steps took, these callbacks among them."""


NAME_BEGINS = "pipediag_op"
"""Beginning of the names that operations are given, where the user gave none."""


EARLIER = "earlier dataset"
"""Kind of an operation that stands for a dataset from before us, with all that it reads from."""


@dataclass
class RowOperation:
    """An operation of a map's function that is written otherwise for a batch of its elements."""

    op: str
    """Its type in the graph, such as `Sum`."""
    calls: list[tuple[str, int]]
    """File and line of each call from the map's function down to the operation."""
    rank: int | None = None
    """Dimensions of what it takes of one element; None where they are not known."""
    operand: int | None = None
    """Place of the value, of two, that has less dimensions than the other: 0 or 1."""
    count: int = 1
    """Number of such operations that these lines make."""


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
    python_calls: list[str] = field(default_factory=list)
    """Full names of the builtins and of modules' functions in its code, such as `time.sleep`."""
    python_function_names: list[str] = field(default_factory=list)
    """`file:line name` of each Python function that it calls back (py_function, numpy_function)."""
    python_tokens: list[str] = field(default_factory=list)
    """Tokens by which TensorFlow's registry knows each of them, and those of nested datasets."""
    side_effect: str | None = None
    """Visible change that one of those makes outside of itself, as the end of a sentence."""

    constant_bytes: int | None = None
    """Bytes of the constants in its graph, nested functions included."""
    returns_constant: bool = False
    """True if a part of its result is the same for each element: the label of `(row, 1.0)`."""
    one_hot_widths: list[int] = field(default_factory=list)
    """Last dimensions of the one-hot rows that it returns, where these are static."""
    padded_features: int = 0
    """Features of parsed examples whose length varies: of several, it is that of the longest."""
    row_operations: list[RowOperation] = field(default_factory=list)


@dataclass
class RecordedOperation:
    """One public tf.data call: what was called, from which line, with which parameters."""

    id: str
    kind: str
    """The method or class as users write it: `map`, `batch`, `TFRecordDataset`, ..."""
    name: str | None
    """The `name=` given to TensorFlow, which comes back in the trace; empty where it takes none."""
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
    """The library's function that the user called for a dataset: `make_csv_dataset`, ..."""
    inside_function_of: str | None = None
    """The operation whose function made this dataset (`flat_map`, `interleave`)."""

    @property
    def calls_python(self) -> bool:
        """Return True if elements pass through Python while the pipeline runs."""
        if self.kind == "from_generator":
            return True
        return self.function is not None and bool(self.function.python_function_names)


@dataclass
class Device:
    name: str
    kind: str


@dataclass
class RecordedEnvironment:
    """Facts about Python and the frameworks in the script's process."""

    python: str
    tensorflow: str | None = None
    keras: str | None = None
    keras_backend: str | None = None
    jax: str | None = None
    numpy: str | None = None
    cuda_build: bool | None = None
    """True if this TensorFlow was built with CUDA or ROCm; None when it was not imported."""
    devices: list[Device] = field(default_factory=list)
    cuda_visible_devices: str | None = None
    run_functions_eagerly: bool = False
    tf_data_debug_mode: bool = False
    legacy_keras: bool = False
    mixed_precision: str | None = None


@dataclass
class OtherUse:
    """Something seen that is not a training loop, for the sentence that says what was seen."""

    what: str
    file: str | None
    line: int | None
    count: int


@dataclass
class Recording:
    pid: int
    started_ns: int
    outcome: RecordedOutcome
    environment: RecordedEnvironment
    operations: list[RecordedOperation] = field(default_factory=list)
    loops: list[RecordedLoop] = field(default_factory=list)
    windows: list[RecordedWindow] = field(default_factory=list)
    snapshots: list[ModelSnapshot] = field(default_factory=list)
    stacks: list[RecordedStacks] = field(default_factory=list)
    variables: list[RecordedVariable] = field(default_factory=list)
    predictions: list[Prediction] = field(default_factory=list)
    other_uses: list[OtherUse] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Things that did not go as planned, in sentences for the report."""

    def table(self, like: RecordedVariable) -> RecordedVariable:
        """Return the record of that table; enter a new one, update one whose use was not read."""
        found = next((one for one in self.variables if one.is_of(like)), None)
        if found is None:
            self.variables.append(like)
            return like
        if found.use is None:
            found.tell_anew(like)
        return found

    def upstream(self, op_id: str | None) -> Iterator[RecordedOperation]:
        """Yield the operation of that id and those it reads from, along first inputs."""
        operations = {operation.id: operation for operation in self.operations}
        while op_id is not None and (operation := operations.get(op_id)) is not None:
            yield operation
            op_id = operation.parent_ids[0] if operation.parent_ids else None
