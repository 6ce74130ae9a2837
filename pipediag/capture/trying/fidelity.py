"""What a trial would change in a script that goes on afterwards, and that could not be put back.

Under `--run-to-end` a script must end with the very results that it has without pipediag. Where
that can't be shown beforehand, no trial is made, and the session says why.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

from pipediag.capture.loops.loop import Loop
from pipediag.capture.packages import KERAS, package_of_module
from pipediag.capture.pipelines.graph_state import state_of_pipeline, state_of_step
from pipediag.capture.purity import doubt
from pipediag.capture.replay.called_code import called_functions, traced_functions
from pipediag.capture.replay.graph import Graph
from pipediag.capture.replay.refusal import said

_TRAINERS = ("keras.src.backend.tensorflow.trainer", "tf_keras.src.engine.training")


def step_leaves_traces(loop: Loop) -> str | None:
    """Why steps of this loop can't be made beside the script's own, as the end of a sentence."""
    model = loop.model() if loop.model is not None else None
    keras = loop.record.keras
    if loop.record.kind != "keras" or model is None or not _trained_by_tensorflow(model):
        return "only a Keras `fit` on TensorFlow can be taken back to where it was"
    if keras is None or keras.run_eagerly:
        return "a step that runs eagerly may do more than train"
    hooked = [callback.name for callback in keras.callbacks if callback.batch_hooks]
    if hooked:
        return (
            f"{', '.join(hooked)} takes part in every step, and can't be called for a step that "
            "is only tried"
        )
    return _state_of(loop.step_functions)


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


def compiling_runs_the_scripts_code(model: Any) -> bool:
    """Whether another training function would be traced through classes of the script."""
    parts = [model, *model._flatten_layers()] if hasattr(model, "_flatten_layers") else [model]
    return any(package_of_module(type(part).__module__) not in KERAS for part in parts)


def _trained_by_tensorflow(model: Any) -> bool:
    return any(base.__module__ in _TRAINERS for base in type(model).__mro__)


def _state_of(functions: Iterable[weakref.ref[Any]]) -> str | None:
    known = [function for ref in functions if (function := ref()) is not None]
    if not known:
        return "its training function is not known"
    changed = next(filter(None, map(state_of_step, known)), None)
    return changed and (
        f"its training step has an operation whose state can't be put back ({changed})"
    )
