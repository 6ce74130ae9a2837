"""Arrays that a function reads, which TensorFlow writes into its graph: at 2 GiB it refuses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pipediag.facts.limits import Threshold
from pipediag.facts.pipeline import call_name
from pipediag.rules.rule import Meta
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.vocabulary import Scalar

LARGE_CONSTANTS = Threshold(
    "constants in the graph of a function",
    200.0,
    "MB",
    "own choice: a tenth of the 2 GiB that TensorFlow refuses, as a message of protocol buffers "
    "can't be longer",
)
LIMIT_BYTES = 2**31
META = Meta(
    id="graph-constants",
    name="Constants in a graph",
    title_failed="Large arrays are written into a graph as constants",
    title_passed="No graph holds large constants",
    looks_at="Constants in the graphs of the functions of `map` and its like, and of the traced "
    "step; the error that ended a script.",
    why="A NumPy array that a traced function reads becomes a part of its graph, is copied with "
    "each trace, and costs time in each call of a `map`. Own measurement on two busy cores: with "
    "224 MB a step took 98 to 125 ms, with the same as a tensor 1 ms. From 2 GiB on TensorFlow "
    "refuses with a ValueError.",
    edit="A tensor made before the function, `table = tf.constant(array)`, or a `tf.Variable`; the "
    "function reads that.",
    cost="None.",
    bound="None: the step with a tensor in its place was not measured.",
    needs=(),
    thresholds=(LARGE_CONSTANTS,),
    severity="warn",
    effect_on_results="same results",
    untried="It changes what your function reads; pipediag can't do that for you.",
)
REFUSED = re.compile(r"tensor proto whose content is larger than 2GB")
"""What TensorFlow says of an array that it can't write into a graph."""
_MEND = (
    "Make a tensor of the array before, `table = tf.constant(array)`, or a `tf.Variable`, and let "
    "the function read that."
)


def check(session: Session) -> list[Finding]:
    """One finding for each function with such constants, or on the error that ended the script."""
    if REFUSED.search(session.script.detail or ""):
        return [_ended()]
    found = [*_in_pipelines(session), *_in_steps(session)]
    if found:
        return found
    seen = [op for op in _operations(session) if _bytes(op) is not None]
    read = [loop for loop in session.loops if loop.constant_bytes is not None]
    if not seen and not read:
        return [META.finding("not-applicable", "No graph of a function was read.")]
    return [META.finding("pass", "", evidence={"functions": len(seen) + len(read)})]


def _ended() -> Finding:
    return META.finding(
        "fail",
        f"{_MEND} The script ended because a function reads an array of 2 GiB or more, which "
        "TensorFlow writes into its graph as a constant. The traceback above names the line.",
        evidence={"limit_bytes": LIMIT_BYTES, "known_from": "the script's error"},
        severity="error",
    )


def _in_pipelines(session: Session) -> Iterator[Finding]:
    for op in _operations(session):
        held = _bytes(op)
        if held is not None and held >= LARGE_CONSTANTS.value * 1e6:
            yield META.finding(
                "fail",
                f"{_MEND} The function of {call_name(op)} {_holds(held)}",
                op=op,
                evidence=_evidence(held),
            )


def _in_steps(session: Session) -> Iterator[Finding]:
    for loop in session.loops:
        held = loop.constant_bytes
        if held is not None and held >= LARGE_CONSTANTS.value * 1e6:
            yield META.finding(
                "fail",
                f"{_MEND} The step {_holds(held)}",
                place=(loop.file, loop.line),
                evidence=_evidence(held),
            )


def _operations(session: Session) -> list[Operation]:
    """Of all pipelines that are known, each once."""
    pipelines = [session.pipeline, *(loop.pipeline for loop in session.loops)]
    return list({op.id: op for one in pipelines if one is not None for op in one.ops}.values())


def _bytes(op: Operation) -> int | None:
    return op.function.constant_bytes if op.function else None


def _holds(held: int) -> str:
    return (
        f"holds {held / 1e6:,.0f} MB as constants in its graph, {100 * held / LIMIT_BYTES:.0f} % "
        "of what TensorFlow takes: an array that it reads is written into it."
    )


def _evidence(held: int) -> dict[str, Scalar]:
    return {
        "constant_bytes": held,
        "limit_bytes": LIMIT_BYTES,
        "percent_of_limit": 100.0 * held / LIMIT_BYTES,
    }
