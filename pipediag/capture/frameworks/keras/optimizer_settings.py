"""Which arguments of a Keras optimizer make it act on whole variables."""

from __future__ import annotations

from typing import Any

from pipediag.vocabulary import Scalar

_ARGUMENTS = (
    "momentum",
    "weight_decay",
    "use_ema",
    "global_clipnorm",
    "gradient_accumulation_steps",
)


def settings_of(optimizer: Any) -> dict[str, Scalar]:
    """Those that are set, of the optimizer itself where one that scales the loss is around it.

    They are read where the optimizer keeps them, so that no property of a script's own class runs.
    """
    kept = getattr(optimizer, "__dict__", {})
    inner = kept.get("inner_optimizer")
    if inner is not None:
        return settings_of(inner)
    values = {name: kept.get(name) for name in _ARGUMENTS}
    return {
        name: value for name, value in values.items() if value and isinstance(value, int | float)
    }
