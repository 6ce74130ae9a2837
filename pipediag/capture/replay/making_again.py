"""A pipeline that was made before pipediag came, and the calls that its objects tell of.

It is made again by them and recorded with that, apart from the program's own: no shuffle of the
program counts its passes. Or, where the program reads it itself, the calls are only written down.
What can't be told is used as it is, with all that it reads from, as one source.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pipediag.capture.callsites import CallSite, is_users, unwrap
from pipediag.capture.pipelines.calls import MARK, MadeAgain, making_again
from pipediag.capture.pipelines.plan_recorder import PlanRecorder
from pipediag.capture.replay.rebuilding import random_state_kept
from pipediag.capture.replay.refusal import NotReplayableError, first_line
from pipediag.capture.signals import let_pass

_DEFAULT_GRAPH_SEED = 87654321
"""TensorFlow's, in the place of a global seed where an operation alone was given one."""
_DETERMINISTIC = {"true": True, "false": False, "default": None}
_SOURCES = {
    "_TensorSliceDataset": "from_tensor_slices",
    "_TensorDataset": "from_tensors",
    "_RangeDataset": "range",
    "TextLineDatasetV2": "TextLineDataset",
    "FixedLengthRecordDatasetV2": "FixedLengthRecordDataset",
}
_FROM_GENERATOR = "tensorflow.python.data.ops.from_generator_op"


@dataclass(frozen=True)
class _Made:
    """A method of tf.data and what it was given, after the dataset that it was called on."""

    method: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    function: Any = None
    """The user's, among them."""


def made_again(dataset: Any, plan: PlanRecorder) -> Any:
    """The same pipeline, made by calls that are recorded.

    Functions of it are traced again, and the program's random numbers are left as they are. A
    dataset whose call was recorded is used as it is.

    Raises:
        NotReplayableError: TensorFlow or a function of the program refuses, or its objects are of
            a kind that can't be read.
    """
    try:
        with random_state_kept():
            return _again(dataset, plan)
    except Exception as error:
        let_pass(error)
        failure = first_line(error)
    raise NotReplayableError(f"{failure}.")


def enter_as_it_is(dataset: Any, plan: PlanRecorder) -> None:
    """Write down the calls that made a pipeline which the program reads itself; none is made."""
    if MARK in dataset.__dict__:
        return
    made = _made(dataset)
    if made is None:
        plan.enter_source(dataset, _kind(dataset))
        return
    upstream = dataset._inputs()[0]
    enter_as_it_is(upstream, plan)
    site = _site(made.function)
    by_framework = made.function is not None and site is None
    args = (upstream, *made.args)
    plan.enter_call(dataset, made.method, args, made.kwargs, site, by_framework)


def _made(dataset: Any) -> _Made | None:
    """The call that the dataset's object tells of; None where that can't be made again."""
    tell = _CALLS.get(type(dataset).__name__)
    made = tell(dataset) if tell is not None and len(dataset._inputs()) == 1 else None
    if made is None or (made.function is not None and not _is_the_programs(made.function)):
        return None
    return made


def _again(dataset: Any, plan: PlanRecorder) -> Any:
    if MARK in dataset.__dict__:
        return dataset
    made = _made(dataset)
    if made is None:
        plan.enter_source(dataset, _kind(dataset))
        return dataset
    upstream = _again(dataset._inputs()[0], plan)
    name = getattr(dataset, "_name", None)
    kwargs = {**made.kwargs, "name": name} if name is not None else made.kwargs
    token = making_again.set(MadeAgain(_site(made.function)))
    try:
        return getattr(upstream, made.method)(*made.args, **kwargs)
    finally:
        making_again.reset(token)


def _is_the_programs(function: Any) -> bool:
    """Frameworks call tf.data for the user, as `from_generator` does."""
    module = getattr(unwrap(function), "__module__", None) or ""
    return not module.startswith("tensorflow.")


def _kind(dataset: Any) -> str:
    name = type(dataset).__name__
    function = getattr(getattr(dataset, "_map_func", None), "_func", None)
    if getattr(function, "__module__", None) == _FROM_GENERATOR:
        return "from_generator"
    return _SOURCES.get(name, name.strip("_").removesuffix("V2"))


def _site(function: Any) -> CallSite | None:
    """Where the function is defined: the call itself can't be found any more."""
    code = getattr(unwrap(function), "__code__", None)
    if code is None or not is_users(code.co_filename):
        return None
    return CallSite(code.co_filename, code.co_firstlineno, code.co_name, by_framework=False)


def _map(dataset: Any) -> _Made:
    function = dataset._map_func._func
    return _Made("map", (function,), {}, function)


def _parallel_map(dataset: Any) -> _Made:
    function = dataset._map_func._func
    given = _parallel(dataset)
    if getattr(dataset, "_use_unbounded_threadpool", False):
        given["use_unbounded_threadpool"] = True
    return _Made("map", (function,), given, function)


def _parallel(dataset: Any) -> dict[str, Any]:
    given = {"num_parallel_calls": int(dataset._num_parallel_calls)}
    deterministic = _DETERMINISTIC[getattr(dataset, "_deterministic", "default")]
    return given if deterministic is None else {**given, "deterministic": deterministic}


def _batch(dataset: Any) -> _Made:
    given = {"drop_remainder": bool(dataset._drop_remainder)}
    return _Made("batch", (int(dataset._batch_size),), given)


def _parallel_batch(dataset: Any) -> _Made:
    given = {"drop_remainder": bool(dataset._drop_remainder), **_parallel(dataset)}
    return _Made("batch", (int(dataset._batch_size),), given)


def _padded_batch(dataset: Any) -> _Made:
    given = {
        "padded_shapes": dataset._padded_shapes,
        "padding_values": dataset._padding_values,
        "drop_remainder": bool(dataset._drop_remainder),
    }
    return _Made("padded_batch", (int(dataset._batch_size),), given)


def _shuffle(dataset: Any) -> _Made:
    given: dict[str, Any] = {"reshuffle_each_iteration": dataset._reshuffle_each_iteration}
    if int(dataset._seed) == _DEFAULT_GRAPH_SEED:
        given["seed"] = int(dataset._seed2)
    return _Made("shuffle", (int(dataset._buffer_size),), given)


def _prefetch(dataset: Any) -> _Made:
    return _Made("prefetch", (int(dataset._buffer_size),))


def _counted(method: str) -> Callable[[Any], _Made]:
    return lambda dataset: _Made(method, (int(dataset._count),))


def _cache(dataset: Any) -> _Made:
    path = dataset._filename.numpy().decode()
    return _Made("cache", (path,) if path else ())


def _filter(dataset: Any) -> _Made:
    function = dataset._predicate._func
    return _Made("filter", (function,), {}, function)


def _flat_map(dataset: Any) -> _Made:
    function = dataset._map_func._func
    return _Made("flat_map", (function,), {}, function)


def _interleave(dataset: Any) -> _Made:
    function = dataset._map_func._func
    given = {
        "cycle_length": int(dataset._cycle_length),
        "block_length": int(dataset._block_length),
    }
    return _Made("interleave", (function,), given, function)


def _parallel_interleave(dataset: Any) -> _Made:
    made = _interleave(dataset)
    return _Made("interleave", made.args, {**made.kwargs, **_parallel(dataset)}, made.function)


def _options(dataset: Any) -> _Made:
    return _Made("with_options", (dataset.options(),))


_CALLS: dict[str, Callable[[Any], _Made]] = {
    "_MapDataset": _map,
    "_ParallelMapDataset": _parallel_map,
    "_BatchDataset": _batch,
    "_ParallelBatchDataset": _parallel_batch,
    "_PaddedBatchDataset": _padded_batch,
    "_ShuffleDataset": _shuffle,
    "_PrefetchDataset": _prefetch,
    "_RepeatDataset": _counted("repeat"),
    "_TakeDataset": _counted("take"),
    "_SkipDataset": _counted("skip"),
    "CacheDataset": _cache,
    "_FilterDataset": _filter,
    "_FlatMapDataset": _flat_map,
    "_InterleaveDataset": _interleave,
    "_ParallelInterleaveDataset": _parallel_interleave,
    "_OptionsDataset": _options,
}
