"""What the values of a session are called in front of people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipediag.session.loops import InputWait, Loop
from pipediag.session.model import Script
from pipediag.vocabulary import (
    Bottleneck,
    CopyDirection,
    EffectOnResults,
    FindingStatus,
    GapCause,
    LoopKind,
    Pool,
    ScriptOutcome,
    StepBasis,
    StepClass,
    TrialState,
    VerdictSeverity,
)

BOTTLENECK: dict[Bottleneck, str] = {
    "input": "Input-bound",
    "compute": "Compute-bound",
    "transfer": "Transfer-bound",
    "overhead": "Overhead-bound",
    "balanced": "Balanced",
    "inconclusive": "Inconclusive",
}

SEVERITY: dict[VerdictSeverity, str] = {
    "ok": "no severe bottleneck",
    "moderate": "moderate",
    "high": "high severity",
    "unknown": "severity unknown",
}

STEP_CLASS: dict[StepClass, str] = {
    "input_wait": "Waiting for input",
    "device_compute": "Device compute",
    "device_copy": "Device copies",
    "collective": "Collectives",
    "compile": "Compile and retrace",
    "dispatch": "Launching operations",
    "python": "Python",
    "device_wait": "Waiting for a result",
    "unattributed": "Not attributed",
}

STEP_CLASS_MEANING: dict[StepClass, str] = {
    "input_wait": "blocked in GetNext until the pipeline hands over a batch",
    "device_compute": "operations of the model running",
    "device_copy": "bytes on their way between host and device",
    "collective": "replicas exchanging gradients",
    "compile": "tracing functions and compiling graphs",
    "dispatch": "the host dispatching operations and kernels",
    "python": "callbacks, metrics, logging and other Python between operations",
    "device_wait": "the host waiting for results from the device",
    "unattributed": "what no event of the trace accounts for",
}

COST_BESIDE_WAITING = "blocked in GetNext, and slowed by what makes the batches meanwhile"
"""What input wait means where the consumer alone, on a repeated batch, says how much it is."""

STATUS: dict[FindingStatus, str] = {
    "fail": "Found",
    "pass": "Fine",
    "informative": "Good to know",
    "not-applicable": "Not applicable",
    "inconclusive": "Not settled",
    "error": "Rule failed",
}

TRIAL: dict[TrialState, str] = {
    "confirmed": "confirmed",
    "refuted": "refuted",
    "inconclusive": "inconclusive",
    "not_tried": "not tried",
}

EFFECT: dict[EffectOnResults, str] = {
    "same results": "same results",
    "same up to order or rounding": "same up to order or rounding",
    "changes a hyper-parameter": "changes a hyper-parameter, so retune",
    "mends results": "mends them: they change to what was meant",
    "not known": "only you know whether they stay the same",
    "not safe here": "not safe here: the results would not be the same",
}

LOOP_KIND: dict[LoopKind, str] = {
    "keras": "Keras",
    "eager": "Python loop",
    "tf_function": "tf.function",
    "in_graph": "loop inside a tf.function",
    "distributed": "distributed",
}

OUTCOME: dict[ScriptOutcome, str] = {
    "finished": "ran to its end",
    "stopped": "was stopped when enough had been measured",
    "exited": "ended by itself with an exit call",
    "raised": "ended with an exception",
    "interrupted": "was interrupted",
    "killed": "was killed",
    "timed-out": "was stopped at the time limit",
    "hung-in-exit": "finished, then hung while the interpreter exited, and was ended",
}

POOL: dict[Pool, str] = {
    "tf_data": "tf.data",
    "eigen": "TensorFlow compute (Eigen)",
    "python_main": "Python, training loop",
    "python_other": "Python, other threads",
    "others": "Other threads",
}

GAP_CAUSE: dict[GapCause, str] = {
    "input": "Waiting for input",
    "copy": "Blocking copy",
    "compile": "Compile and retrace",
    "collective": "Another device busy",
    "sync": "Waiting for a result",
    "launch": "Launching operations",
    "python": "Python",
    "queued": "Queued on the device",
    "unknown": "Unexplained",
}

GAP_CAUSE_MEANING: dict[GapCause, str] = {
    "input": "the consumer was blocked in GetNext",
    "copy": "the host was in a copy that blocks",
    "compile": "tracing functions and compiling graphs",
    "collective": "another device was still at work",
    "sync": "the host waited for a result before it launched more",
    "launch": "the host was dispatching operations and kernels",
    "python": "callbacks, logging and other Python between the calls",
    "queued": "launched in time, but not yet begun by the device",
    "unknown": "no event of the profile accounts for it",
}

COPY_DIRECTION: dict[CopyDirection, str] = {
    "host_to_device": "host to device",
    "device_to_host": "device to host",
    "device_to_device": "within device",
    "peer_to_peer": "between devices",
    "set": "memory set",
    "unknown": "direction not recorded",
}

STEP_BASIS: dict[StepBasis, str] = {
    "markers": "pipediag's markers",
    "annotations": "the framework's step annotations",
    "scan": "the scan of the loop inside a graph",
    "get_next": "the hand-over of batches",
    "roots": "repeated calls of one function",
    "period": "a period in the device's activity",
}

NO_REASON = "Not measured; no reason was recorded."


def step_class_meaning(name: StepClass, wait: InputWait | None) -> str:
    """What a class of the step's time is, as a part of a sentence."""
    if name == "input_wait" and wait is not None and wait.method == "differential":
        return COST_BESIDE_WAITING
    return STEP_CLASS_MEANING[name]


def gap_cause(cause: str) -> str:
    """Why a device had nothing to do; a cause of a newer version as it is called there."""
    return _known(GAP_CAUSE, cause) or cause.replace("_", " ")


def gap_cause_meaning(cause: str) -> str:
    """What that says, or the empty string for a cause of a newer version."""
    return _known(GAP_CAUSE_MEANING, cause)


def step_class(name: str) -> str:
    """Where time of the step went."""
    return _known(STEP_CLASS, name) or name.replace("_", " ")


def in_sentence(label: str) -> str:
    """A label within a sentence: in small letters, but for a name."""
    return label if label == "Python" else label[:1].lower() + label[1:]


def _known(labels: Mapping[Any, str], name: str) -> str:
    return labels.get(name, "")


def command_line(script: Script) -> str:
    """The script and its arguments as a person typed them, or what it called."""
    if script.call is not None:
        called = "%%pipediag" if script.call == "cell" else f"pipediag.{script.call}"
        return f"{called} in {script.path}"
    words = ["-m", script.path] if script.module else [script.path]
    return " ".join([*words, *script.args])


def ending(script: Script) -> str:
    """How it ended, as the words after `The script`."""
    return OUTCOME[script.outcome]


def loop_title(loop: Loop) -> str:
    """What kind of loop it is and what it does: `Keras training`."""
    return f"{LOOP_KIND[loop.kind]} {loop.role}"
