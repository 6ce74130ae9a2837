"""The pipeline as written, or with changes, as a new dataset."""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pipediag.capture.replay.batch_forms import whole_batches_parsed
from pipediag.capture.replay.changes import apply
from pipediag.capture.replay.graph import Graph, Node, OnElements
from pipediag.capture.replay.one_shot import one_shot_source
from pipediag.capture.replay.own_caches import FilledCaches
from pipediag.capture.replay.preconditions import (
    refuse_changed_files,
    refuse_files_of_its_own,
    refuse_side_effects,
)
from pipediag.capture.replay.refusal import NotReplayableError, first_line
from pipediag.capture.signal_handlers import let_pass
from pipediag.session.edits import Change


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
