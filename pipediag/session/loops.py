"""The loops of a script, and what their model and callbacks are."""

from __future__ import annotations

from typing import Literal

from pipediag.session.pipeline import Pipeline
from pipediag.session.record import Record
from pipediag.vocabulary import LoopKind, LoopRole, Scalar, SparseOrDense


class Callback(Record):
    name: str
    file: str | None
    line: int | None
    batch_hooks: list[str]
    step_percent: float | None = None
    """Of the steps, what it takes after batches, by a clock; None where that did not run."""


class InputLayer(Record):
    name: str
    kind: str
    """Its class."""
    behind_input: bool
    """Whether it sees nothing but inputs, as they are or prepared by such a layer."""
    handed_on: bool
    """Whether what it gives goes on to the rest of the model."""
    row_bytes: int | None = None
    """Of what it gives for one example; None where that differs, or is text."""


class Softmax(Record):
    """A loss of the traced step that takes a softmax over all rows of a weight."""

    weights: str
    """Name of the variable."""
    classes: int
    features: int
    """Numbers that each class is multiplied with."""
    labels: SparseOrDense
    """Whether a label is the class itself, or a number for each."""
    device: str | None = None


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
    """The user's own."""
    deciding_callbacks: list[str] = []
    """Classes of Keras' own that end the training, or change its learning rate, by a metric."""
    parameter_count: int | None = None
    variable_bytes: int | None = None
    """Of all variables of the model."""
    trainable_bytes: int | None = None
    """Of those that are trained, which have gradients."""
    optimizer_bytes: int | None = None
    """Of the optimizer's own variables."""
    optimizer_settings: dict[str, Scalar] = {}
    """Arguments of the optimizer that are set and act on whole variables: `momentum`,
    `weight_decay`, `use_ema`, `global_clipnorm`, `gradient_accumulation_steps`."""
    input_layers: list[InputLayer] = []
    """Layers that prepare inputs within the model: look up strings, encode, normalise."""
    legacy: bool | None = None
    """Whether the model is one of the package `tf_keras`; None where that was not recorded."""
    unsplit: str | None = None
    """Why the model can't be taken apart behind them, as a sentence."""
    compile_file: str | None = None
    compile_line: int | None = None
    """Where the script last compiled the model; None where that was not seen."""


class NestedCall(Record):
    """A call of Keras' `predict` or `evaluate` in each step of a loop."""

    what: str
    file: str | None
    line: int | None
    percent: float
    """Of the loop's steps."""
    ms: float
    """Mean of a call."""


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
    making_s: float = 0.0
    """Making the iterators of each epoch after the first."""
    between_epochs_s: float
    """What else lies between the last step of an epoch and the request for the next batch:
    validation, callbacks, checkpoints, and whatever else the script does there."""
    unexplained_s: float
    """The rest as far as it was seen: steps that took longer than the mean, or work between steps
    that no measured step had."""
    epoch_ends_seen: int
    first_batch_ms: float | None
    """Mean wait for an epoch's first batch; None where no epoch's end was seen."""


class Evaluation(Record):
    """Steps of a loop that evaluates, in a short look: its first ones are left out."""

    steps: int
    step_ms: float
    """Mean."""
    consumer_ms: float | None
    """What of it was not waiting for a batch, by tf.data's own clock; None where that told
    nothing."""


class Loop(Record):
    """A place in the script that consumes batches."""

    id: str
    kind: LoopKind
    role: LoopRole
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
    planned_rounds: int | None = None
    """How often the script comes to its line, by the loops of its source around it; None where they
    do not tell."""
    shapes_vary: bool = False
    """Whether a function of its step was traced again for batches of another length."""
    updates_variables: bool = False
    iterators: int = 1
    replicas: int = 1
    keras: KerasUse | None = None
    step_functions: list[str] = []
    element_spec: str | None = None
    softmaxes: list[Softmax] = []
    """Of the losses of its traced step."""
    constant_bytes: int | None = None
    """Of the constants in the graph of its step; None where that was not read."""
    untried: str | None = None
    """Why no trial could be made in it, where that is not the whole run's reason."""
    nested: list[NestedCall] = []
    """What Keras does in each of its steps beside training: `predict`, `evaluate`."""
    from_python: bool = False
    """Whether Python hands each step its batch, as with `train_on_batch`: no tf.data iterator."""
    beside: str | None = None
    """Id of another training loop, which another thread ran at the same time."""
    filled_cache_op_id: str | None = None
    """The cache that its measured steps filled, so that they stand for no later epoch."""
    root_op_id: str | None = None
    """The operation that hands it its batches; None where it is none of tf.data's."""
    pipeline: Pipeline | None = None
    """What it reads, as written; only of a loop that evaluates: the diagnosed one's is the
    session's."""
    evaluation: Evaluation | None = None
    """Only of a loop that evaluates, and of one that takes few batches at a time not even then."""
