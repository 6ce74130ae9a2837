"""Why trying edits would disturb the script, or measure something else than it reads.

A generator may be one that can be gone through only once, a file may have changed, and random
operations make two passes differ.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Iterator
from typing import Any

from pipediag import tensorflow_names
from pipediag.capture.callsites import KERAS, package_of_module
from pipediag.capture.pipelines.calls import MOST_FILES, Call, uncompressed_bytes
from pipediag.capture.replay.elements import first_elements
from pipediag.capture.replay.graph import Graph, Node
from pipediag.capture.replay.refusal import NotReplayableError, at_start, said
from pipediag.session.recording import RecordedOperation
from pipediag.tensorflow_names import DRAWING_KINDS


def draws_random(operation: RecordedOperation) -> bool:
    """Whether it draws random numbers, by its kind or in its function."""
    names = operation.function.graph_ops if operation.function else {}
    return operation.kind in DRAWING_KINDS or tensorflow_names.draws_random(names)


def _reorders(operation: RecordedOperation) -> bool:
    """Whether two passes may see its elements in another order."""
    parameters = operation.parameters
    if operation.kind == "shuffle":
        return parameters.get("reshuffle_each_iteration") is not False
    return operation.kind == "list_files" or parameters.get("deterministic") is False


def random_upstream(dataset: Any) -> str | None:
    """The nearest operation that makes two passes differ, as the report names it, or None.

    What Python functions do can't be known: they count as the same on every pass.
    """
    graph = Graph(dataset)
    for node, call in reversed(list(graph.calls())):
        if is_random(node):
            return said(call.operation)
    return None


def is_random(node: Node) -> bool:
    """Whether two passes over this node differ though they agree up to here."""
    return any(draws_random(operation) or _reorders(operation) for operation in node.operations)


_DEEPEST = 4
_ITERATOR = "iterator"
_WORKERS = "workers"
_KERAS_WORKERS = "OrderedEnqueuer"
_MODULES = ("builtins", "itertools", "_csv")
_ENDLESS = (itertools.count, itertools.cycle, itertools.repeat)


def one_shot_source(dataset: Any) -> str | None:
    """Why the pipeline can't be read a second time, as a sentence, or None where nothing says so.

    Nothing is called and no element is taken: what a callable holds on to tells. A function that
    hands out an iterator from outside hands out the same one every time.
    """
    for _, call in Graph(dataset).calls():
        source = next(_held_by(call.generator, _DEEPEST), None)
        if source == _WORKERS:
            return "The batches come from workers of their own, which can serve one loop only."
        if source == _ITERATOR:
            return (
                f"The generator of {said(call.operation)} reads from an iterator that can be gone "
                "through only once."
            )
    return None


def _held_by(function: Any, depth: int) -> Iterator[str]:
    """What a callable needs that can't be had a second time."""
    if depth == 0 or isinstance(function, type):
        return
    if isinstance(function, functools.partial):
        held = [function.func, *function.args, *function.keywords.values()]
    else:
        owner = getattr(function, "__self__", None)
        plain = getattr(function, "__func__", function)
        if not inspect.isfunction(plain) and owner is None:
            owner, plain = function, getattr(type(function), "__call__", None)  # noqa: B004
        held = [owner, *_named_by(plain, owner)] if inspect.isfunction(plain) else [owner]
    for value in held:
        if _is_one_shot(value):
            yield _ITERATOR
        elif _is_keras_workers(value):
            yield _WORKERS
        elif isinstance(value, functools.partial) or inspect.isfunction(value):
            yield from _held_by(value, depth - 1)


def _named_by(function: Any, owner: Any) -> Iterator[Any]:
    """Values that the function's code names: closed over, global, default, its object's own."""
    names = set(function.__code__.co_names)
    owners = [owner]
    for cell in function.__closure__ or ():
        try:
            owners.append(cell.cell_contents)
        except ValueError:
            continue  # not yet filled
    yield from owners[1:]
    yield from function.__defaults__ or ()
    yield from (v for name, v in function.__globals__.items() if name in names)
    for one in owners:
        yield from (v for name, v in getattr(one, "__dict__", {}).items() if name in names)


def _is_one_shot(value: Any) -> bool:
    # Of other classes, files among them, some can be wound back.
    plain = type(value).__module__ in _MODULES
    return plain and isinstance(value, Iterator) and not isinstance(value, _ENDLESS)


def _is_keras_workers(value: Any) -> bool:
    kind = type(value)
    return kind.__name__ == _KERAS_WORKERS and package_of_module(kind.__module__) in KERAS


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
