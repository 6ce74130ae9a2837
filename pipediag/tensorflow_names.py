"""What TensorFlow and Keras call things: operations of graphs, iterators, datasets and options.

The user's process imports it too: it imports nothing.
"""

from __future__ import annotations

PYTHON_OPERATIONS = frozenset({"EagerPyFunc", "PyFunc", "PyFuncStateless"})
"""Operations of a graph that call back into Python."""
LOOKUP = frozenset({"LookupTableFind", "LookupTableFindV2"})
VARIABLES = frozenset({"AssignAddVariableOp", "AssignVariableOp", "ReadVariableOp"})

BATCHING = ("batch", "padded_batch", "ragged_batch")
READERS = ("TFRecordDataset", "TextLineDataset", "FixedLengthRecordDataset", "CsvDataset")
RUNS_A_FUNCTION = ("map", "from_generator", "flat_map", "interleave", "filter")
"""Kinds that run a function of the user's for each element."""
KEEPS_ELEMENTS = (
    "map",
    "shuffle",
    "repeat",
    "filter",
    "prefetch",
    "with_options",
    "ignore_errors",
)
"""Kinds that another order of the elements goes through unharmed."""
PYTHON_ADAPTERS = ("PyDatasetAdapter", "GeneratorDataAdapter")
"""Keras' adapters of data that Python makes while the model trains."""

WORKS_AHEAD = ("Prefetch", "MapAndBatch", "Parallel")
"""How the names of iterators begin that have threads of their own."""
HOLDS_ELEMENTS = (*WORKS_AHEAD, "Shuffle", "Memory", "Cache")
"""How the names of iterators begin that keep elements in a buffer."""

PREFETCH_SWITCHES = ("apply_default_optimizations", "inject_prefetch", "autotune.enabled")
"""Options that keep TensorFlow from appending a prefetch where they are False."""
DEFAULT_SWITCHES = (
    "apply_default_optimizations",
    "autotune.enabled",
    "inject_prefetch",
    "map_parallelization",
    "parallel_batch",
    "map_and_batch_fusion",
    "noop_elimination",
    "shuffle_and_repeat_fusion",
)
"""Options that are on where nothing is said; what they do is lost where they are False."""


def works_ahead(iterator: str) -> bool:
    """Whether an iterator of this name makes elements before they are asked for."""
    return iterator.startswith(WORKS_AHEAD)
