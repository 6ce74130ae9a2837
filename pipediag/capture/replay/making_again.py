"""Calls that made a pipeline before pipediag came, read from the pipeline's objects.

Such a pipeline is made again by them and recorded; or, where the program reads it itself, the calls
are only written down. What can't be read is one source, with all that it reads from.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from pipediag.capture.callsites import defined_at, unwrap
from pipediag.capture.pipelines.calls import MARK, making_again
from pipediag.capture.pipelines.plan_recorder import PlanRecorder
from pipediag.capture.process import random_state_kept
from pipediag.capture.replay.refusal import NotReplayableError, first_line
from pipediag.capture.signals import let_pass

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

_Made = tuple[str, dict[str, Any]]
"""A method of datasets and what it was given."""


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


def _made(dataset: Any) -> _Made | None:
    """Return the call that the dataset's object tells of; None where that can't be made again."""
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
