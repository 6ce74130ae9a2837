"""Optimizers of the same kind as a model's own, for other variables."""

from __future__ import annotations

from typing import Any

from pipediag.capture.packages import KERAS, package_of_module
from pipediag.capture.replay.refusal import NotReplayableError

_OURS = "pipediag"


def check_alike(own: Any) -> None:
    """See whether another one of its kind can be made.

    Raises:
        NotReplayableError: that runs code of the script's.
    """
    module, name = type(own).__module__, type(own).__name__
    if package_of_module(module) not in KERAS and module.split(".")[0] != _OURS:
        raise NotReplayableError(
            f"`{name}` is an optimizer of the script's own, of which no second one is made."
        )


def alike(own: Any, name: str) -> Any:
    """One with the same arguments that begins anew: its updates take as long.

    Args:
        name: of its own, as Keras numbers those that have none.
    """
    return type(own).from_config({**own.get_config(), "name": name})
