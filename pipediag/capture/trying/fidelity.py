"""What a trial would change in a script that goes on afterwards, and that could not be put back.

Under `--run-to-end` a script must end with the very results that it has without pipediag. Where
that can't be shown beforehand, no trial is made, and the session says why.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

from pipediag.capture.loops.loop import Loop
from pipediag.capture.pipelines.graph_state import state_of_pipeline, state_of_step
from pipediag.capture.purity import doubt
from pipediag.capture.replay.called_code import called_functions, traced_functions
from pipediag.capture.replay.graph import Graph
from pipediag.capture.replay.refusal import said


def step_leaves_traces(loop: Loop) -> str | None:
    """Why steps of this loop can't be made beside the script's own, as the end of a sentence."""
    if loop.trainer is None:
        return "only a Keras `fit` on TensorFlow can be taken back to where it was"
    model = loop.model() if loop.model is not None else None
    reason = loop.trainer.step_leaves_traces(model, loop.record.keras)
    return reason or _state_of(loop.step_functions)


def reading_leaves_traces(dataset: Any) -> str | None:
    """Why the pipeline can't be read beside the script's own reading, as the end of a sentence.

    Raises:
        NotReplayableError: it can't be walked.
    """
    for node, call in Graph(dataset).calls():
        for operation in (call.operation, *call.inside):
            changed = state_of_pipeline(operation.function.graph_ops if operation.function else ())
            if changed is not None:
                return f"{said(operation)} works on a state that others see too ({changed})"
        doubts = (
            *(doubt(function, traced=True) for function in traced_functions(call)),
            *map(doubt, called_functions(node.dataset, call)),
        )
        for found in doubts:
            if found is not None:
                return (
                    f"{said(call.operation)} calls Python that can't be shown to leave everything "
                    f"as it is: {found}"
                )
    return None


def _state_of(functions: Iterable[weakref.ref[Any]]) -> str | None:
    known = [function for ref in functions if (function := ref()) is not None]
    if not known:
        return "its training function is not known"
    changed = next(filter(None, map(state_of_step, known)), None)
    return changed and (
        f"its training step has an operation whose state can't be put back ({changed})"
    )
