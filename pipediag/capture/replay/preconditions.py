"""Why trying edits would disturb the script, or measure something else than it reads."""

from __future__ import annotations

from typing import Any

from pipediag.capture.pipelines.call import Call
from pipediag.capture.pipelines.source_files import MOST_FILES, uncompressed_bytes
from pipediag.capture.replay.elements import first_elements
from pipediag.capture.replay.graph import Graph
from pipediag.capture.replay.refusal import NotReplayableError, at_start, said


def refuse_side_effects(graph: Graph) -> None:
    """An edit calls the pipeline's functions more often than the script does.

    Raises:
        NotReplayableError: one of them visibly changes what lies outside of it.
    """
    for _, call in graph.calls():
        for operation in (call.operation, *call.inside):
            effect = operation.function.side_effect if operation.function else None
            if effect is not None:
                raise NotReplayableError(
                    f"{at_start(said(operation))} calls Python with side effects: {effect}. "
                    "Trying an edit would call it more often than the script does."
                )


def refuse_files_of_its_own(graph: Graph) -> None:
    """What keeps elements in files of the script's would share them with the script.

    Caches on the pipeline itself are left out: others stand in for them.

    Raises:
        NotReplayableError: the pipeline has a snapshot, or a cache in a file within a function.
    """
    for _, call in graph.calls():
        kept = [one for one in (call.operation, *call.inside) if one.kind == "snapshot"]
        kept += [
            one for one in call.inside if one.kind == "cache" and one.parameters.get("filename")
        ]
        for operation in kept:
            raise NotReplayableError(
                f"{at_start(said(operation))} keeps elements in files, which a trial would share "
                "with the script."
            )


def refuse_changed_files(graph: Graph) -> None:
    """Arms read the files as they are now; the step was measured on what they were.

    Raises:
        NotReplayableError: files hold more or less than when the pipeline was made.
    """
    for _, call in graph.calls():
        before = call.operation.parameters.get("file_bytes")
        if before is not None and _bytes_now(call) != before:
            raise NotReplayableError(
                f"The files that {said(call.operation)} reads changed while the script ran."
            )


def _bytes_now(call: Call) -> int | None:
    names: Any = call.args[0] if call.args else call.kwargs.get("filenames")
    if hasattr(names, "element_spec"):
        names = [name.numpy() for name in first_elements(names, MOST_FILES).elements]
    return uncompressed_bytes(names, call.operation.parameters.get("compression_type"))
