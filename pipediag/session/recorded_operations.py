"""What the child process writes down of the script's calls of tf.data."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipediag.vocabulary import Scalar

NAME_BEGINS = "pipediag_op"
"""What the names begin with that operations are given, where the user gave none."""


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
    python_calls: list[str]
    """Full names of the builtins and of modules' functions in its code, such as `time.sleep`."""
    python_function_names: list[str] = field(default_factory=list)
    """`file:line name` of each Python function that it calls back (py_function, numpy_function)."""
    python_tokens: list[str] = field(default_factory=list)
    """By which TensorFlow's registry knows each of them, and those of nested datasets."""
    side_effect: str | None = None
    """What one of those visibly changes outside of itself, as the end of a sentence."""
    trace_count: int | None = None
    """How often the Python body ran. The rate of elements says how often it did not."""
    trace_ms: float | None = None
    """Wall time that tracing the function took, once, in milliseconds."""
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
