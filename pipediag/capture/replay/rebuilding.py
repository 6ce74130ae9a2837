"""The pipeline as written, or with changes, as a new dataset.

The script's own caches are full in it, and none of the script's files: a block that began with an
empty cache would time its filling, and the script may be filling or reading the very cache.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pipediag.capture.process import random_state_kept
from pipediag.capture.replay.changes import apply
from pipediag.capture.replay.graph import (
    Graph,
    Node,
    OnElements,
    filled_cache,
    most_elements_in_memory,
)
from pipediag.capture.replay.preconditions import (
    refuse_files_of_its_own,
    refuse_one_shot_sources,
    refuse_side_effects,
)
from pipediag.capture.replay.refusal import NotReplayableError, first_line
from pipediag.capture.signals import let_pass
from pipediag.session.edits import Change


@contextmanager
def whole_batches_parsed() -> Iterator[None]:
    """While functions are traced here, let `tf.io.parse_single_example` take batches too.

    It is `tf.io.parse_example` behind a check that there is one example. Without that a map of it
    can move behind its batch; that the batches are equal is found out on real elements.
    """
    from tensorflow.python.ops import parsing_ops

    check = getattr(parsing_ops, "_assert_scalar", None)
    if check is None:
        yield
        return
    parsing_ops._assert_scalar = lambda value, _: value
    try:
        yield
    finally:
        parsing_ops._assert_scalar = check


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
        node.make = lambda inputs: inputs[0]


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
    caches: FilledCaches | None = None,
    layers: OnElements | None = None,
) -> Any:
    """Return the pipeline that ends in `dataset`, with changes, as a tf.data.Dataset.

    What lies upstream of every change is used as it is, and without changes the dataset itself;
    the calls from there on are made again, so functions are traced again. Raises NotReplayableError
    where that can't be done, or not without disturbing the script.

    Args:
        dataset: the last dataset of the pipeline, which the loop consumes.
        changes: what to change, in any order; changes of the model are left aside.
        endless: start over where the elements end.
        caches: stand in for the caches of the script, which are left alone then.
        layers: what layers do that are moved here from the model.
    """
    graph = Graph(dataset, layers)
    refuse_one_shot_sources(graph)
    refuse_side_effects(graph)
    refuse_files_of_its_own(graph)
    if caches is not None:
        caches.stand_in(graph)
    apply(graph, changes, endless)
    return built(graph)


def built(graph: Graph, top: Node | None = None, fixed: dict[Node, Any] | None = None) -> Any:
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
