"""What the child process measures in a loop: steps in windows, and stacks beside them."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipediag.vocabulary import WindowKind


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
    last_gap_unknown: bool = False
    """Whether the last step's last gap is not among them: where a step asks for its batch itself,
    tf.data knows of it only when the next one asks."""


@dataclass
class RecordedPythonCalls:
    """Calls of one Python function of a pipeline that began while steps of the window ran."""

    token: str
    """By which TensorFlow's registry knows the function."""
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
    """Why the window ended where it did, if not as planned."""
    stable: bool | None = None
    """Warm-up only: whether the step time had settled when the window ended."""
    python_thread_cpu_ns: dict[str, int] = field(default_factory=dict)
    """CPU time that each Python thread took in the window, by `name#native id`."""
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


@dataclass
class RecordedStacks:
    """Python stacks sampled beside the training loop, while its steps run."""

    loop_id: str
    samples: int
    interval_ns: int
    lines: list[StackLine] = field(default_factory=list)
    thread_samples: dict[str, int] = field(default_factory=dict)
    """Samples in which each kind of thread was seen running Python code."""
    callbacks_ns: dict[str, int] = field(default_factory=dict)
    """What each class of Keras callbacks took after batches meanwhile, by the clock."""
    steps_ns: int = 0
    """What the steps took, these callbacks among them."""
