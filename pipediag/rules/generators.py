"""Generators of `from_generator`: calls in them that are known to be slow, and single elements."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from pipediag.facts.limits import INPUT_WAIT, OPERATION_SHARE, Threshold
from pipediag.facts.pipeline import call_name, delay_ms, operations, place_name
from pipediag.facts.python_callables import only_python, running_line
from pipediag.rules.bounds import less_input
from pipediag.rules.relevance import weigh
from pipediag.rules.rule import Meta
from pipediag.session.edits import Edit, Replace, RewriteCall
from pipediag.session.findings import Finding
from pipediag.session.model import HotLine, Session
from pipediag.session.pipeline import Operation
from pipediag.vocabulary import Scalar

_DRAWS = re.compile(r"\bchoice\(.*\bp\s*=")
KNOWN: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        _DRAWS,
        "`choice(..., p=weights)` adds up all weights in each call: keep their sums, and search in "
        "them (`sums.searchsorted(rng.random(n), side='right')`), which draws the same numbers",
    ),
    (
        re.compile(r"\bjson\.loads?\("),
        "`json.loads` reads a text for each row: parse the data once and store it, or use a faster "
        "parser (orjson)",
    ),
    (
        re.compile(r"\.iterrows\(|\.i?loc\[|\.iat\["),
        "a row of a DataFrame is made anew at each access: take NumPy arrays of the columns once "
        "(`frame['x'].to_numpy()`) and index those",
    ),
    (
        re.compile(r"\bnp\.(append|concatenate|vstack|hstack)\("),
        "an array is copied at each call: collect rows in a list, or write into an array that is "
        "made once",
    ),
    (
        re.compile(r"\bhashlib\.|\.hexdigest\(|\bmd5\("),
        "each text is hashed anew: hash it once, before training",
    ),
    (
        re.compile(r"\b(tf|keras|K)\.(?!data\b)\w+.*\(|\.numpy\(\)"),
        "an eager TensorFlow call takes tens of microseconds: use NumPy here, or put it into a map "
        "of batches",
    ),
)
"""Lines that are known to be slow, and what to do instead."""

LINE_SHARE = Threshold(
    "samples of that thread in its line",
    5.0,
    "% of the samples",
    "own choice: less may be anywhere",
)
SLOW_CALL = Meta(
    id="slow-python-call",
    name="Slow Python call",
    title_failed="Replace a Python call that is known to be slow",
    title_passed="No line of the data's Python is known to be slow",
    why="NumPy's `choice` with weights took 131 of 157 ms of a step of 512 words, and under 5 ms "
    "once the sums of its weights were kept.",
    edit="Replace the call, or make it once for many rows.",
    cost="None where the numbers stay the same.",
    needs=("loop", "pipeline", "steps", "breakdown", "host"),
    thresholds=(INPUT_WAIT, OPERATION_SHARE, LINE_SHARE),
    untried="pipediag does not rewrite this call.",
    frees=("input_wait",),
)


def check_slow_call(session: Session) -> list[Finding]:
    """Return a finding for the line with a known slow call that runs most in a generator.

    Where other Python makes input as well, a line may belong to that, so nothing is said.
    """
    assert session.host is not None
    generators = operations(session, "from_generator")
    if len(generators) != 1 or not only_python(session, generators[0]):
        return [SLOW_CALL.finding("pass", "")]
    (op,) = generators
    known = [
        (line, advice)
        for line in session.host.hot_python
        if line.thread == "source" and line.percent >= LINE_SHARE.value
        for pattern, advice in KNOWN
        if pattern.search(line.code or "")
    ]
    weight = weigh(session, op)
    if op.made_by_framework or not known or weight.status != "fail":
        return [SLOW_CALL.finding("pass", "", op=op)]
    line, advice = max(known, key=lambda one: one[0].percent)
    return [_finding(session, op, line, advice, weight.evidence)]


def _finding(
    session: Session, op: Operation, line: HotLine, advice: str, evidence: Mapping[str, Scalar]
) -> Finding:
    name = Path(line.file).name
    edit = None
    if _DRAWS.search(line.code or ""):
        edit = Edit(
            id=f"{SLOW_CALL.id}:{name}:{line.line}",
            label=f"sums of the weights made once, for the choice in line {line.line} of {name}",
            changes=(RewriteCall(op.id, line.file, line.line, line.function),),
        )
    return SLOW_CALL.finding(
        "fail",
        f"At {name}:{line.line} {advice}.",
        op=op,
        place=(line.file, line.line),
        evidence={**evidence, "line_percent_of_samples": line.percent},
        effect="same results" if edit is not None else "not known",
        edit=edit,
        speedup_at_most=_at_most(session, op),
    )


def _at_most(session: Session, op: Operation) -> float | None:
    """Return the bound without the generator's delay; None where that was not measured."""
    delay = delay_ms(session, op)
    return None if delay is None else less_input(session, delay, on_cpu=False)


ELEMENTS = Threshold(
    "elements that a step takes of it",
    4.0,
    "elements",
    "own choice: fewer cost under a millisecond",
)
SINGLE_ELEMENTS = Meta(
    id="generator-elements",
    name="Single elements of a generator",
    title_failed="Hand over several elements of the generator at once",
    title_passed="Generators hand over few elements per step",
    why="Each element that TensorFlow takes from Python took 0.25 ms, whatever was in it. In "
    "stacks of 64, which `unbatch` takes apart again, it took 0.015 to 0.03 ms.",
    edit="Hand over stacks of elements, and take them apart with `unbatch`.",
    cost="Up to 63 elements are read ahead. Elements and their order stay the same.",
    needs=("loop", "pipeline", "steps", "breakdown"),
    thresholds=(INPUT_WAIT, OPERATION_SHARE, ELEMENTS),
    frees=("input_wait",),
)
_STACKED = 64


def elements_edit_id(op: Operation) -> str | None:
    """Return the id of the edit that stacks a generator's elements, if a step takes enough."""
    if op.made_by_framework or op.inside_function_of is not None:
        return None
    few = op.elements is None or op.elements < ELEMENTS.value
    return None if few else f"{SINGLE_ELEMENTS.id}:{op.id}"


def check_single_elements(session: Session) -> list[Finding]:
    """Return a finding for each generator of many elements per step that the training waits for."""
    found = [_of_single_elements(session, op) for op in operations(session, "from_generator")]
    return [one for one in found if one is not None] or [SINGLE_ELEMENTS.finding("pass", "")]


def _of_single_elements(session: Session, op: Operation) -> Finding | None:
    weight, edit_id = weigh(session, op), elements_edit_id(op)
    if weight.status != "fail" or edit_id is None:
        return None
    parameters: dict[str, Scalar] = {"elements": _STACKED}
    if op.element_bytes is None:
        parameters["ragged"] = True
    return SINGLE_ELEMENTS.finding(
        "fail",
        f"Hand over {_STACKED} elements of {call_name(op)} at once, stacked by NumPy, and take "
        "them apart with `unbatch`.",
        op=op,
        place=running_line(session, op),
        evidence={**weight.evidence, "elements_per_step": op.elements},
        edit=Edit(
            id=edit_id,
            label=f"{_STACKED} elements of the {place_name(op)} handed over at once",
            changes=(Replace(op.id, "in_chunks", parameters),),
            check="equal",
        ),
        speedup_at_most=_at_most(session, op),
    )
