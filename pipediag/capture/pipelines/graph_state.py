"""State that TensorFlow's operations keep, and that a call more would leave changed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from pipediag.tensorflow_names import PYTHON_OPERATIONS

# What works on variables, which are put back; what passes a call on; what only looks.
_KEPT = re.compile(
    r"(Resource\w+|\w*VariableOp|VarHandleOp|StatefulPartitionedCall|If|While|Case|Assert|NoOp"
    r"|Placeholder\w*|IteratorGetNext\w*|Rng\w+|Stateful(Random|Standard|Uniform|Truncated)\w*"
    r"|LookupTable(Find|Size)V2|\w*HashTable\w*V2|TensorArray\w*|XlaLaunch\w*|ReadFile|Timestamp)"
)
# A pipeline's own threads work on variables while a trial runs, so that these can't be put back.
_SHARED = re.compile(
    r"(Assign\w*VariableOp|Resource(Apply|Scatter|Sparse)\w*|Rng\w+"
    r"|Stateful(Random|Standard|Uniform|Truncated)\w*)"
)
# Random operations draw from a state in their kernel, and those of a pipeline are made anew with
# each of its iterators. So are the datasets within its functions, but for those that keep files.
_OF_AN_ITERATOR = re.compile(
    r"(Random\w*|Multinomial|(Parameterized)?TruncatedNormal|SampleDistortedBoundingBox\w*"
    r"|(Anonymous|Dummy)(MemoryCache|\w*SeedGenerator)|MatchingFiles"
    r"|(?!Snapshot|Save|DataService|Cache)\w+Dataset(V\d)?)"
)


def state_of_step(function: Any) -> str | None:
    """An operation of a traced tf.function that keeps a state which can't be put back, or None."""
    for concrete in function._list_all_concrete_functions():
        definition = concrete.graph.as_graph_def()
        within = (node for inner in definition.library.function for node in inner.node_def)
        names = {node.op for node in (*definition.node, *within)}
        found = next(_changed(names, _KEPT), None)
        if found is not None:
            return found
    return None


def state_of_pipeline(operations: Iterable[str]) -> str | None:
    """An operation, of those in a pipeline's function, that changes what outlives its iterator.

    Python functions are left out: their code tells.
    """
    others = set(operations) - PYTHON_OPERATIONS
    shared = next((name for name in sorted(others) if _SHARED.fullmatch(name)), None)
    own = re.compile(f"{_KEPT.pattern}|{_OF_AN_ITERATOR.pattern}")
    return shared or next(_changed(others, own), None)


def _changed(names: set[str], kept: re.Pattern[str]) -> Iterator[str]:
    from tensorflow.python.framework import op_def_registry

    for name in sorted(names):
        known = op_def_registry.get(name)
        if known is not None and known.is_stateful and not kept.fullmatch(name):
            yield name
