"""What the child process writes down of the places in the script that consume batches."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipediag.session.recorded_keras import RecordedKeras
from pipediag.session.recorded_tables import RecordedSoftmax
from pipediag.vocabulary import LoopKind, LoopRole, Scalar


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
    unrepeated: str | None = None
    """Why none of its batches was repeated although it would have told, as the end of a sentence.
    """
    beside: str | None = None
    """Id of another training loop that another thread ran at the same time."""
    evaluation: RecordedEvaluation | None = None
    """Of a loop that evaluates, in its first evaluation that is long enough."""
    strategy: str | None = None
    """Class of what distributes its batches to the replicas."""
    softmaxes: list[RecordedSoftmax] = field(default_factory=list)
    from_python: bool = False
    """Whether Python hands each step its batch, as with `train_on_batch`: no tf.data iterator."""
    part_of: str | None = None
    """Id of the loop whose steps draw from it beside their own iterator."""
    data_steps: int | None = None
    """Batches of its dataset, where that tells its length."""
    followed_by: list[str] = field(default_factory=list)
    """What trains behind it by the source, as `file:line`."""
    nested: list[RecordedNestedCall] = field(default_factory=list)
    """What Keras does in each of its steps beside training."""
