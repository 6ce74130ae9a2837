"""Names of a session's values and of source lines, and the terms of trials."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import PurePath

from pipediag.facts.pipeline import place_name
from pipediag.reporters.words.quantities import (
    NO_BREAK,
    NOTHING,
    byte_count,
    duration,
    measured,
    microseconds,
    number,
    percent,
    seconds,
    speedup,
)
from pipediag.session.loops import InputWait, Loop
from pipediag.session.model import Script, Session
from pipediag.vocabulary import (
    Bottleneck,
    CopyDirection,
    EffectOnResults,
    GapCause,
    LoopKind,
    Pool,
    Scalar,
    ScriptOutcome,
    StepBasis,
    StepClass,
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

STEP_CLASS_MEANING: dict[StepClass, str] = {
    "input_wait": "blocked in GetNext until the pipeline hands over a batch",
    "device_compute": "the model's operations, as they run",
    "device_copy": "copies between host and device",
    "collective": "replicas exchanging gradients",
    "compile": "tracing functions and compiling graphs",
    "dispatch": "the host dispatching operations and kernels",
    "python": "callbacks, metrics, logging and other Python between operations",
    "device_wait": "the host waiting for results from the device",
    "unattributed": "time that no event of the trace explains",
}

EFFECT: dict[EffectOnResults, str] = {
    "same results": "same results",
    "same up to order or rounding": "same up to order or rounding",
    "changes a hyper-parameter": "changes a hyper-parameter, so retune",
    "corrects results": "changes them to what was intended",
    "not known": "only you know whether they stay the same",
    "not safe here": "not safe here: the results would not be the same",
}

LOOP_KIND: dict[LoopKind, str] = {
    "keras": "Keras",
    "eager": "Python loop",
    "tf_function": "tf.function",
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
    "queued": "launched in time, but not started by the device yet",
    "unknown": "no event of the profile explains it",
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
    "get_next": "the hand-over of batches",
    "calls": "repeated calls of one function",
}

NO_REASON = "Not measured; no reason was recorded."


def step_class_meaning(name: StepClass, wait: InputWait | None) -> str:
    """Return what a class of the step's time is, as a part of a sentence."""
    if name == "input_wait" and wait is not None and wait.method == "differential":
        # It was measured by the consumer alone on a repeated batch.
        return "blocked in GetNext, or slowed down by the work of the pipeline"
    return STEP_CLASS_MEANING[name]


def command_line(script: Script) -> str:
    """Return the script and its arguments as a person typed them, or the call of pipediag."""
    if script.call is not None:
        called = "%%pipediag" if script.call == "cell" else f"pipediag.{script.call}"
        return f"{called} in {script.path}"
    words = ["-m", script.path] if script.module else [script.path]
    return " ".join([*words, *script.args])


def short_command(script: Script, most: int) -> str:
    """Return so many characters of the command, of a longer one the end."""
    command = command_line(script)
    return command if len(command) <= most else f"…{command[1 - most :]}"


def loop_title(loop: Loop) -> str:
    """Return what kind of loop it is and what it does: `Keras training`."""
    return f"{LOOP_KIND[loop.kind]} {loop.role}"


_LIBRARY_DIRECTORIES = ("site-packages", "dist-packages")
_LONGEST = 100


class SourceNames:
    """Names of source files, relative to the directory in which the script ran, or to its own."""

    def __init__(self, session: Session) -> None:
        script = session.script
        typed = PurePath(script.directory or "", script.path)
        own = os.path.normpath(typed.parent) if not script.module else None
        self._roots = [root for root in (script.directory, own) if root is not None]

    def at(self, file: str | None, line: int | None) -> str:
        """Return `file:line`, or the empty string where the file is not known.

        A library's file is shown below its package. Only the end is kept of a path that is still
        too long for a table.
        """
        if file is None:
            return ""
        # Python keeps `..` in the path of a script, as it was typed.
        path = PurePath(os.path.normpath(file))
        below = (path.relative_to(root) for root in self._roots if path.is_relative_to(root))
        shown = str(next(below, file))
        for directory in _LIBRARY_DIRECTORIES:
            if directory in path.parts:
                shown = str(PurePath(*path.parts[path.parts.index(directory) + 1 :]))
                break
        short = shown if len(shown) <= _LONGEST else "…" + shown[1 - _LONGEST :]
        return short if line is None else f"{short}:{line}"


_UNIT = re.compile(r"_(percent|ms|us|s|bytes|gb|ratio|operation)((?:_of|_per)_[a-z_]+)?$")
"""The end of a key: the unit, and what the value is a part of."""
_WRITTEN: Mapping[str, Callable[[float], str]] = {
    "percent": percent,
    "ms": duration,
    "us": microseconds,
    "s": seconds,
    "bytes": byte_count,
    "gb": lambda value: f"{measured(value)}{NO_BREAK}GB",
    "ratio": speedup,
}
_NAMES = {"python": "Python", "cpu": "CPU", "cpus": "CPUs", "gpu": "GPU"}


def evidence(session: Session, key: str, value: Scalar) -> tuple[str, str]:
    """Return words and value with its unit.

    `input_wait_percent_of_step: 76.31` gives `input wait` and `76 % of the step`.
    """
    unit = _UNIT.search(key, 1)
    words = (key[: unit.start()] if unit else key).split("_")
    label = " ".join(_NAMES.get(word, word) for word in words)
    if value is None:
        return label, NOTHING
    if isinstance(value, bool):
        return label, "yes" if value else "no"
    if isinstance(value, str):
        return label, _operation(session, value) if unit and unit[1] == "operation" else value
    if unit is None or unit[1] not in _WRITTEN:
        return label, number(value)
    of = (unit[2] or "").replace("_of_", " of the ").replace("_", " ")
    return label, f"{_WRITTEN[unit[1]](value)}{of}"


def _operation(session: Session, op_id: str) -> str:
    op = session.operation(op_id)
    return op_id if op is None else place_name(op)
