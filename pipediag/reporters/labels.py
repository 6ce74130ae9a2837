"""What the values of a session are called in front of people."""

from __future__ import annotations

from pipediag.session.model import (
    Bottleneck,
    FindingStatus,
    Loop,
    Script,
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
    "dispatch": "Dispatch",
    "python": "Python",
    "device_wait": "Waiting for the device",
    "unattributed": "Not attributed",
}

STEP_CLASS_MEANING: dict[StepClass, str] = {
    "input_wait": "blocked in GetNext until the pipeline hands over a batch",
    "device_compute": "operations of the model running",
    "device_copy": "bytes on their way between host and device",
    "collective": "replicas exchanging gradients",
    "compile": "tracing functions and compiling graphs",
    "dispatch": "launching operations and kernels",
    "python": "callbacks, metrics, logging and other Python between operations",
    "device_wait": "the host waiting for results from the device",
    "unattributed": "what no event of the trace accounts for",
}

STATUS: dict[FindingStatus, str] = {
    "fail": "Found",
    "pass": "Fine",
    "informative": "Good to know",
    "not-applicable": "Not applicable",
    "inconclusive": "Not settled",
    "error": "Rule failed",
}

TRIAL: dict[TrialState, str] = {
    "confirmed": "confirmed by a trial",
    "refuted": "refuted by a trial",
    "inconclusive": "trial inconclusive",
    "not_tried": "not tried",
}

LOOP_KIND: dict[str, str] = {
    "keras": "Keras",
    "eager": "Python loop",
    "tf_function": "tf.function",
    "in_graph": "loop inside a tf.function",
    "distributed": "distributed",
}

OUTCOME: dict[str, str] = {
    "finished": "ran to its end",
    "stopped": "was stopped when enough had been measured",
    "exited": "ended by itself with an exit call",
    "raised": "ended with an exception",
    "interrupted": "was interrupted",
    "killed": "was killed",
    "timed-out": "was stopped at the time limit",
    "hung-in-exit": "finished, then hung while the interpreter exited, and was ended",
}

POOL: dict[str, str] = {
    "tf_data": "tf.data",
    "eigen": "TensorFlow compute (Eigen)",
    "python_main": "Python, training loop",
    "python_other": "Python, other threads",
    "others": "Other threads",
}

NO_REASON = "Not measured; no reason was recorded."


def gap_cause(cause: str) -> str:
    """What the host was doing while a device had nothing to do."""
    return next((label for name, label in STEP_CLASS.items() if name == cause), None) or (
        cause.replace("_", " ")
    )


def command_line(script: Script) -> str:
    """The script and its arguments as a person typed them."""
    words = ["-m", script.path] if script.module else [script.path]
    return " ".join([*words, *script.args])


def loop_title(loop: Loop) -> str:
    """What kind of loop it is and what it does: `Keras training`."""
    return f"{LOOP_KIND[loop.kind]} {loop.role}"
