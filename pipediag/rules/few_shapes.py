"""How a function comes to be traced for few shapes, where its batches have many."""

from __future__ import annotations

from pipediag.facts.pipeline import call_name, operations
from pipediag.facts.shapes import lengths_vary, ranks
from pipediag.session.loops import Loop
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation

TRACES_LEFT = 2
"""With `reduce_retracing=True`: one for the first shape, one for all others."""

_MULTIPLE = 64
"""Lengths that batches are padded to in the code to paste. Own choice: few lengths are left, and
seldom is more than half of a batch padding."""


def loop_on_many_shapes(session: Session, name: str, line: int | None) -> Loop | None:
    """The training loop whose step this function is, if its batches vary in length."""
    step = f":{line} {name}"
    for loop in session.loops:
        known = [one for one in loop.step_functions if one.endswith(step)]
        vary = loop.shapes_vary or lengths_vary(loop.element_spec or "")
        if loop.role == "training" and known and vary:
            return loop
    return None


def ways(session: Session, loop: Loop, *, where: str) -> str:
    """What to write so that few traces do; `where` is the function's line, in words."""
    padded = _padding(session, loop) if loop.diagnosed else None
    more = f" Under XLA, which compiles for each shape all the same, {padded}." if padded else ""
    return (
        f"write `@tf.function(reduce_retracing=True)` {where}, and {TRACES_LEFT} traces do for all "
        f"lengths.{more}"
    )


def _padding(session: Session, loop: Loop) -> str | None:
    buckets = operations(session, "bucket_by_sequence_length")
    if buckets:
        return (
            f"give {call_name(buckets[-1])} few boundaries, the last beyond the longest example, "
            "and `pad_to_bucket_boundary=True`"
        )
    padded = operations(session, "padded_batch")
    return _behind(padded[-1], loop) if padded else None


def _behind(op: Operation, loop: Loop) -> str:
    """Code where the first component is a matrix of ids or the like; words elsewhere."""
    shapes = ranks(loop.element_spec or "")
    pad = f"pad to multiples of {_MULTIPLE} behind {call_name(op)}"
    if len(shapes) != 2 or shapes[0] != 2:
        return pad
    return (
        f"{pad}: `.map(lambda x, y: (tf.pad(x, [[0, 0], [0, -tf.shape(x)[1] % {_MULTIPLE}]]), y))`"
    )
