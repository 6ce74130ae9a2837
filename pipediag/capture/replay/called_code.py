"""The Python of the script that a recorded tf.data call runs: when it is made, when it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pipediag.capture.callsites import is_users
from pipediag.capture.pipelines.call import Call
from pipediag.capture.pipelines.functions import called_back
from pipediag.capture.python_functions import unwrap
from pipediag.capture.replay.pydataset import adapter_of, reading_functions


def traced_functions(call: Call) -> Iterator[Callable[..., Any]]:
    """Functions that run when the call is made again, to make operations of a graph."""
    for given in (*call.args, *call.kwargs.values()):
        if callable(given) and hasattr(unwrap(given), "__code__") and given is not call.generator:
            yield given


def called_functions(dataset: Any, call: Call) -> Iterator[Callable[..., Any]]:
    """Functions that run for elements of the dataset that the call made.

    A generator may be a framework's: what it hands out comes from the script all the same.
    """
    adapter = adapter_of(call.generator)
    if adapter is not None:
        yield from reading_functions(adapter)
    elif call.generator is not None:
        yield call.generator
    for function in called_back(dataset):
        code = getattr(unwrap(function), "__code__", None)
        if code is not None and is_users(code.co_filename):
            yield function
