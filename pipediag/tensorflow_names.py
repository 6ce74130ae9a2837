"""Names that TensorFlow and Keras use, and the versions of TensorFlow that can be measured.

The user's process imports it too: it imports nothing that Python has not imported itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

PYTHON_OPERATIONS = frozenset({"EagerPyFunc", "PyFunc", "PyFuncStateless"})
"""Operations of a graph that call back into Python."""
OPENS_FILES = frozenset({"ReadFile"})
LOOKUP = frozenset({"LookupTableFind", "LookupTableFindV2"})
CHANGES_TABLES = frozenset(
    f"LookupTable{change}{version}"
    for change in ("Import", "Insert", "Remove")
    for version in ("", "V2")
)
"""Operations that change a lookup table, so that what stands in it hangs on who came before."""
TEXT_WORK = LOOKUP | frozenset(
    "AsString DecodeCSV DecodeJSONExample DecodeRaw ParseExampleV2 ReduceJoin RegexFullMatch "
    "RegexReplace SparseCross SparseCrossHashed SparseCrossV2 StaticRegexFullMatch "
    "StaticRegexReplace StringFormat StringJoin StringLength StringLower StringNGrams StringSplit "
    "StringSplitV2 StringStrip StringToHashBucket StringToHashBucketFast StringToHashBucketStrong "
    "StringToNumber StringUpper Substr UnicodeDecode UnicodeDecodeWithOffsets UnicodeScript "
    "UnicodeTranscode UnsortedSegmentJoin".split()
)
"""Operations that work on text or look something up: kernels of the CPU, whatever trains."""
REDUCING = {
    "Sum": "reduce_sum",
    "Mean": "reduce_mean",
    "Max": "reduce_max",
    "Min": "reduce_min",
    "Prod": "reduce_prod",
    "Any": "reduce_any",
    "All": "reduce_all",
}
"""Operations that reduce dimensions, and the functions that make them."""
BROADCASTING = {
    "Greater": (">", "greater"),
    "GreaterEqual": (">=", "greater_equal"),
    "Less": ("<", "less"),
    "LessEqual": ("<=", "less_equal"),
    "Equal": ("==", "equal"),
    "NotEqual": ("!=", "not_equal"),
    "AddV2": ("+", "add"),
    "Sub": ("-", "subtract"),
    "Mul": ("*", "multiply"),
    "RealDiv": ("/", "divide"),
    "Maximum": (None, "maximum"),
    "Minimum": (None, "minimum"),
}
"""Operations on two values of which one may have more dimensions, as operators and functions."""
PARSING = "ParseExampleV2"
PADDING = frozenset({"RaggedTensorToTensor", "SparseToDense"})
"""Operations that give the rows of a batch the length of its longest."""
ROW_FUNCTIONS = {
    **REDUCING,
    **{kind: name for kind, (_, name) in BROADCASTING.items()},
    "ArgMax": "argmax",
    "ConcatV2": "concat",
    "ExpandDims": "expand_dims",
    "Pack": "stack",
    PARSING: "parse_single_example",
    "Reshape": "reshape",
    "Squeeze": "squeeze",
    "StridedSlice": "_slice_helper",
}
"""Operations that are made otherwise for a batch than for a row, and the functions that make them.
"""
VARIABLES = frozenset({"AssignAddVariableOp", "AssignVariableOp", "ReadVariableOp"})
_RANDOM_PREFIXES = ("Random", "StatefulRandom", "StatefulStandardNormal", "StatefulUniform")
_RANDOM = frozenset(
    {
        "Multinomial",
        "ParameterizedTruncatedNormal",
        "RngReadAndSkip",
        "RngSkip",
        "SampleDistortedBoundingBox",
        "SampleDistortedBoundingBoxV2",
        "StatefulTruncatedNormal",
        "TruncatedNormal",
    }
)
DRAWING_KINDS = frozenset({"random", "sample_from_datasets", "rejection_resample"})
"""Kinds that draw random numbers themselves, whatever their function does."""

BATCHING = ("batch", "padded_batch", "ragged_batch")
READERS = (
    "TFRecordDataset",
    "TextLineDataset",
    "FixedLengthRecordDataset",
    "CsvDataset",
    "SqlDataset",
)
RUNS_A_FUNCTION = ("map", "from_generator", "flat_map", "interleave", "filter")
"""Kinds that run a function of the user's for each element."""
CACHES = ("cache", "snapshot")
"""Kinds that keep what they were given, for later epochs."""
CUTS = ("take", "take_while")
"""Kinds that, after a cache, keep it from completing."""
INFINITE_CARDINALITY = -1
"""Length that TensorFlow gives for an endless dataset, `tf.data.INFINITE_CARDINALITY`."""
KEEPS_ELEMENTS = ("map", "shuffle", "repeat", "filter", "prefetch", "with_options", "ignore_errors")
"""Kinds that another order of the elements goes through unharmed."""
PYTHON_ADAPTERS = ("PyDatasetAdapter", "GeneratorDataAdapter", "KerasSequenceAdapter")
"""Keras' adapters of data that Python makes while the model trains."""

WORKS_AHEAD = ("Prefetch", "MapAndBatch", "Parallel")
"""Beginnings of the names of iterators that have threads of their own."""
HOLDS_ELEMENTS = (*WORKS_AHEAD, "Shuffle", "Memory", "Cache")
"""Beginnings of the names of iterators that keep elements in a buffer."""
DEVICE_PREFETCH = "device_prefetch"
"""Name that `tf.distribute` gives the prefetch from which one replica draws."""

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


def random_operations(graph_ops: Iterable[str]) -> list[str]:
    """Return the operations of a graph that draw random numbers, sorted."""
    return sorted(
        name for name in graph_ops if name in _RANDOM or name.startswith(_RANDOM_PREFIXES)
    )


def draws_random(graph_ops: Collection[str]) -> bool:
    """Return True if two calls on one element may differ: random draws, or a seed in a variable."""
    seeded = any(name.startswith("StatelessRandom") for name in graph_ops)
    return bool(random_operations(graph_ops)) or (seeded and not VARIABLES.isdisjoint(graph_ops))


def works_ahead(iterator: str) -> bool:
    """Return True if an iterator of this name makes elements before they are asked for."""
    return iterator.startswith(WORKS_AHEAD)


SEVERAL_WORKERS = ("CollectiveAllReduceStrategy", "MultiWorkerMirroredStrategy")
"""Strategies whose workers wait for one another in each step."""


OLDEST = (2, 14)
"""Own choice: the oldest that the samples were run with. See docs/faq.md."""

BUILDS = (
    "tensorflow",
    "tensorflow-cpu",
    "tensorflow-rocm",
    "tensorflow-macos",
    "tensorflow-intel",
    "tf-nightly",
    "tf-nightly-cpu",
)
"""Distributions that install the package `tensorflow`."""


def is_too_old(version: str | None) -> bool:
    """Return True if that version is known to be older than the oldest that can be measured."""
    parts = (version or "").split(".")[:2]
    if len(parts) < 2 or not all(part.isdecimal() for part in parts):
        return False
    return tuple(map(int, parts)) < OLDEST


def too_old_sentence(version: str) -> str:
    """Return what is wrong, in one sentence."""
    oldest = ".".join(map(str, OLDEST))
    return f"TensorFlow {version} is too old for pipediag, which measures {oldest} and newer."


def installed_builds() -> dict[str, str]:
    """Return the version of each distribution beside this interpreter that installs TensorFlow.

    It is what the installer noted: nothing is imported.
    """
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in BUILDS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
