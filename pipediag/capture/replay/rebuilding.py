"""The pipeline as written, or with changes, as a new dataset.

The script's own caches are full in it, and none of the script's files: a block that began with an
empty cache would time its filling, and the script may be filling or reading the very cache.
"""

from __future__ import annotations

import inspect
import itertools
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from pipediag.capture.callsites import is_keras_class
from pipediag.capture.pipelines.calls import EARLIER
from pipediag.capture.pipelines.functions import closure_of
from pipediag.capture.process import random_state_kept
from pipediag.capture.replay import NotReplayableError, at_start, first_line, said
from pipediag.capture.replay.changes import apply
from pipediag.capture.replay.graph import (
    Graph,
    Node,
    filled_cache,
    most_elements_in_memory,
)
from pipediag.capture.replay.replacing import attributes_set
from pipediag.capture.signals import let_pass
from pipediag.session.edits import Change

_MODULES = ("builtins", "itertools", "_csv")
_ENDLESS = (itertools.count, itertools.cycle, itertools.repeat)


def refuse_to_disturb(graph: Graph) -> None:
    """Refuse a pipeline that a trial would disturb, or that would give it other data.

    Nothing is called and no element is taken: what a generator refers to tells whether it reads
    from an iterator of the script's. Of caches on the pipeline itself others take the places.
    """
    for _, call in graph.calls():
        for value in _referred_to(call.generator, depth=4):
            # Of other classes, files among them, some can be wound back.
            plain = type(value).__module__ in _MODULES
            if plain and isinstance(value, Iterator) and not isinstance(value, _ENDLESS):
                raise NotReplayableError(
                    f"The generator of {said(call.operation)} reads from an iterator that can be "
                    "gone through only once."
                )
            if is_keras_class(type(value), ("OrderedEnqueuer",)):
                raise NotReplayableError(
                    "The batches come from workers of their own, which can serve one loop only."
                )
        for one in (call.operation, *call.inside):
            if one.kind == EARLIER:
                raise NotReplayableError(
                    "The dataset was made before Pipediag was there, so what it calls and keeps is "
                    "not known. Give a function that makes it."
                )
            if one.function is not None and one.function.side_effect is not None:
                raise NotReplayableError(
                    f"{at_start(said(one))} calls Python with side effects: "
                    f"{one.function.side_effect}. Trying an edit would call it more often than "
                    "the script does."
                )
            in_a_file = one.kind == "cache" and one.parameters.get("filename")
            if one.kind == "snapshot" or (in_a_file and one is not call.operation):
                raise NotReplayableError(
                    f"{at_start(said(one))} keeps elements in files, which a trial would share "
                    "with the script."
                )


def _referred_to(function: Any, depth: int) -> Iterator[Any]:
    """Yield what a callable and the functions that it refers to refer to: closed over, global,
    default, or kept by its object."""
    if depth == 0 or isinstance(function, type):
        return
    if isinstance(function, partial):
        values = [function.func, *function.args, *function.keywords.values()]
    else:
        owner = getattr(function, "__self__", None)
        plain = getattr(function, "__func__", function)
        if not inspect.isfunction(plain) and owner is None:
            owner, plain = function, getattr(type(function), "__call__", None)  # noqa: B004
        values = [owner]
        if inspect.isfunction(plain):
            closed_over = list(closure_of(plain).values())
            kept = [getattr(one, "__dict__", {}) for one in (owner, *closed_over)]
            names, known = plain.__code__.co_names, (plain.__globals__, *kept)
            values += [*closed_over, *(plain.__defaults__ or ())]
            values += [one for each in known for name, one in each.items() if name in names]
    for value in values:
        yield value
        if isinstance(value, partial) or inspect.isfunction(value):
            yield from _referred_to(value, depth - 1)


def whole_batches_parsed() -> AbstractContextManager[None]:
    """While functions are traced here, let `tf.io.parse_single_example` take batches too.

    It is `tf.io.parse_example` behind a check that there is one example. Without that a map of it
    can move behind its batch; that the batches are equal is found out on real elements.
    """
    from tensorflow.python.ops import parsing_ops

    checks = hasattr(parsing_ops, "_assert_scalar")
    unchecked = (parsing_ops, "_assert_scalar", lambda value, _: value)
    return attributes_set(*([unchecked] if checks else []))


_FILL_S = 5.0
"""A cache that takes longer to fill hands out what it holds by then again and again."""


Filled = dict[int, tuple[Any, Any]]
"""Full caches by the id of the dataset in front of them, which is kept so that its id stays its
own: each is filled once for all variants that have the same pipeline in front of it."""


def _filled_once(filled: Filled, inputs: list[Any]) -> Any:
    (dataset,) = inputs
    if id(dataset) not in filled:
        few = _until(dataset, time.time() + _FILL_S)
        cache = filled_cache(few.take(most_elements_in_memory(dataset)))
        filled[id(dataset)] = (dataset, cache)
    return filled[id(dataset)][1]


def without_caches(dataset: Any) -> Graph:
    """Return the pipeline without its own caches, for a look at a few elements."""
    graph = Graph(dataset)
    for node in _caches(graph):
        node.make = lambda inputs: inputs[0]
    return graph


def _caches(graph: Graph) -> list[Node]:
    return [node for node, call in graph.calls() if call.operation.kind == "cache"]


def _until(dataset: Any, deadline_s: float) -> Any:
    """Return the elements that come before a time of day, one at least."""
    from tensorflow.python.ops import logging_ops

    def in_time(number: Any, _: Any) -> Any:
        return (number < 1) | (logging_ops.timestamp() < deadline_s)

    return dataset.enumerate().take_while(in_time).map(lambda _, element: element)


def rebuild(
    dataset: Any,
    changes: Sequence[Change],
    endless: bool = False,
    filled: Filled | None = None,
) -> Any:
    """Return the pipeline that ends in `dataset`, with changes, as a tf.data.Dataset.

    What lies upstream of every change is used as it is, and without changes the dataset itself;
    the calls from there on are made again, so functions are traced again. Changes of the model are
    left aside. An `endless` pipeline starts over where the elements end; `filled` caches stand in
    for those of the script. Raises NotReplayableError where that can't be done, or not without
    disturbing the script.
    """
    graph = Graph(dataset)
    refuse_to_disturb(graph)
    if filled is not None:
        for node in _caches(graph):
            node.make = partial(_filled_once, filled)
    apply(graph, changes, endless)
    return built(graph)


def built(graph: Graph, top: Node | None = None, fixed: dict[int, Any] | None = None) -> Any:
    """Build a graph, leaving the script's random numbers as they are."""
    try:
        with random_state_kept(), whole_batches_parsed(), warnings.catch_warnings():
            # About options that replace others and parameters without effect: not the script's.
            warnings.simplefilter("ignore")
            return graph.build(top, fixed)
    except NotReplayableError:
        raise
    except Exception as error:
        let_pass(error)
        failure = first_line(error)
    raise NotReplayableError(f"TensorFlow refuses the changed pipeline: {failure}")
