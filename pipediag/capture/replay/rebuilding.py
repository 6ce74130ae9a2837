"""The pipeline as written, or with changes, as a new dataset, and checks on real elements that it
hands out the same batches, before it is timed.

The script's own caches are full in it, but for those that never serve an element, and none of the
script's files: a block that began with an empty cache would time its filling, and the script may be
filling or reading the very cache."""

from __future__ import annotations

import inspect
import itertools
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from math import prod
from types import CodeType
from typing import Any, NamedTuple

from pipediag.capture.callsites import is_keras_class, is_users, unwrap
from pipediag.capture.loops.syntax import reordered_in_loops, script_trees
from pipediag.capture.pipelines.values import closure_of
from pipediag.capture.process import let_pass, random_state_kept
from pipediag.capture.replay import NotReplayableError, at_start, first_line, said
from pipediag.capture.replay.changes import apply
from pipediag.capture.replay.elements import (
    Reading,
    dataset_of,
    difference_of,
    first_elements,
)
from pipediag.capture.replay.graph import (
    Graph,
    Node,
    filled_cache,
    is_random,
    most_elements_in_memory,
    nodes_up_to,
    reorders,
)
from pipediag.capture.replay.replacing import attributes_set
from pipediag.session.edits import (
    PASSES_DIFFER,
    RESULTS_DIFFER,
    Change,
    Check,
    Move,
    adds_cache,
    as_written,
    touched,
)
from pipediag.session.recording import EARLIER
from pipediag.tensorflow_names import BATCHING
from pipediag.vocabulary import Scalar

_MODULES = ("builtins", "itertools", "_csv")
_ENDLESS = (itertools.count, itertools.cycle, itertools.repeat)


def refuse_to_disturb(graph: Graph) -> None:
    """Refuse a pipeline that a trial would disturb, or that would give it other data.

    Nothing is called and no element is taken: the objects that a generator refers to show whether
    it reads from an iterator of the script's. Caches on the pipeline itself are replaced by others.
    """
    for _, call in graph.calls():
        for value in _referred_to(call.generator, depth=4):
            # Iterators of other classes, files among them, can sometimes be wound back.
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
    """Yield the objects that a callable, and the functions that it refers to, refer to: closed
    over, global, default, or kept by its object."""
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
    """Let `tf.io.parse_single_example` take batches too, while functions are traced here.

    It is `tf.io.parse_example` behind a check that there is one example. Without that check, a map
    of it can move behind its batch; real elements show if the batches are equal.
    """
    from tensorflow.python.ops import parsing_ops

    checks = hasattr(parsing_ops, "_assert_scalar")
    unchecked = (parsing_ops, "_assert_scalar", lambda value, _: value)
    return attributes_set(*([unchecked] if checks else []))


_FILL_S = 5.0
"""Longest time to fill a cache; a cache that takes longer repeats what it holds by then."""


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
        node.make = _handed_on
    return graph


def _handed_on(inputs: list[Any]) -> Any:
    return inputs[0]


def _caches(graph: Graph) -> list[Node]:
    return [node for node, call in graph.calls() if call.operation.kind == "cache"]


def _never_completes(cache: Node) -> bool:
    """Return True for a cache behind an endless repeat, which serves no element."""
    above = [node.operation for node in nodes_up_to(cache) if node.operation is not None]
    counts = [one.parameters.get("count") for one in above if one.kind == "repeat"]
    length = above[-1].cardinality
    # What is repeated without end ends with what it is zipped with.
    return (length is None or length < 0) and any(count in (None, -1) for count in counts)


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

    Datasets upstream of every change are used as they are, and without changes `dataset` itself;
    the calls from there on are made again, so functions are traced again. Changes of the model are
    ignored. An `endless` pipeline starts over where the elements end; `filled` caches stand in
    for those of the script. Raises NotReplayableError where that can't be done, or not without
    disturbing the script.
    """
    graph = Graph(dataset)
    refuse_to_disturb(graph)
    apply(graph, changes, endless)
    if filled is not None:
        for node in _caches(graph):
            fill = partial(_filled_once, filled)
            node.make = _handed_on if _never_completes(node) else fill
    return built(graph)


def built(graph: Graph, top: Node | None = None, fixed: dict[int, Any] | None = None) -> Any:
    """Build a graph, leaving the script's random numbers as they are."""
    try:
        with random_state_kept(), whole_batches_parsed(), warnings.catch_warnings():
            # Warnings on replaced options and on parameters without effect are not the script's.
            warnings.simplefilter("ignore")
            return graph.build(top, fixed)
    except NotReplayableError:
        raise
    except Exception as error:
        let_pass(error)
        failure = first_line(error)
    raise NotReplayableError(f"TensorFlow refuses the changed pipeline: {failure}")


_ROWS_OF_A_CHECK = 16
"""Rows of a batch in a check: with larger ones, a slow function would cost seconds."""
_FEWEST_ELEMENTS = 32
"""Fewest elements of a check: a filter may drop most of them."""


_IN_ONE_ORDER: dict[str, dict[str, Scalar]] = {
    "shuffle": {"reshuffle_each_iteration": False},
    "list_files": {"shuffle": False},
}


def _keep_order(node: Node) -> None:
    """Have an operation hand on its elements in one order, in every pass."""
    if node.operation is not None and reorders(node.operation):
        node.parameters.update(_IN_ONE_ORDER.get(node.operation.kind, {"deterministic": True}))


class _Parts(NamedTuple):
    before: Any
    after: Any
    random: bool
    """True if two passes over the part itself may differ."""
    padded: bool
    """True if its elements are padded alike right behind it."""


def _changed_parts(dataset: Any, changes: Sequence[Change]) -> _Parts:
    """Cut out what the changes touch, as written and as changed, to read the same few elements.

    Where it reads from several datasets, or from none, everything upstream belongs to it.
    """
    before, after = without_caches(dataset), without_caches(dataset)
    apply(after, changes)
    kept = after.kept()
    tops = _tops(before, after, kept)
    cuts = [_cut(top, kept) for top in tops]
    sources = {id(source): source for _, read in cuts for source in read}
    if len(sources) != 1 or not all(read for _, read in cuts):
        sources, cuts = {}, [_cut(top, set()) for top in tops]
    (own, _), (changed, _) = cuts
    nodes = own + changed
    for node in nodes:
        if _kind(node) == "shuffle":
            # Both forms hand on the elements in one order, to be compared by value.
            node.make = lambda inputs: inputs[0]
        else:
            _keep_order(node)
        if _batch_size(node) > _ROWS_OF_A_CHECK:
            node.parameters["batch_size"] = _ROWS_OF_A_CHECK
    # Half a batch at the end shows what happens to a remainder.
    wanted = max(_FEWEST_ELEMENTS, prod(map(_batch_size, own)) * 5 // 2)
    fixed: dict[int, Any] = {}
    for key, source in sources.items():
        elements = first_elements(source, wanted, READING_LIMIT_S).elements
        if not elements:
            raise NotReplayableError("The pipeline hands out no elements to check.")
        fixed[key] = dataset_of(elements, source.element_spec)
    made = [built(graph, top, fixed) for graph, top in zip((before, after), tops, strict=True)]
    behind = [node for node in before.nodes() if tops[0] in nodes_up_to(node)[:-1]]
    random = any(is_random(node) for node in nodes if _kind(node) != "shuffle")
    return _Parts(made[0], made[1], random, _pads_with_zeros(behind))


def _pads_with_zeros(nodes: Sequence[Node]) -> bool:
    """Return True if what stands first, but for what leaves lengths alone, pads with zeros, to
    lengths that its call names."""
    from tensorflow.python.util import nest

    found = (node for node in nodes if node.call is not None)
    first = next((one for one in found if _kind(one) not in _LEAVE_LENGTHS), None)
    if first is None or first.call is None or _kind(first) != "padded_batch":
        return False
    given = inspect.signature(first.call.function).bind(*first.call.args, **first.call.kwargs)
    specs = nest.flatten(first.dataset.element_spec)
    known = all(None not in list(getattr(spec, "shape", [None, None]))[1:] for spec in specs)
    return known and given.arguments.get("padding_values") is None


def _kind(node: Node) -> str | None:
    return node.operation.kind if node.operation is not None else None


_LEAVE_LENGTHS = frozenset({"cache", "prefetch", "repeat", "shuffle", "take", "with_options"})
"""Operations between rows and the batch that pads them which do not look at how long they are."""


def _cut(top: Node, kept: set[int]) -> tuple[list[Node], list[Any]]:
    """Return the nodes up to `kept` datasets, and those of them that the nodes read from."""
    reached = nodes_up_to(top, lambda node: id(node.dataset) in kept)
    nodes = [node for node in reached if id(node.dataset) not in kept]
    return nodes, [node.dataset for node in reached if id(node.dataset) in kept]


def _tops(before: Graph, after: Graph, kept: set[int]) -> tuple[Node, Node]:
    """Return the last nodes of the changed part: behind them both forms are the same."""
    (old,), (new,) = before.end.inputs, after.end.inputs
    while (
        new.dataset is old.dataset
        and not new.changed
        and id(new.dataset) not in kept
        and len(new.inputs) == len(old.inputs) == 1
    ):
        old, new = old.inputs[0], new.inputs[0]
    return old, new


def _batch_size(node: Node) -> int:
    """Return the rows in each batch that it makes; 1 where it makes no batches."""
    written = node.operation.parameters if node.operation is not None else {}
    size = {**written, **node.parameters}.get("batch_size")
    return size if isinstance(size, int) and size > 0 else 1


READING_LIMIT_S = 5.0
"""Longest time for which a check reads; what was read by then is compared."""
_MOST_ELEMENTS = 64


def verify(dataset: Any, changes: Sequence[Change], check: Check) -> int | None:
    """Run the changed part of the pipeline and the same part as written on the same elements.

    The elements are taken once, from where both are still the same, so that a shuffle upstream
    does not matter. Where the part itself is random, only structure, types and ranks are compared.
    Returns how many elements were the same in two passes, where that is checked, and raises
    NotReplayableError where the batches differ or can't be checked.
    """
    if touched(changes) <= {"model"}:
        return None
    refuse_to_disturb(Graph(dataset))
    if check == "repeats":
        return _same_in_two_passes(dataset, changes)
    # Filling a cache would cost more than the check.
    written = [as_written(change) for change in changes]
    before, after, random, padded = _changed_parts(dataset, written)
    expected, found = _read(before), _read(after)
    by_value = check == "equal" and not random
    difference = _count_difference(expected, found) if by_value else None
    if difference is None:
        difference = difference_of(
            expected.elements, found.elements, values=by_value, padded=padded
        )
        unlike = difference is not None and by_value
        if unlike and difference_of(expected.elements, _read(before).elements, values=True):
            if any(isinstance(change, Move) for change in changes):
                raise NotReplayableError(
                    "The pipeline hands out other values every time, so it can't be checked "
                    "whether moving an operation changes them."
                )
            difference = difference_of(expected.elements, found.elements, values=False)
    if difference is not None:
        raise NotReplayableError(f"{RESULTS_DIFFER[0]}: {difference}.")
    return None


_PASSES_S = 1.0
"""Time for which each of two passes that are compared is read."""
_MOST_IN_PASSES = 5_000


def _same_in_two_passes(dataset: Any, changes: Sequence[Change]) -> int:
    """Count the elements in front of an added cache that are the same in two passes, by rows."""
    place = next(change.after for change in changes if adds_cache(change))
    graph = without_caches(dataset)
    apply(graph, [change for change in changes if not adds_cache(change)])
    above = nodes_up_to(graph.node(place))
    behind = [node for node in graph.nodes() if node not in above]
    if any(one.kind == "shuffle" for node in behind for one in node.operations):
        # Both passes are in one order, which a cache keeps: what is behind it mixes its elements.
        for node in above:
            _keep_order(node)
    part = built(graph, graph.node(place))
    first, second = (first_elements(part, _MOST_IN_PASSES, _PASSES_S) for _ in range(2))
    difference = _count_difference(first, second)
    difference = difference_of(first.elements, second.elements, values=True) or difference
    if difference is not None:
        raise NotReplayableError(
            f"{PASSES_DIFFER}: {difference}. A cache would repeat those of the first epoch."
        )
    generators = (node.call.generator for node in above if node.call is not None)
    if any(map(_is_reordered, filter(None, generators))):
        return 0
    same = min(first.elements, second.elements, key=len)
    batched = any(one.kind in BATCHING for one in graph.node(place).operations)
    return sum(_rows(one) for one in same) if batched else len(same)


def _is_reordered(generator: Any) -> bool:
    """Return True if the script shuffles in a loop what a generator reads: passes that follow each
    other at once are the same, and those of two epochs are not."""
    names, waiting, seen = set[str](), [generator], set[CodeType]()
    while waiting:
        function = unwrap(waiting.pop())
        code = getattr(function, "__code__", None)
        if code is None or code in seen or not is_users(code.co_filename):
            continue
        seen.add(code)
        own = {*code.co_names, *code.co_freevars}
        known = function.__globals__ | closure_of(function)
        waiting += [known[name] for name in own & known.keys() if callable(known[name])]
        names |= own
    return reordered_in_loops(script_trees(), names)


def _rows(batch: Any) -> int:
    from tensorflow.python.util import nest

    sizes = [one.shape.as_list() for one in nest.flatten(batch) if one.shape.rank]
    return next((size[0] for size in sizes if size[0]), 1)


def _read(dataset: Any) -> Reading:
    return first_elements(dataset, _MOST_ELEMENTS, READING_LIMIT_S)


def _count_difference(expected: Reading, found: Reading) -> str | None:
    before, after = len(expected.elements), len(found.elements)
    if (expected.exhausted and before < after) or (found.exhausted and after < before):
        return f"there are {after} where there were {before}"
    return None
