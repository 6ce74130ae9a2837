"""Functions written for single examples, traced for whole batches of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def whole_batches_parsed() -> Iterator[None]:
    """While functions are traced here, `tf.io.parse_single_example` takes batches too.

    It is `tf.io.parse_example` behind a check that there is one example, whichever way the script
    imported it. Without that check a map of it can move behind its batch; whether the batches are
    equal is found out on real elements, as for any other function.
    """
    from tensorflow.python.ops import parsing_ops

    check = getattr(parsing_ops, "_assert_scalar", None)
    if check is None:
        yield
        return
    parsing_ops._assert_scalar = _unchecked
    try:
        yield
    finally:
        parsing_ops._assert_scalar = check


def _unchecked(value: Any, name: str) -> Any:  # noqa: ARG001
    return value
