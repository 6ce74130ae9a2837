"""The closed lists of words in recordings, sessions and profiles, each spelled once.

The user's process imports it too: it imports nothing but `typing`.
"""

from __future__ import annotations

from typing import Literal, get_args

Scalar = int | float | str | bool | None
"""Value of a parameter, an option or a piece of evidence."""

LoopKind = Literal["keras", "eager", "tf_function", "distributed"]
LoopRole = Literal[
    "training",
    "validation",
    "evaluate",
    "predict",
    "adapt",
    "preview",
    "preparation",
    "reading",
    "other",
]
EVALUATING: frozenset[LoopRole] = frozenset({"validation", "evaluate", "predict", "other"})
"""Loops that may evaluate, and take batches in earnest without training."""
WindowKind = Literal["warmup", "baseline", "stacks", "profile", "repeat"]
HotThread = Literal["main", "source", "other"]
"""Whose line was seen running: the training loop's, a data source's, or another thread's."""

OwnEnding = Literal["finished", "stopped", "exited", "raised", "interrupted"]
"""Ending of a script, as its own process reports it."""
RecordedOutcome = Literal["running", OwnEnding]
ScriptOutcome = Literal[OwnEnding, "killed", "timed-out", "hung-in-exit"]
"""Ending of a script, including those that only the parent sees."""
BY_ITSELF: frozenset[ScriptOutcome] = frozenset({"finished", "stopped", "exited"})
"""Endings that the script, or pipediag, chose, and that came about as chosen."""
CUT_SHORT: frozenset[ScriptOutcome] = frozenset({"raised", "killed", "interrupted", "timed-out"})
"""Endings after which the script's work was left undone."""

SpanKind = Literal[
    "script",
    "fit",
    "evaluation",
    "callback",
    "iterator",
    "first_batch",
    "steps",
    "first_call",
    "tracing",
    "aside",
]
"""Stretches of the script's thread.

script: its code, from first line to last. fit, evaluation: a call of Keras's. callback: a hook of
one at an epoch's ends. iterator: one over a loop's data is made. first_batch: the loop waits for
it, of each epoch. steps: a loop's, from its first batch in hand to its end or an interruption.
first_call: a call of a function that was traced in it, so one step and the tracing. tracing:
tracing alone. aside: what pipediag took.
"""
RunPartName = Literal[
    "startup",
    "before_training",
    "compile",
    "epoch_start",
    "steps",
    "evaluation",
    "epoch_end",
    "between_loops",
    "after_training",
]
"""The places that a run's time can go to.

startup: interpreter and imports. before_training: the script's code before its first training loop.
compile: tracing and compiling functions. epoch_start: making an epoch's iterator, and waiting for
its first batch. evaluation: in `fit`, by a call, or in a loop of the script's own. epoch_end:
between the epochs of a loop, callbacks and all else. between_loops, after_training: the script's
code there.
"""
RUN_PARTS: tuple[RunPartName, ...] = get_args(RunPartName)
"""Parts in the order in which a run comes to them."""
PartBasis = Literal["measured", "projected"]
RunScope = Literal["run", "epoch", "1000_steps"]

DeviceClass = Literal["device_compute", "device_copy", "collective"]
StepClass = Literal[
    "input_wait", DeviceClass, "compile", "dispatch", "python", "device_wait", "unattributed"
]
Group = Literal["compute", "transfer", "overhead"]
"""Classes of the step, other than input, by what can be the bottleneck."""
Bottleneck = Literal["input", Group, "balanced", "inconclusive"]
Call = Literal["analyze", "analyze_input", "watch", "callback", "cell"]
"""Function of pipediag that measures in the program that calls it; `cell`: `%%pipediag` of a
notebook's cell."""
VerdictSeverity = Literal["ok", "moderate", "high", "unknown"]
Confidence = Literal["high", "medium", "low"]
InputMethod = Literal["native", "trace", "differential", "none"]
"""Method by which input wait was measured."""
Contention = Literal["python", "cpu"]
"""Cause of contention: the input is made, beside the training loop, by Python functions, or by
tf.data's own threads on the CPUs that the model computes on."""

FindingStatus = Literal["fail", "pass", "informative", "not-applicable", "inconclusive", "error"]
STATUS_ORDER: tuple[FindingStatus, ...] = (
    "fail",
    "informative",
    "error",
    "inconclusive",
    "pass",
    "not-applicable",
)
"""Order of statuses in reports: the one that says most goes first."""
FindingSeverity = Literal["error", "warn", "info"]
SEVERITY_ORDER: tuple[FindingSeverity, ...] = ("error", "warn", "info")
FindingSubject = Literal["precondition", "correctness", "speed"]
"""Subject of a finding. Correctness is about results: no trial of speed settles it."""
EffectOnResults = Literal[
    "same results",
    "same up to order or rounding",
    "changes a hyper-parameter",
    "corrects results",
    "not known",
    "not safe here",
]
"""`corrects results`: they change to what was meant. `not known`: only the author of a function
knows if it always gives the same. `not safe here`: the function is known to be random or stateful,
so that the results would not be the same."""

Judgement = Literal["confirmed", "refuted", "inconclusive"]
TrialState = Literal[Judgement, "not_tried"]
BASE = "base"
"""The variant that every edit is compared with: the pipeline as written, replayed."""
ON_TOP = " + "
"""Between the ids of edits in the name of a variant that has several."""

SparseOrDense = Literal["sparse", "dense"]
"""The rows that a batch touches, or a whole table."""

Pool = Literal["tf_data", "eigen", "python_main", "python_other", "others"]
"""Pool of threads."""
POOLS: tuple[Pool, ...] = get_args(Pool)
SixteenBitPolicy = Literal["mixed_bfloat16", "mixed_float16"]
"""Policy of Keras' mixed precision."""

Framework = Literal["tensorflow", "jax", "pytorch"]
"""Framework that made a profile, and that its advice is about."""
TraceFormat = Literal["xplane", "kineto"]
StepBasis = Literal["markers", "annotations", "get_next", "calls"]
"""Basis of the steps: pipediag's markers; Keras', JAX's or Kineto's annotations; the
hand-over of batches; calls of a function."""
GapCause = Literal[
    "input", "compile", "copy", "collective", "sync", "launch", "python", "queued", "unknown"
]
"""Cause of an idle gap of a device.

input: the consumer was blocked in GetNext. copy: the host was in a blocking copy. compile: a trace
of a function or a compilation. collective: another device was still busy. sync: the host waited for
a result. launch: the host was dispatching operations. python: Python between the calls. queued: the
work was launched before the device went idle and waited on the device. unknown: none of these.
"""
GAP_CAUSES: tuple[GapCause, ...] = get_args(GapCause)
"""Causes in order of priority: where several hold at once, the first takes the time."""
CopyDirection = Literal[
    "host_to_device", "device_to_host", "device_to_device", "peer_to_peer", "set", "unknown"
]
COPY_DIRECTIONS: tuple[CopyDirection, ...] = get_args(CopyDirection)

ROW_WISE, FUSED = "row_wise", "fused"
OTHER_OPTIMIZERS = {
    ROW_WISE: {
        "Adam": "LazyAdam",
        "AdamW": "LazyAdamW",
        "RMSprop": "LazyRMSprop",
        "Adagrad": "LazyAdagrad",
        "SGD": "LazySGD",
    },
    FUSED: {"Adam": "FusedAdam", "AdamW": "FusedAdamW"},
}
"""Values of the setting `optimizer`: Keras' optimizers, and in their place those of
`pipediag.optimizers` that update rows alone by the same rule, or whole tables in one pass."""
