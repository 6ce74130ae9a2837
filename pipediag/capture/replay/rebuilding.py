"""The pipeline as written, or with changes, as a new dataset.

The script's own caches are full in it, and none of the script's files: a block that began with an
empty cache would time its filling, and the script may be filling or reading the very cache.
"""

from __future__ import annotations

import inspect
import itertools
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from operator import attrgetter
from typing import Any

from pipediag.capture.callsites import defined_at, is_keras_class, unwrap
from pipediag.capture.pipelines.calls import MARK, making_again
from pipediag.capture.pipelines.functions import closure_of
from pipediag.capture.pipelines.plan_recorder import PlanRecorder
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


# Pipelines that were made before pipediag came: their calls are read from their objects, and made
# again or only written down. What can't be read is one source, with all that it reads from.

_MAP = {"map_func": "_map_func._func"}
_PARALLEL = {"num_parallel_calls": "_num_parallel_calls", "deterministic": "_deterministic"}
_BATCH = {"batch_size": "_batch_size", "drop_remainder": "_drop_remainder"}
_PADDED = {"padded_shapes": "_padded_shapes", "padding_values": "_padding_values"}
_SHUFFLE = {"buffer_size": "_buffer_size", "reshuffle_each_iteration": "_reshuffle_each_iteration"}
_CYCLE = {"cycle_length": "_cycle_length", "block_length": "_block_length"}
_CALLS: dict[str, tuple[str, dict[str, str]]] = {
    "_MapDataset": ("map", _MAP),
    "_ParallelMapDataset": ("map", {**_MAP, **_PARALLEL}),
    "_BatchDataset": ("batch", _BATCH),
    "_ParallelBatchDataset": ("batch", {**_BATCH, **_PARALLEL}),
    "_PaddedBatchDataset": ("padded_batch", {**_BATCH, **_PADDED}),
    "_ShuffleDataset": ("shuffle", _SHUFFLE),
    "_PrefetchDataset": ("prefetch", {"buffer_size": "_buffer_size"}),
    "_RepeatDataset": ("repeat", {"count": "_count"}),
    "_TakeDataset": ("take", {"count": "_count"}),
    "_SkipDataset": ("skip", {"count": "_count"}),
    "CacheDataset": ("cache", {"filename": "_filename"}),
    "_FilterDataset": ("filter", {"predicate": "_predicate._func"}),
    "_FlatMapDataset": ("flat_map", _MAP),
    "_InterleaveDataset": ("interleave", {**_MAP, **_CYCLE}),
    "_ParallelInterleaveDataset": ("interleave", {**_MAP, **_CYCLE, **_PARALLEL}),
    "_OptionsDataset": ("with_options", {"options": "options"}),
}
"""For a class of datasets, the method that makes one, and the attribute of each parameter."""
_READ: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys("batch_size block_length buffer_size count cycle_length".split(), int),
    "num_parallel_calls": int,
    "drop_remainder": bool,
    "deterministic": {"true": True, "false": False, "default": None}.get,
    "filename": lambda name: name.numpy().decode() or None,
    "options": lambda options: options(),
}
_DEFAULT_GRAPH_SEED = 87654321
"""TensorFlow's, in the place of a global seed where an operation alone was given one."""
_SOURCES = {
    "_TensorSliceDataset": "from_tensor_slices",
    "_TensorDataset": "from_tensors",
    "_RangeDataset": "range",
    "TextLineDatasetV2": "TextLineDataset",
    "FixedLengthRecordDatasetV2": "FixedLengthRecordDataset",
}
_FROM_GENERATOR = "tensorflow.python.data.ops.from_generator_op"


def made_again(dataset: Any, plan: PlanRecorder) -> Any:
    """Return the same pipeline, made by calls that are recorded.

    Its functions are traced again, the program's random numbers are left as they are, and a dataset
    whose call was recorded is used as it is. Raises NotReplayableError where TensorFlow or a
    function of the program refuses.
    """
    try:
        with random_state_kept():
            return _entered(dataset, plan, again=True)
    except Exception as error:
        let_pass(error)
        failure = first_line(error)
    raise NotReplayableError(f"{failure}.")


def enter_as_it_is(dataset: Any, plan: PlanRecorder) -> None:
    """Write down the calls that made a pipeline which the program reads itself; none is made."""
    _entered(dataset, plan, again=False)


def _entered(dataset: Any, plan: PlanRecorder, *, again: bool) -> Any:
    if MARK in dataset.__dict__:
        return dataset
    made = _made(dataset)
    if made is None:
        plan.enter_source(dataset, _kind(dataset))
        return dataset
    method, given = made
    upstream = _entered(dataset._inputs()[0], plan, again=again)
    function = _function(given)
    site = defined_at(function)  # the call itself can't be found any more
    if not again:
        by_framework = function is not None and site is None
        plan.enter_call(dataset, method, (upstream,), given, site, by_framework)
        return dataset
    name = getattr(dataset, "_name", None)
    token = making_again.set((site,))
    try:
        return getattr(upstream, method)(**given, **({"name": name} if name is not None else {}))
    finally:
        making_again.reset(token)


def _made(dataset: Any) -> tuple[str, dict[str, Any]] | None:
    """Return the method and the arguments by which a dataset was made; None where that can't be
    done again."""
    known = _CALLS.get(type(dataset).__name__)
    if known is None or len(dataset._inputs()) != 1:
        return None
    method, parameters = known
    given = {}
    for name, attribute in parameters.items():
        found = attrgetter(attribute)(dataset)
        given[name] = _READ[name](found) if name in _READ else found
    if method == "shuffle" and int(dataset._seed) == _DEFAULT_GRAPH_SEED:
        given["seed"] = int(dataset._seed2)
    if getattr(dataset, "_use_unbounded_threadpool", False):
        given["use_unbounded_threadpool"] = True
    # Frameworks call tf.data for the user, as `from_generator` does.
    module = getattr(unwrap(_function(given)), "__module__", None) or ""
    if module.startswith("tensorflow."):
        return None
    return method, {name: value for name, value in given.items() if value is not None}


def _function(given: dict[str, Any]) -> Any:
    return given.get("map_func", given.get("predicate"))


def _kind(dataset: Any) -> str:
    name = type(dataset).__name__
    function = getattr(getattr(dataset, "_map_func", None), "_func", None)
    if getattr(function, "__module__", None) == _FROM_GENERATOR:
        return "from_generator"
    return _SOURCES.get(name, name.strip("_").removesuffix("V2"))
