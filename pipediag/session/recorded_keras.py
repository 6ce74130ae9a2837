"""What the child process writes down of the model of a Keras loop."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipediag.vocabulary import Scalar


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
    row_bytes: int | None = None
    """Of what it gives for one example; None where that differs, or is text."""


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
    legacy: bool | None = None
    """Whether the model is one of the package `tf_keras`."""
    unsplit: str | None = None
    """Why the model can't be taken apart behind them, as a sentence."""
    compile_file: str | None = None
    compile_line: int | None = None
    """Where the script last compiled the model."""
