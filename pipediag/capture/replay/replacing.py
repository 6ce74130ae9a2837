"""Operations that a change replaces by another kind with the same function or the same files.

`bucket_by_sequence_length` takes the place of a batch, workers that of the generator which Keras
makes of a PyDataset, and stacks of elements that of a generator's single ones. A map has processes
call its Python; one that moves behind a batch, or gets batches of its own, calls it for each row.
"""

from __future__ import annotations

import importlib
import random
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count, islice
from typing import Any

from pipediag.capture.callsites import is_keras_class, is_users
from pipediag.capture.pipelines.functions import random_state_of, users_side_effect
from pipediag.capture.replay import NotReplayableError, said
from pipediag.capture.replay.graph import Make, Node, called_again, given_arguments
from pipediag.capture.replay.sources import exchanged
from pipediag.session.edits import AUTOTUNE, SHORTEST_CUT, Move, Replace
from pipediag.tensorflow_names import PYTHON_OPERATIONS
from pipediag.vocabulary import Scalar

Attribute = tuple[Any, str, Any]
"""An object, the name of an attribute, and another value for it."""


@contextmanager
def attributes_set(*attributes: Attribute) -> Iterator[None]:
    """Give objects of TensorFlow or of the script other attributes, within the context."""
    with ExitStack() as undo:
        for thing, name, value in attributes:
            undo.callback(setattr, thing, name, getattr(thing, name))
            setattr(thing, name, value)
        yield


_QUEUE = 10
"""Keras's own `max_queue_size`."""
_LEAVE_S = 5.0
"""Longest wait for calls that run when a pipeline is left."""


def read_by_workers(node: Node, parameters: dict[str, Scalar], _inputs: list[Any]) -> Any:
    """Return the batches of the same object, made by threads, as `fit` has them with its `workers`.

    Processes are not started: they would copy a process in the middle of its work.
    """
    assert node.call is not None
    adapter: Any = getattr(node.call.generator, "__self__", None)
    if not is_keras_class(type(adapter), ("PyDatasetAdapter",)):
        raise NotReplayableError("The batches don't come from a PyDataset of Keras 3.")
    workers = int(parameters["workers"] or 1)
    made_by = adapter.py_dataset.__getitem__
    changed = users_side_effect(made_by)
    changed = changed or _mixed_by_threads(_copied(made_by), _indices(adapter), workers)
    if changed is not None:
        raise NotReplayableError(
            f"Its `__getitem__` can't be called from several threads at once: {changed}."
        )
    queued = int(parameters.get("max_queue_size") or _QUEUE)

    def batches() -> Iterator[Any]:
        made = _made_ahead(made_by, _indices(adapter), workers, queued)
        try:
            for batch in made:
                yield adapter._standardize_batch(batch)
        finally:
            made.close()

    from tensorflow.python.data.ops import dataset_ops

    return dataset_ops.DatasetV2.from_generator(batches, output_signature=node.dataset.element_spec)


def _indices(adapter: Any) -> Iterable[int]:
    """Return the order of the batches in an epoch; the script's random numbers are left alone."""
    batches = adapter.py_dataset.num_batches
    if batches is None:
        return count()
    indices = list(range(batches))
    if adapter.shuffle:
        random.Random(len(indices)).shuffle(indices)
    return indices


_COMPARED = 32
"""Most batches that are made alone and by threads, to see whether these mix them."""
_COMPARE_S = 0.5
"""Time for the batches that are made alone."""


def _copied(make: Callable[[int], Any]) -> Callable[[int], list[Any]]:
    """Return a function of copies of a batch's arrays: the next batch may be written into them."""
    from tensorflow.python.util import nest

    np = importlib.import_module("numpy")
    return lambda index: [np.array(each) for each in nest.flatten(make(index))]


def _mixed_by_threads(
    make: Callable[[int], list[Any]], indices: Iterable[int], workers: int
) -> str | None:
    """Return that threads make other batches than calls in turn do; None where also these differ,
    as with random numbers, and where all are alike."""
    alone, ends = {}, time.monotonic() + _COMPARE_S
    for index in islice(indices, _COMPARED):
        alone[index] = make(index)
        if time.monotonic() > ends:
            break
    if not all(map(_are_equal, alone.values(), map(make, alone))):
        return None
    by_threads = _made_ahead(make, alone, workers, len(alone))
    equal = all(map(_are_equal, alone.values(), by_threads))
    by_threads.close()
    return None if equal else "threads make other batches of it"


def _are_equal(one: list[Any], other: list[Any]) -> bool:
    np = importlib.import_module("numpy")
    return len(one) == len(other) and all(map(np.array_equal, one, other))


def _made_ahead(
    make: Callable[[int], Any], indices: Iterable[int], workers: int, queued: int
) -> Generator[Any, None, None]:
    """Yield results in the order of the indices, with `queued` of them requested ahead."""
    # Not imported above: it imports `logging`, whose exit handler must be registered after that of
    # the script's end. TensorFlow has imported both by now.
    futures = importlib.import_module("concurrent.futures")
    threads = futures.ThreadPoolExecutor(workers, thread_name_prefix="pipediag-worker")
    asked: deque[Any] = deque()
    try:
        for index in indices:
            asked.append(threads.submit(make, index))
            if len(asked) > queued:
                yield asked.popleft().result()
        while asked:
            yield asked.popleft().result()
    finally:
        # A call that still runs would take its time from the pipeline that is measured next.
        threads.shutdown(wait=False, cancel_futures=True)
        futures.wait([one for one in asked if not one.cancelled()], _LEAVE_S)


def stacked(node: Node, parameters: dict[str, Scalar], _inputs: list[Any]) -> Any:
    """Return the elements of the script's generator, of which TensorFlow takes several at once."""
    from tensorflow.python.framework import ops
    from tensorflow.python.util import nest

    assert node.call is not None
    shapes = [spec.shape for spec in nest.flatten(node.dataset.element_spec)]
    if any(shape.rank is None for shape in shapes):
        raise NotReplayableError(
            "Its call does not say which shapes its elements have: give it an `output_signature`, "
            "such as `tf.TensorSpec([], tf.int32)`, in place of `output_types`."
        )
    # The elements that a check reads may all be of one size.
    if any(None in shape[1:] for shape in shapes):
        raise NotReplayableError("The shapes of its elements vary in more than one dimension.")
    # NumPy must not be imported for a script that does without it.
    in_chunks = importlib.import_module("pipediag.in_chunks").in_chunks
    generator, *given = node.call.args
    # It gets them from tensors.
    bound = partial(generator, *(ops.convert_to_tensor(one).numpy() for one in given))
    return in_chunks(bound, node.dataset.element_spec, parameters["elements"])


def for_batches(node: Node, change: Move) -> Make | None:
    """Return the function that makes a map of single elements for batches; None to make it as it
    is.

    Its Python is called for each row of a batch, in one call, and its functions run the code of the
    change's sources. With `vectorized`, all of it is left to `tf.vectorized_map`.
    """
    if change.vectorized:
        return partial(_vectorized, node)
    batched = _calls_python(node) or change.sources
    return partial(_made, node, change.sources) if batched else None


def _calls_python(node: Node) -> bool:
    function = node.operation.function if node.operation is not None else None
    return function is not None and not PYTHON_OPERATIONS.isdisjoint(function.graph_ops)


def _made(node: Node, sources: dict[str, str], inputs: list[Any]) -> Any:
    of_rows = _python_of_rows() if _calls_python(node) else ()
    with attributes_set(*exchanged(sources), *of_rows):
        return called_again(node, inputs)


def in_batches(node: Node, change: Replace, inputs: list[Any]) -> Any:
    """Return what a map or a filter makes whose function takes batches of elements: elements again,
    or batches for the next one."""
    from tensorflow.python.util import nest

    (dataset,), given, batches = inputs, change.parameters, inputs[0]
    if given.get("first", True):
        shapes = [getattr(spec, "shape", None) for spec in nest.flatten(dataset.element_spec)]
        # The elements that a check reads may all be of one size.
        if not all(shape is not None and shape.is_fully_defined() for shape in shapes):
            raise NotReplayableError("The shapes of its elements vary, so they can't be batched.")
        batches = dataset.batch(given["elements"])
    if node.call is None or node.call.operation.kind != "filter":
        made = _made(node, change.sources, [batches])
    else:
        rows_where = importlib.import_module("pipediag.in_chunks").rows_where
        with attributes_set(*exchanged(change.sources)):
            made = batches.map(rows_where(given_arguments(node, inputs)["predicate"]))
    # A trial needs no length; a patch keeps it.
    return made.unbatch() if given.get("last", True) else made


def _vectorized(node: Node, inputs: list[Any]) -> Any:
    from tensorflow.python.ops.parallel_for import control_flow_ops

    function = given_arguments(node, inputs)["map_func"]

    def of_rows(*rows: Any) -> Any:
        return control_flow_ops.vectorized_map(lambda row: function(*row), rows, warn=False)

    return called_again(node, inputs, map_func=of_rows)


_AUTOGRAPH_CALL = "autograph/impl/api.py"


def _python_of_rows() -> list[Attribute]:
    """Return attributes that give a function's Python batches, and its shapes a first dimension.

    The patch writes the same: `tf.py_function(for_each_row(f), ...)`, `x.set_shape([None, 3])`.
    """
    from tensorflow.python.framework import tensor, tensor_shape
    from tensorflow.python.ops import array_ops, script_ops

    made = importlib.import_module("pipediag.in_chunks")
    py_func, ensured = script_ops._internal_py_func, array_ops.ensure_shape
    set_shape = tensor.Tensor.set_shape

    def of_batch(shape: Any) -> Any:
        return tensor_shape.TensorShape([None]).concatenate(tensor_shape.TensorShape(shape))

    def called_for_rows(func: Any, *args: Any, **kwargs: Any) -> Any:
        return py_func(made.for_each_row(func), *args, **kwargs)

    def ensured_of_batch(input: Any, shape: Any, name: Any = None) -> Any:
        return ensured(input, of_batch(shape), name)

    def set_of_batch(self: Any, shape: Any) -> None:
        caller = sys._getframe(1).f_code.co_filename
        users = is_users(caller) or caller.replace("\\", "/").endswith(_AUTOGRAPH_CALL)
        set_shape(self, of_batch(shape) if users else shape)

    # AutoGraph calls a function with this attribute as it is.
    set_of_batch.autograph_info__ = None  # type: ignore[attr-defined]
    return [
        (script_ops, "_internal_py_func", called_for_rows),
        (array_ops, "ensure_shape", ensured_of_batch),
        (tensor.Tensor, "set_shape", set_of_batch),
    ]


def padding_cut(inputs: list[Any], *, together: bool = True) -> Any:
    """Return the batches with rows of ids as long as the longest of each batch needs: of all inputs
    of one width, or of each input."""
    from tensorflow.python.autograph.impl import api
    from tensorflow.python.util import nest

    (dataset,) = inputs
    spec = dataset.element_spec
    # Features are the first of several parts, such as targets.
    features = spec[0] if isinstance(spec, tuple) else spec
    if not any(map(_is_row_of_ids, nest.flatten(features))):
        raise NotReplayableError("The batches hold no rows of ids that are all of one length.")
    cut = importlib.import_module("pipediag.in_chunks").cut_padding
    called = api.do_not_convert(lambda *batch: cut(*batch, together=together))
    return dataset.map(called, num_parallel_calls=AUTOTUNE)


def _is_row_of_ids(part: Any) -> bool:
    shape = getattr(part, "shape", None)
    if shape is None or shape.rank != 2 or not part.dtype.is_integer:
        return False
    return (shape[1] or 0) >= SHORTEST_CUT


def bucketed(node: Node, parameters: dict[str, Scalar], inputs: list[Any]) -> Any:
    """Return batches of the same size as before, each of elements of similar length."""
    from tensorflow.python.data.util import nest

    assert node.call is not None
    (dataset,) = inputs
    given = given_arguments(node, inputs)
    shapes = [getattr(spec, "shape", None) for spec in nest.flatten(dataset.element_spec)]
    if not any(shape is not None and shape.rank and shape[0] is None for shape in shapes):
        raise NotReplayableError(
            f"The elements of {said(node.call.operation)} all have the same shape, so there are no "
            "lengths to sort them by."
        )
    made = importlib.import_module("pipediag.in_chunks").in_buckets
    others = {name: value for name, value in parameters.items() if name != "to_longest"}
    kept = ["padding_values", "drop_remainder", "name"]
    if others == parameters:
        kept.append("padded_shapes")
    given = {name: given[name] for name in ("batch_size", *kept) if name in given}
    return made(dataset, **given, **others)


_ANSWER_S = 10.0
"""Longest wait for a process's answer in a trial. Own choice: a copy of a process in the middle of
its work may wait for a lock for ever."""


def called_in_processes(node: Node, processes: int) -> None:
    """Have processes call the Python of a map's `numpy_function`s, one call in each.

    This holds however the map is made: one that moved behind a batch hands over whole batches.
    """
    from tensorflow.python.ops import script_ops

    make, py_func = node.make, script_ops._internal_py_func
    in_processes = importlib.import_module("pipediag.in_chunks").in_processes

    def called_elsewhere(func: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("use_eager_py_func"):
            raise NotReplayableError("A `py_function` uses TensorFlow, which a process can't.")
        state = users_side_effect(func) or random_state_of(func)
        if state is not None:
            raise NotReplayableError(f"Its function can't be called in processes: {state}.")
        return py_func(in_processes(func, processes, _ANSWER_S), *args, **kwargs)

    # AutoGraph calls a function with this attribute as it is.
    called_elsewhere.autograph_info__ = None  # type: ignore[attr-defined]

    def made(inputs: list[Any]) -> Any:
        with attributes_set((script_ops, "_internal_py_func", called_elsewhere)):
            return make(inputs) if make is not None else called_again(node, inputs)

    node.parameters["num_parallel_calls"] = processes
    node.make = made


def _interleaved(
    node: Node, parameters: dict[str, Scalar], inputs: list[Any], *, at_once: bool = False
) -> Any:
    """Return an interleave, whose function is called for several elements `at_once` on request.

    A plain one calls it for one element after the other, whatever its number of calls.
    """
    from tensorflow.python.data.ops import dataset_ops

    given = given_arguments(node, inputs)
    make: Callable[..., Any] = given["map_func"]

    def one(*element: Any) -> Any:
        return dataset_ops.DatasetV2.from_tensors(element).flat_map(make)

    (dataset,) = inputs
    return dataset.interleave(one if at_once else make, name=given.get("name"), **parameters)


def _side_by_side(node: Node, parameters: dict[str, Scalar], _inputs: list[Any]) -> Any:
    """Return copies of one source, each with an iterator of its own, an element of each in turn."""
    from tensorflow.python.data.ops import dataset_ops

    source, copies = node.dataset, parameters["cycle_length"]
    return dataset_ops.DatasetV2.range(copies).interleave(lambda _: source, **parameters)


_Replacing = Callable[[Node, dict[str, Scalar], list[Any]], Any]
REPLACEMENTS: dict[tuple[str, str], _Replacing] = {
    ("flat_map", "interleave"): _interleaved,
    ("flat_map", "parallel_flat_map"): partial(_interleaved, at_once=True),
    ("interleave", "parallel_flat_map"): partial(_interleaved, at_once=True),
    ("from_generator", "interleave"): _side_by_side,
    ("from_generator", "PyDataset"): read_by_workers,
    ("from_generator", "in_chunks"): stacked,
    ("padded_batch", "bucket_by_sequence_length"): bucketed,
}
"""Functions that make another kind of operation in the place of one, by both kinds."""
