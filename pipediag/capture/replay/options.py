"""Options of a dataset by the dotted names that the recording gives them."""

from __future__ import annotations

from typing import Any

from pipediag.capture.replay.refusal import NotReplayableError
from pipediag.vocabulary import Scalar


def with_options(options: dict[str, Scalar], inputs: list[Any]) -> Any:
    """The dataset with these options set over those it has.

    Raises:
        NotReplayableError: an option that this TensorFlow does not have, or a value it refuses.
    """
    from tensorflow.python.data.ops import options as module

    chosen = module.Options()
    for name, value in options.items():
        *groups, last = name.split(".")
        holder = chosen
        for group in groups:
            holder = getattr(holder, _attribute(holder, group, name))
        setattr(holder, _attribute(holder, last, name), value)
    return inputs[0].with_options(chosen)


def _attribute(holder: Any, name: str, whole: str) -> str:
    # The recording leaves out the prefix: `optimization.apply_default_optimizations`.
    for attribute in (name, f"experimental_{name}"):
        if hasattr(type(holder), attribute):
            return attribute
    raise NotReplayableError(f"This TensorFlow has no option {whole} for datasets.")
