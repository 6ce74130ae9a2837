"""Questions about the recorded pipeline: neighbours, costs, functions, helpers that made it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pipediag import tensorflow_names
from pipediag.facts.names import place
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation, Pipeline
from pipediag.session.recording import RecordedFunction
from pipediag.tensorflow_names import (
    BATCHING,
    CACHES,
    CHANGES_TABLES,
    DRAWING_KINDS,
    KEEPS_ELEMENTS,
    LOOKUP,
    PYTHON_OPERATIONS,
    RUNS_A_FUNCTION,
    VARIABLES,
)
from pipediag.vocabulary import Scalar

_CHANGES_COUNT = ("filter", "unbatch", "flat_map", "interleave", "window", "group_by_window")
_BY_ORDER = frozenset("enumerate scan shard skip take take_while window zip".split())


def operations(session: Session, *kinds: str) -> list[Operation]:
    """Return the user's operations, or their helpers', that really run, of these kinds or all."""
    return [
        op
        for op in session.ops
        if not op.inserted_by_tensorflow
        and (op.helper is not None or not op.made_by_framework)
        and (not kinds or op.kind in kinds)
    ]


def upstream(session: Session, op: Operation) -> list[Operation]:
    """Return every operation whose elements reach this one, nearest first."""
    return upstream_of(session.ops, op)


def upstream_of(ops: Sequence[Operation], op: Operation) -> list[Operation]:
    """Return those of `ops` whose elements reach this one, nearest first."""
    by_id = {one.id: one for one in ops}
    found: dict[str, Operation] = {}
    waiting = deque(op.parent_ids)
    while waiting:
        parent = by_id.get(waiting.popleft())
        if parent is not None and parent.id not in found:
            found[parent.id] = parent
            waiting.extend(parent.parent_ids)
    return list(found.values())


def every(session: Session) -> list[Operation]:
    """Return the operations of all loops whose pipelines are known, each once."""
    pipelines = [session.pipeline, *(loop.pipeline for loop in session.loops)]
    ops = {op.id: op for pipeline in pipelines if pipeline is not None for op in pipeline.ops}
    return list(ops.values())


def downstream(session: Session, op: Operation) -> list[Operation]:
    """Return every operation that this one's elements reach, in the order of the data."""
    return [one for one in session.ops if any(up.id == op.id for up in upstream(session, one))]


def goes_by_order(session: Session, op: Operation) -> Operation | None:
    """Return the first operation behind this one that would make other data of its elements in
    another order: other pairs, other windows, or a choice of other ones. None where none would."""
    behind = downstream(session, op)
    found = next((one for one in behind if _by_order(session, op, one)), None)
    outer = session.operation(op.inside_function_of)
    return goes_by_order(session, outer) if found is None and outer is not None else found


def _by_order(session: Session, op: Operation, behind: Operation) -> bool:
    count = behind.parameters.get("count")
    if behind.kind in BATCHING:
        return _makes_sequences(session, op, behind)
    if behind.kind == "take" and isinstance(count, int):
        above = session.operation(next(iter(behind.parent_ids), None))
        return takes_a_part(count, above.cardinality if above is not None else None)
    return behind.kind in _BY_ORDER and not (behind.kind == "skip" and count == 0)


def _makes_sequences(session: Session, op: Operation, batch: Operation) -> bool:
    """Return True if a batch makes examples of what follows one another behind the operation, as of
    a text's characters: examples that another one batches."""
    takes_apart = ("unbatch", "flat_map", "interleave")
    ends = (one for one in downstream(session, batch) if one.kind in (*BATCHING, *takes_apart))
    above = {one.id for one in upstream(session, batch)}
    mixed = any(one.kind == "shuffle" and one.id in above for one in downstream(session, op))
    end = next(ends, None)
    return end is not None and end.kind in BATCHING and not mixed


def takes_a_part(count: int, held: float | None) -> bool:
    """Return True if a `take` of so many leaves out elements; `held` is negative or None where the
    number of those that there are is not known."""
    return count >= 0 and (held is None or held < 0 or count < held)


def filled_shuffles(session: Session) -> list[tuple[Operation, list[Operation]]]:
    """Return shuffles, the last one first, each with the functions that make what it holds.

    One of names or numbers is full at once, and left out.
    """
    found = [
        (shuffle, [op for op in upstream(session, shuffle) if op.kind in RUNS_A_FUNCTION])
        for shuffle in reversed(operations(session, "shuffle"))
    ]
    return [(shuffle, makers) for shuffle, makers in found if makers]


def reaches_the_loop_uncached(session: Session, op: Operation) -> bool:
    """Return True if its elements reach the training loop through no cache."""
    last, reached = last_operation(session), {op.id}
    for other in session.ops:
        if other.kind not in CACHES and not reached.isdisjoint(other.parent_ids):
            reached.add(other.id)
    return last is not None and last.id in reached


def following_batch(session: Session, op: Operation) -> Operation | None:
    """Return the batching operation that takes this one's single elements.

    None where there is none, where elements are already batches, and where the operation can't move
    after the batch, as a filter or an unbatch stands between.
    """
    if any(other.kind in BATCHING for other in upstream(session, op)):
        return None
    stops = (*BATCHING, *_CHANGES_COUNT)
    found = next((other for other in downstream(session, op) if other.kind in stops), None)
    return found if found is not None and found.kind in BATCHING else None


def measured_at(session: Session, op: Operation) -> Operation:
    """Return the operation at which this one's cost is counted: itself or what it is fused into."""
    target = session.operation(op.fused_into)
    return target if target is not None else op


def delay_ms(session: Session, op: Operation) -> float | None:
    """Return what the operation adds to a step, in ms: self time over the calls in flight."""
    at = measured_at(session, op)
    return at.latency_ms_per_step if at.latency_ms_per_step is not None else at.self_ms_per_step


def costlier(session: Session, inner: Operation, outer: Operation | None) -> Operation:
    """Return the operation that shows the cost of one within another one's function.

    Each element of the outer operation has an inner iterator of its own, which tf.data's model
    forgets as it ends: the greater of the two costs may then be the outer operation's.
    """
    if outer is None or (delay_ms(session, inner) or 0.0) > (delay_ms(session, outer) or 0.0):
        return inner
    return outer


def call_name(op: Operation) -> str:
    """Return the name for advice: `map` with its file and line, or `map` alone."""
    return f"{kind_name(op)}{place(op.file, op.line) if op.line else ''}"


def kind_name(op: Operation) -> str:
    """Return the kind in backquotes, with the helper that makes it."""
    # A helper such as `snapshot` has the name of what it makes.
    itself = op.helper is None or op.helper == op.kind
    return f"`{op.kind}`" if itself else f"`{op.kind}` of `{op.helper}`"


def place_name(op: Operation) -> str:
    """Return the name for an edit's label: `map at train.py:12`, or `map` alone."""
    return call_name(op).replace("`", "")


def chain(ops: Sequence[Operation], op: Operation | None) -> Iterator[Operation]:
    """Yield the operation and those above it, as far as each reads from one other of `ops`."""
    by_id = {one.id: one for one in ops}
    while op is not None:
        yield op
        op = by_id.get(op.parent_ids[0]) if len(op.parent_ids) == 1 else None


def last_before_prefetch(session: Session) -> Operation | None:
    """Return the last operation but for a prefetch, which is to stay at the end, and for what Keras
    adds, as for `class_weight`; of arrays, of which it makes all, the last."""
    path = [op for op in chain(session.ops, last_operation(session)) if op.kind != "prefetch"]
    own = (op for op in path if op.helper is not None or not op.made_by_framework)
    return next(own, next(iter(path), None))


def last_operation(session: Session) -> Operation | None:
    """Return the operation that hands batches to the loop, as it was written."""
    outer = (op for op in session.ops if op.inside_function_of is None)
    path = [op for op in outer if not op.inserted_by_tensorflow]
    return path[-1] if path else None


def between(session: Session, above: Operation, below: Operation) -> list[Operation] | None:
    """Return the operations between two, or None where `below` does not read from `above` alone."""
    path = [*chain(session.ops, below)][1:]
    ids = [op.id for op in path]
    return path[: ids.index(above.id)][::-1] if above.id in ids else None


def keeps_elements(ops: Iterable[Operation]) -> bool:
    """Return True if another order of the elements goes through each of these unharmed.

    A take or a shard would choose other elements, a cache would freeze the order, and after a
    batch or an interleave they are no longer the same things.
    """
    return all(op.kind in KEEPS_ELEMENTS for op in ops)


def option(pipeline: Pipeline | None, name: str) -> tuple[str, Scalar] | None:
    """Return a dataset option that the user set, as it is written, and its value."""
    for key, value in (pipeline.options if pipeline else {}).items():
        if key == name or key.endswith(f".{name}"):
            holder = "experimental_" if key.startswith("optimization.") else ""
            return f"options.{holder}{key}", value
    return None


def reshuffles(op: Operation) -> bool:
    """Return True if each pass has an order of its own, which a cache after it would freeze."""
    if op.kind == "list_files":
        return op.parameters.get("shuffle") is not False
    return op.kind == "shuffle" and op.parameters.get("reshuffle_each_iteration") is not False


def passes_over_data(session: Session) -> float | None:
    """Return how often the loop reads its data, None if not known; under `repeat()`, infinite or
    1, where the loop takes no more of it."""
    repeats = [op.parameters.get("count") for op in operations(session, "repeat")]
    last, of_epoch = last_operation(session), passes_of_an_epoch(session)
    loop = session.diagnosed_loop()
    epochs = loop.keras.epochs if loop is not None and loop.keras is not None else None
    if of_epoch is not None and of_epoch > 1.0:
        return math.inf
    if last is not None and last.cardinality is not None and last.cardinality >= 0:
        # What is repeated without end ends with what it is zipped with.
        repeats = [count for count in repeats if count not in (None, -1)]
    if any(count in (None, -1) for count in repeats):
        once = of_epoch and epochs and of_epoch * epochs <= 1.0
        return (loop.planned_rounds or 1) if loop is not None and once else math.inf
    factor = math.prod(int(count) for count in repeats if isinstance(count, int))
    if loop is not None and epochs:
        # Around a `fit` of one epoch, the script's own loop makes the passes.
        passes = max(1.0, epochs * of_epoch) if of_epoch else epochs
        seen = 2 if loop.epoch_ends else 1
        return factor * passes * ((loop.planned_rounds or seen) if epochs == 1 else 1)
    rounds = loop.planned_rounds if loop is not None and loop.keras is None else None
    if loop is not None and rounds is not None and loop.iterators <= rounds:
        return factor * rounds
    if factor > 1:
        return factor
    several = (session.steps is not None and session.steps.boundaries > 0) or (
        loop is not None and loop.iterators > 1
    )
    return 2 if several else None


def passes_of_an_epoch(session: Session, own_steps: float | None = None) -> float | None:
    """Return how often an epoch reads what an endless `repeat` repeats, or the data of a `fit` that
    reads a part of it in each; None where it is read once, and where that is not known.

    `own_steps` are those of an epoch of the script's own loop, which may leave its data early.
    """
    loop, last = session.diagnosed_loop(), last_operation(session)
    path = list(chain(session.ops, last))
    kinds = [op.kind for op in path]
    if loop is None or last is None:
        return None
    if "repeat" not in kinds[:-1]:
        part, held = (loop.keras and loop.keras.steps_per_epoch) or 0, last.cardinality or 0
        at_once = session.steps.batches_per_call if session.steps is not None else 1
        part = math.ceil(part / at_once) * at_once
        return 1.0 / math.ceil(held / part) if 0 < part < held else None
    at = kinds.index("repeat")
    endless = path[at].parameters.get("count") in (None, -1)
    own_steps = own_steps or last.cardinality
    steps = loop.keras.steps_per_epoch if loop.keras is not None else own_steps
    rows = loop.batch_size if {*BATCHING}.isdisjoint(kinds[at:]) else 1
    numbers = steps or 0, rows or 0, path[at + 1].cardinality or 0
    if not endless or min(numbers) <= 0 or not {*_CHANGES_COUNT}.isdisjoint(kinds[:at]):
        return None
    return numbers[0] * numbers[1] / numbers[2]


def passes_by_repeats(session: Session, op: Operation, own_steps: float | None = None) -> float:
    """Return how often an epoch reads what the operation makes, by the finite repeats behind it; 1
    where that is not known. `own_steps` are those of an epoch of the script's own loop."""
    behind, last, keras = downstream(session, op), last_operation(session), session.keras
    if any(one.kind in ("take", "take_while", "zip") for one in behind):
        return 1.0
    counts = (one.parameters.get("count") for one in behind if one.kind == "repeat")
    factor = math.prod(count for count in counts if isinstance(count, int) and count > 0)
    steps = keras.steps_per_epoch if keras is not None else own_steps
    if factor == 1 or not steps:
        return factor
    if last is not None and last.cardinality is not None and last.cardinality > 0:
        return factor * min(1.0, steps / last.cardinality)
    return 1.0 if keras is not None else factor


def uses(function: RecordedFunction | None, family: frozenset[str]) -> list[str]:
    """Return the graph operations of this family in the function, sorted."""
    return sorted(family & function.graph_ops.keys()) if function else []


def draws_random(function: RecordedFunction | None) -> bool:
    """Return True if two of its calls on one element may differ."""
    return function is not None and tensorflow_names.draws_random(function.graph_ops)


def only_looks_up(function: RecordedFunction | None) -> bool:
    """Return True if it looks up in tables, and neither changes anything nor draws.

    TensorFlow calls it stateful all the same, but its results depend on its element alone.
    """
    changes = PYTHON_OPERATIONS | VARIABLES | CHANGES_TABLES
    return bool(uses(function, LOOKUP)) and not (uses(function, changes) or draws_random(function))


def differs_by_pass(op: Operation) -> bool:
    """Return True if two passes may give other elements here, as they are drawn."""
    return op.kind in DRAWING_KINDS or draws_random(op.function)


def calls_python(op: Operation) -> bool:
    """Return True if elements pass through Python, not only while it is traced."""
    return bool(uses(op.function, PYTHON_OPERATIONS))


def changes_something(op: Operation) -> bool:
    """Return True if its Python visibly changes something outside of itself."""
    return op.function is not None and op.function.side_effect is not None


def condition_of_cache(ops: Sequence[Operation], op: Operation, pass_: str) -> str | None:
    """Return what must hold of the Python above a cache after `op`; None where there is none.

    `pass_` is what reads the data once: an epoch, or an evaluation.
    """
    above = [op, *upstream_of(ops, op)]
    ids = {one.id for one in above}
    inner = [one for one in ops if one.inside_function_of in ids and one.id not in ids]
    python = [one for one in (*above, *inner) if one.kind == "from_generator" or calls_python(one)]
    if not python:
        return None
    if any(one.kind == "from_generator" for one in python):
        return f"if the generator yields the same data in every {pass_}"
    return f"if the Python in {call_name(python[0])} returns the same results in every {pass_}"


_READ_CONFIG = (
    "`read_config=tfds.ReadConfig(interleave_cycle_length=..., "
    "num_parallel_calls_for_interleave_files=..., num_parallel_calls_for_decode=...)` sets the "
    "parallelism, and `.cache()` goes after its call"
)
_BY_HAND: Mapping[str, str] = {
    "make_csv_dataset": "it takes `num_parallel_reads` and `prefetch_buffer_size`; for anything "
    "else, use `tf.data.experimental.CsvDataset` directly",
    "_dataset_from_": "with `batch_size=None` it yields single examples (leave its `shuffle`: it "
    "also mixes files before `validation_split` divides them), and you write the rest: "
    "`.cache().shuffle(...).batch(...).prefetch(tf.data.AUTOTUNE)`",
    "tfds.load": _READ_CONFIG,
    "as_dataset": _READ_CONFIG,
}
"""Advice for helpers that have this in their names."""


def by_hand(op: Operation) -> str | None:
    """Return how to change an operation that a helper makes; None where the user made it."""
    if op.helper is None:
        return None
    found = (how for part, how in _BY_HAND.items() if part in op.helper)
    how = next(found, "to change it, write the calls that it makes yourself")
    return f"`{op.helper}` creates this operation: {how}."
