"""Operations that a library's helper makes, and what of them the call of the helper can set."""

from __future__ import annotations

from collections.abc import Mapping

from pipediag.session.pipeline import Operation

FROM_FILES_OR_ARRAYS = frozenset(
    {
        "audio_dataset_from_directory",
        "image_dataset_from_directory",
        "text_dataset_from_directory",
        "timeseries_dataset_from_array",
    }
)
"""Keras' helpers: without a batch size they give single examples, for operations of one's own."""

_BATCHES_ALONE = frozenset({"make_batched_features_dataset", "make_csv_dataset"})
"""They refuse to be called without a batch size."""

TENSORFLOW_DATASETS = frozenset({"tfds.load", "as_dataset"})
"""They give single examples, for operations of one's own, where they are given no batch size."""
READ_CONFIG = "read_config."
"""How an argument of the `tfds.ReadConfig` begins that they are given."""

_ARGUMENTS: Mapping[str, Mapping[tuple[str, str], str]] = {
    "make_csv_dataset": {
        ("interleave", "num_parallel_calls"): "num_parallel_reads",
        ("shuffle", "buffer_size"): "shuffle_buffer_size",
        ("batch", "batch_size"): "batch_size",
        ("prefetch", "buffer_size"): "prefetch_buffer_size",
    },
    "make_batched_features_dataset": {
        ("interleave", "num_parallel_calls"): "reader_num_threads",
        ("parse_example_dataset", "num_parallel_calls"): "parser_num_threads",
        ("shuffle", "buffer_size"): "shuffle_buffer_size",
        ("batch", "batch_size"): "batch_size",
        ("prefetch", "buffer_size"): "prefetch_buffer_size",
    },
    **{name: {("batch", "batch_size"): "batch_size"} for name in FROM_FILES_OR_ARRAYS},
    **{
        name: {
            ("interleave", "cycle_length"): f"{READ_CONFIG}interleave_cycle_length",
            ("interleave", "num_parallel_calls"): (
                f"{READ_CONFIG}num_parallel_calls_for_interleave_files"
            ),
            ("map", "num_parallel_calls"): f"{READ_CONFIG}num_parallel_calls_for_decode",
            ("padded_batch", "batch_size"): "batch_size",
        }
        for name in TENSORFLOW_DATASETS
    },
}
_CALLS = {"make_csv_dataset": "`tf.data.experimental.CsvDataset`"}
"""What to begin with where a helper's call can't say it."""


def argument_of(op: Operation, parameter: str) -> str | None:
    """The argument of the helper that becomes a parameter of the operation that it makes."""
    return _ARGUMENTS.get(op.helper or "", {}).get((op.kind, parameter))


def gives_batches_alone(op: Operation) -> bool:
    """Whether the helper that makes the operation can't be told to give single examples."""
    return op.helper in _BATCHES_ALONE


def by_hand(op: Operation) -> str | None:
    """How to change an operation that a helper makes, as sentences; None where the user made it."""
    if op.helper is None:
        return None
    if op.helper in FROM_FILES_OR_ARRAYS:
        return (
            f"`{op.helper}` makes it: with `batch_size=None, shuffle=False` it gives single "
            "examples, and what stands behind them is yours to write: "
            "`.shuffle(...).batch(...).prefetch(tf.data.AUTOTUNE)`."
        )
    if op.helper in TENSORFLOW_DATASETS:
        return (
            f"`{op.helper}` makes it: its `read_config=tfds.ReadConfig(...)` takes how many files "
            "are read and examples decoded at once, and what stands behind it is yours to write "
            "on the dataset that it returns, such as `.cache()`."
        )
    given = sorted(set(_ARGUMENTS.get(op.helper, {}).values()))
    begin = _CALLS.get(op.helper, "the calls that it stands for")
    if not given:
        return f"`{op.helper}` makes it: to change it, write {begin} yourself."
    listed = ", ".join(f"`{name}`" for name in given)
    return f"`{op.helper}` makes it and takes {listed}; for the rest write {begin} yourself."
