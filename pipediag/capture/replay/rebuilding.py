"""The pipeline as written, or with changes, as a new dataset.

The script's own caches are full in it, and none of the script's files: a block that began with an
empty cache would time its filling, by which an edit was refuted at 0.47x. And the script may be
filling or reading the very cache, in memory or in a file of its own.
"""

from __future__ import annotations

import random
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from pipediag.capture.replay.changes import apply
from pipediag.capture.replay.graph import Graph, Node, OnElements
from pipediag.capture.replay.inserting import filled_cache, most_elements_in_memory
from pipediag.capture.replay.preconditions import (
    one_shot_source,
    refuse_changed_files,
    refuse_files_of_its_own,
    refuse_side_effects,
)
from pipediag.capture.replay.refusal import NotReplayableError, first_line
from pipediag.capture.signals import let_pass
from pipediag.session.edits import Change


@contextmanager
def whole_batches_parsed() -> Iterator[None]:
    """While functions are traced here, `tf.io.parse_single_example` takes batches too.

    It is `tf.io.parse_example` behind a check that there is one example, whichever way the script
    imported it. Without that check a map of it can move behind its batch; whether the batches are
    equal is found out on real elements, as for any other function.
    """
    from tensorflow.python.ops import parsing_ops

    check = getattr(parsing_ops, "_assert_scalar", None)
    if check is None:
        yield
        return
    parsing_ops._assert_scalar = _unchecked
    try:
        yield
    finally:
        parsing_ops._assert_scalar = check


def _unchecked(value: Any, name: str) -> Any:  # noqa: ARG001
    return value


FILL_S = 5.0
"""A cache that takes longer to fill hands out what it holds by then again and again."""


class FilledCaches:
    """Fills each cache once for all arms that have the same pipeline in front of it."""

    def __init__(self, seconds: float = FILL_S) -> None:
        self._seconds = seconds
        self._filled: dict[int, tuple[Any, Any]] = {}

    def stand_in(self, graph: Graph) -> None:
        """Put a full cache in the place of each of the pipeline's own."""
        for node in _caches(graph):
            node.make = self._of

    def clear(self) -> None:
        """Give the memory back."""
        self._filled.clear()

    def _of(self, inputs: list[Any]) -> Any:
        (dataset,) = inputs
        known = self._filled.get(id(dataset))
        if known is None:
            few = _until(dataset, time.time() + self._seconds)
            filled = filled_cache(few.take(most_elements_in_memory(dataset)))
            # With the dataset, so that its id stays its own.
            known = self._filled[id(dataset)] = (dataset, filled)
        return known[1]


def pass_caches_by(graph: Graph) -> None:
    """Leave the pipeline's own caches out, for a look at a few elements."""
    for node in _caches(graph):
        node.make = _only_input


def _caches(graph: Graph) -> list[Node]:
    return [node for node, call in graph.calls() if call.operation.kind == "cache"]


def _only_input(inputs: list[Any]) -> Any:
    (dataset,) = inputs
    return dataset


def _until(dataset: Any, deadline_s: float) -> Any:
    """The elements that come before a time of day, one at least."""
    in_time = partial(_in_time, deadline_s)
    return dataset.enumerate().take_while(in_time).map(_without_number)


def _in_time(deadline_s: float, number: Any, *_: Any) -> Any:
    from tensorflow.python.ops import logging_ops

    return (number < 1) | (logging_ops.timestamp() < deadline_s)


def _without_number(_: Any, element: Any) -> Any:
    return element


def rebuild(
    dataset: Any,
    changes: Sequence[Change],
    endless: bool = False,
    caches: FilledCaches | None = None,
    layers: OnElements | None = None,
) -> Any:
    """The pipeline that ends in `dataset`, with changes, as a tf.data.Dataset.

    What lies upstream of every change is used as it is; the calls from there on are made again, so
    functions are traced again. Changes of the model are left aside. Without changes the dataset
    itself comes back.

    Args:
        dataset: the last dataset of the pipeline, which the loop consumes.
        changes: what to change; their order does not matter.
        endless: start over where the elements end.
        caches: stand in for the caches of the script, which are left alone then.
        layers: what layers do that are moved here from the model.

    Raises:
        NotReplayableError: a change that can't be made here, a source that can be read once, files
            that have changed or that a trial would share, or a function with side effects.
    """
    refusal = one_shot_source(dataset)
    if refusal is not None:
        raise NotReplayableError(refusal)
    graph = Graph(dataset, layers)
    refuse_side_effects(graph)
    refuse_changed_files(graph)
    refuse_files_of_its_own(graph)
    if caches is not None:
        caches.stand_in(graph)
    apply(graph, changes, endless)
    return built(graph)


def built(graph: Graph, top: Node | None = None, fixed: dict[Node, Any] | None = None) -> Any:
    """Build a graph, leaving the script's random numbers as they are.

    Raises:
        NotReplayableError: TensorFlow or a function of the script refuses.
    """
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


@contextmanager
def random_state_kept() -> Iterator[None]:
    """Building a shuffle and tracing a function draw numbers that the script would draw later."""
    from tensorflow.python.eager import context

    numpy = sys.modules.get("numpy")
    eager = getattr(context.context(), "_rng", None)
    eager_state = eager.getstate() if eager is not None else None
    python_state = random.getstate()
    numpy_state = numpy.random.get_state() if numpy is not None else None
    try:
        yield
    finally:
        random.setstate(python_state)
        if eager is not None:
            eager.setstate(eager_state)
        if numpy is not None:
            numpy.random.set_state(numpy_state)
