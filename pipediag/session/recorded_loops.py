"""Records of the child process about places in the script that consume batches."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipediag.vocabulary import LoopKind, LoopRole, Scalar, SparseOrDense

FEWEST_PAIRS = 5
"""Pairs for an interval: as many as a trial has rounds before its first decision."""


@dataclass(kw_only=True)
class TimedPairs:
    """Times of what the script does, and of the same made otherwise from the same values."""

    own_ms: list[float] = field(default_factory=list)
    other_ms: list[float] = field(default_factory=list)
    lacking: str | None = None
    """Reason why it was not timed, or not to the end, as a sentence."""

    @property
    def is_timed(self) -> bool:
        """Return True if there are enough pairs for an interval."""
        return self.lacking is None and len(self.other_ms) >= FEWEST_PAIRS


@dataclass
class Callback:
    """A Keras callback that the user passed to `fit`."""

    name: str
    file: str | None
    line: int | None
    batch_hooks: list[str]
    """The per-batch methods that it overrides."""
    step_percent: float | None = None
    """Share of the steps that it takes after batches, by a clock; None where that did not run."""


@dataclass
class InputLayer:
    """A layer of a Keras model that prepares inputs: looks up strings, encodes, normalises."""

    name: str
    kind: str
    behind_input: bool
    """True if it sees nothing but inputs, as they are or prepared by such a layer."""
    handed_on: bool
    """True if what it gives goes on to the rest of the model."""


@dataclass
class KerasUse:
    """Model of a Keras loop, as it was built and compiled."""

    model: str
    optimizer: str | None
    run_eagerly: bool
    jit_compile: bool | None
    steps_per_execution: int
    epochs: int | None
    steps_per_epoch: int | None
    data_adapter: str | None
    """Class of the Keras adapter: TFDatasetAdapter, ArrayDataAdapter, PyDatasetAdapter, ..."""
    source: str | None
    """Class of the object that was passed as `x`."""
    source_file: str | None = None
    source_line: int | None = None
    workers: int | None = None
    use_multiprocessing: bool | None = None
    callbacks: list[Callback] = field(default_factory=list)
    deciding_callbacks: list[str] = field(default_factory=list)
    """Classes of Keras' own that end the training, set its rate, or keep a model, by a metric."""
    variable_bytes: int | None = None
    trainable_bytes: int | None = None
    """Bytes of the variables that are trained, which have gradients."""
    optimizer_bytes: int | None = None
    """Bytes of the optimizer's own variables."""
    optimizer_settings: dict[str, Scalar] = field(default_factory=dict)
    """Arguments that make the optimizer pass over whole variables or scale gradients."""
    input_layers: list[InputLayer] = field(default_factory=list)
    inseparable: bool = False
    """True if the model is of a class of the script's, under a strategy, or without a graph."""
    fixed_lengths: dict[str, int] = field(default_factory=dict)
    """Lengths of the rows that inputs of the model demand, by their names."""
    legacy: bool | None = None
    """True if the model is one of the package `tf_keras`."""
    compile_file: str | None = None
    compile_line: int | None = None
    """Line at which the script last compiled the model."""


@dataclass(kw_only=True)
class TableUse:
    """Use of an embedding table by a traced step, from its graph; None where that was not read."""

    variable: str | None = None
    lookups: int | None = None
    """Places in the step that look it up, each by other ids."""
    gradient: SparseOrDense | None
    """`sparse`: of the rows that were looked up; None where the step does not write the table."""
    slot_bytes: int | None
    """Bytes of the optimizer's variables for it."""
    temporary_bytes: int | None = None
    """Most memory at one time of tensors of the table's size that a step makes beside the
    variables, estimated from the graph. XLA makes fewer of them."""
    whole_table_operations: dict[str, int] = field(default_factory=dict)
    """Operations of the graph that make such a tensor, by type."""


@dataclass(kw_only=True)
class RecordedTableUse(TableUse):
    """Use of a table as the child records it, with the operations whose time is of interest."""

    writes_whole: bool
    copies: int = 0
    """Times that a step copies the whole table to look rows up in it."""
    pass_operations: list[str] = field(default_factory=list)
    """Operations that pass over all of the table or its slots, with the calls that they are in."""
    copy_operations: list[str] = field(default_factory=list)
    """Operations that read or cast all of it for a lookup."""


@dataclass(kw_only=True)
class EmbeddingIds:
    """The ids that a table was looked up by in a few batches of the run, and no others."""

    lookups: int
    """Ids in all these batches together, of all replicas."""
    zeros_within: int = 0
    """Zeros with other ids before and behind them in one row of ids, where no padding stands."""
    outside: int = 0
    """Lookups below 0 or past the last row."""
    outside_examples: list[tuple[int, int]] = field(default_factory=list)
    """The first of them: batch and id."""
    cast_through: str | None = None
    """The narrowest float type that the ids pass before the lookup."""
    incomplete: str | None = None
    """Reason why some lookups are not among these: of random negatives no batch has the ids."""
    batches: int
    first_batch: int
    """The number of the first of them in the loop, counted from 1."""
    last_batch: int
    unique_per_step: float
    """Mean number of different ids in a batch, which several replicas share."""
    zero_percent: float | None = None
    """Share of lookups by id 0."""


@dataclass
class Softmax:
    """A loss of a traced step that takes a softmax over all rows of a weight."""

    weights: str
    classes: int
    features: int
    """Numbers that each class is multiplied with."""
    labels: SparseOrDense
    """`sparse`: a label is the class itself; `dense`: a number for each class."""


@dataclass
class TableFacts:
    """Facts of the model about an embedding table."""

    layer: str
    """The layer that has it, or the variable's own name."""
    rows: int
    dim: int
    dtype: str
    trainable: bool = True
    file: str | None = None
    line: int | None = None
    """Line at which the script made the layer."""
    mask_zero: bool = False
    regularizer: str | None = None
    """Class of the one that a layer has over the whole table."""
    constraint: str | None = None
    ids: EmbeddingIds | None = None
    ids_missing: str | None = None


@dataclass
class RecordedVariable(TableFacts):
    """An embedding table of a model that was trained."""

    path: str | None = None
    """Path of the variable, through the layers that it is in; None where only TensorFlow's name is
    known, which a model of one's own class gives to all of its tables."""
    loop_id: str | None = None
    use: RecordedTableUse | None = None
    use_missing: str | None = None

    def tell_anew(self, later: RecordedVariable) -> None:
        """Take over what may have changed since, as a table is frozen between two loops."""
        self.trainable, self.mask_zero = later.trainable, later.mask_zero
        self.regularizer, self.constraint = later.regularizer, later.constraint

    def is_of(self, other: RecordedVariable) -> bool:
        """Return True if both are of one table, judged by name and shape."""
        names = ("layer", "path", "rows", "dim", "dtype")
        return all(getattr(self, name) == getattr(other, name) for name in names)

    @property
    def variable(self) -> str | None:
        """Return its name, unique where the path is known; None where neither is known."""
        name = self.use.variable if self.use else None
        if self.path is None or (name is not None and name.removesuffix(":0") == self.path):
            return name
        return self.path


@dataclass
class RecordedBoundary:
    """Between two runs of steps, such as epochs: from one's last step to the next one's first."""

    start_ns: int
    """Time at which the last step was over."""
    asked_ns: int
    """Time at which the next batch was asked for, or a step was called that asks for it itself."""
    handed_ns: int | None
    """Time at which it was there; None where the step asks for it, which no clock of ours sees."""
    first_step_ns: int | None = None
    """Duration of that step, the wait for its batch included; None where `handed_ns` is known."""


@dataclass
class Evaluation:
    """Steps of a loop that evaluates, in a short look: its first ones are left out."""

    steps: int
    step_ms: float
    consumer_ms: float | None = None
    """The part that was not waiting for a batch, by tf.data's own clock."""


@dataclass
class NestedCall:
    """A call of Keras' `predict` or `evaluate` within the steps of a loop."""

    what: str
    file: str | None
    line: int | None
    count: int = 0
    elapsed_ns: int = 0
    percent: float = 0.0
    """Percent of the loop's steps, as the parent has them."""
    ms: float = 0.0


@dataclass
class EagerStep:
    """A function of the script's that computes gradients eagerly, for a step or a part of it."""

    function: str
    file: str
    line: int
    """Line at which its definition begins, with decorators."""
    lacking: str | None = None
    """Reason why a `tf.function` of it would not do the same, as a sentence."""


@dataclass
class GraphStep(TimedPairs):
    """A step that stands in the loop's body, made eagerly and once more as a `tf.function`."""

    file: str
    line: int
    """Line on which its tape is opened."""
    numbers: list[str] = field(default_factory=list)
    """Floats of Python that it reads and the loop sets, which the function is given as tensors."""
    relaxed: bool = True
    """False if a trace failed for all batches that may come, so that each shape has its own."""
    called_again: bool = False
    """True if the function around the loop may be called in a loop, and makes a trace each time."""
    traced_ms: float = 0.0
    """Milliseconds of a trace, its first call included."""
    shapes: int = 1
    """Shapes of its batches that were seen, where each has a trace."""
    traces: float = 1.0
    """Traces that it is expected to need, by how often each shape was seen."""


@dataclass
class LoopFacts:
    """Facts about a place in the script that consumes batches, as recorded."""

    id: str
    kind: LoopKind
    role: LoopRole
    role_reason: str
    file: str | None
    line: int | None
    function: str | None
    steps: int
    """Batches handed over, in all its iterators."""
    updates_variables: bool = False
    root_op_id: str | None = None
    """The operation that hands it its batches; None where it is none of tf.data's."""
    iterators: int = 1
    batch_size: int | None = None
    planned_steps: int | None = None
    """Steps that the loop would run if left alone, where the script says so."""
    epoch_steps: int | None = None
    """Steps of its first epoch, once its data has ended."""
    steps_given: int | None = None
    """Steps after which each evaluation stops, where the script says so (`validation_steps`)."""
    planned_rounds: int | None = None
    """Number of times that the script comes to its line, by the loops of its source around it."""
    shapes_vary: bool = False
    """True if a function of its step was traced again for batches of another length."""
    replicas: int = 1
    keras: KerasUse | None = None
    step_functions: list[str] = field(default_factory=list)
    """The tf.functions that run within a step, as `file:line name`."""
    eager_steps: list[EagerStep] = field(default_factory=list)
    """Functions of its eager steps; none where the loop's body, or a tf.function, makes them."""
    graph_step: GraphStep | None = None
    element_spec: str | None = None
    softmaxes: list[Softmax] = field(default_factory=list)
    constant_bytes: int | None = None
    """Bytes of the constants in the graph of its step; None where that was not read."""
    untried: str | None = None
    """Reason of its own why no trial could be made in it, as a sentence."""
    from_python: bool = False
    """True if Python hands each step its batch, as with `train_on_batch`: no tf.data iterator."""
    handed_on: bool = False
    """True if a generator of the script's hands on what it takes, to the loop at its line."""
    nested: list[NestedCall] = field(default_factory=list)
    """Calls of Keras in each of its steps beside training: `predict`, `evaluate`."""
    evaluation: Evaluation | None = None
    """Times of the first evaluation that is long enough, in a loop that evaluates."""
    beside: str | None = None
    """Id of another training loop, which another thread ran at the same time."""


@dataclass(kw_only=True)
class RecordedLoop(LoopFacts):
    """A place in the script that consumes batches, with the moments at which it did."""

    elapsed_ns: int
    """Time in steps, from one hand-over to the next; boundaries between epochs are not in it."""
    started_ns: int
    batches_per_call: int = 1
    only_reads: bool = False
    """True if, by its source, no model is called for what it hands out."""
    first_step_ns: int | None = None
    fill_ns: int | None = None
    """Time in which the first batch was waited for: the pipeline's start and its shuffle fill."""
    trace_count: int = 0
    """Number of traces of a training function while the loop ran."""
    retrace_steps: list[int] = field(default_factory=list)
    boundaries: int = 0
    """Ends of epochs and validations seen between two steps; such intervals are no steps."""
    epoch_boundaries: list[RecordedBoundary] = field(default_factory=list)
    """The first of them, in order, with their times."""
    asked_ns: int | None = None
    warm_ns: int | None = None
    last_ns: int | None = None
    set_aside_ns: int = 0
    """Between `warm_ns` and `last_ns`, what pipediag spent: reading the model, profiler, trials."""
    dataset_options: dict[str, Scalar] = field(default_factory=dict)
    autotune_enabled: bool = True
    several_iterators: bool = False
    """True if its measured steps drew from other iterators as well."""
    vocabulary_operations: list[str] = field(default_factory=list)
    """Operations on a number for each of many classes: logits, their loss, and back, with the
    update of weights that are no embedding table."""
    metric_operations: list[str] = field(default_factory=list)
    tables_missing: str | None = None
    strategy: str | None = None
    """Class of what distributes its batches to the replicas."""
    part_of: str | None = None
    """Id of the loop whose steps draw from it beside their own iterator."""
    iterators_in_trials: int = 0
    """Iterators among these whose steps were made for trials, and are not counted."""
    data_steps: int | None = None
    """Batches of its dataset, or those that its own loop takes of them: where the dataset tells its
    length, or the source tells where the loop leaves it."""

    @property
    def exceeds_data_steps(self) -> bool:
        """Return True if the script's own loop took more than `data_steps` of its data: that was
        the limit of a first call, and later ones have another or none."""
        most = self.iterators * self.data_steps if self.data_steps else self.steps
        return self.kind != "keras" and self.steps > most
