"""What to do about a slow iterator of tf.data, told from its name alone."""

from __future__ import annotations

_PARALLEL_MAP = (
    "The map runs in parallel already: make its function cheaper, map whole batches, or cache its "
    "results."
)
_READ_IN_PARALLEL = (
    "Read several files at once: `files.interleave(read, num_parallel_calls=tf.data.AUTOTUNE)`."
)
_BY_PREFIX = {
    "ParallelMap": _PARALLEL_MAP,
    # TensorFlow fuses map and batch, also where the map runs a single call at a time.
    "MapAndBatch": "Give the map more parallel calls if it calls Python or keeps state, make its "
    "function cheaper, map whole batches, or cache its results.",
    "Map": "Give the map `num_parallel_calls=tf.data.AUTOTUNE`, or cache its results where they "
    "never change.",
    "ParallelInterleave": "Files are read in parallel already: use fewer, larger records, or "
    "cache.",
    "Interleave": "Give the interleave `num_parallel_calls=tf.data.AUTOTUNE`.",
    "FlatMap": "Replace the flat_map by an interleave with `num_parallel_calls=tf.data.AUTOTUNE`.",
    "TFRecord": _READ_IN_PARALLEL,
    "TextLine": _READ_IN_PARALLEL,
    "FixedLengthRecord": _READ_IN_PARALLEL,
    "Generator": "Yield whole batches from the Python generator, or replace it by files that "
    "TensorFlow reads.",
    "Shuffle": "Shuffle before the costly maps, so that the buffer fills with cheap elements.",
    "Batch": "Batching copies single elements: `.batch(..., num_parallel_calls=tf.data.AUTOTUNE)`, "
    "or start from slices that are batches already.",
}
"""The first prefix that fits decides."""
_ANY = (
    "Try the common remedies: `num_parallel_calls=tf.data.AUTOTUNE` on map and interleave, reading "
    "files in parallel, and `.cache()`."
)


def advice_for(iterator: str | None) -> str:
    """Advice for an iterator such as `Root::Prefetch::MapV2`; the last part of it decides."""
    last = (iterator or "").rsplit("::", 1)[-1]
    return next((text for prefix, text in _BY_PREFIX.items() if last.startswith(prefix)), _ANY)
