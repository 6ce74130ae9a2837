"""How an iterator says that there are no more batches."""

from __future__ import annotations


def is_end_of_data(error: BaseException) -> bool:
    """Whether the error says so, as TensorFlow's operations or as Python's iterators do."""
    # By name: the class is TensorFlow's, which the script may not have imported.
    return type(error).__name__ == "OutOfRangeError" or isinstance(error, StopIteration)
