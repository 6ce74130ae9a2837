"""What TensorFlow's helpers make without a public call, as the public call that makes the same.

So it is recorded as what users write, and can be made again with other parameters.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Arguments = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True)
class PublicForm:
    """A method of datasets that makes what a class of TensorFlow's own stands for."""

    method: str
    arguments: Arguments
    """Those of the method, of those of the class."""

    def call(
        self, dataset_class: type, maker: type, given: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
        """The method with its arguments, for the class `maker` called with these."""
        bound = inspect.signature(maker).bind(*given, **kwargs)
        bound.apply_defaults()
        arguments = self.arguments(bound.arguments) | {"name": kwargs.get("name")}
        function = dataset_class.__dict__[self.method]
        return getattr(function, "__wrapped__", function), (arguments.pop("self"),), arguments


def _mapped(given: dict[str, Any]) -> dict[str, Any]:
    return {"self": given["input_dataset"], "map_func": given["map_func"]}


def _interleaved(given: dict[str, Any]) -> dict[str, Any]:
    """The older way to interleave reads from all that are open at once."""
    cycle_length, sloppy = given["cycle_length"], given["sloppy"]
    return {
        "self": given["input_dataset"],
        "map_func": given["map_func"],
        "cycle_length": cycle_length,
        "block_length": given["block_length"],
        "num_parallel_calls": cycle_length,
        "deterministic": None if sloppy is None else not sloppy,
    }


PUBLIC_FORMS = {
    "_MapDataset": PublicForm("map", _mapped),
    "ParallelInterleaveDataset": PublicForm("interleave", _interleaved),
}
"""By the name of the class."""
