"""Versions, devices and settings of what the script imported."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable

from pipediag.session.recording import RecordedEnvironment

Description = Callable[[RecordedEnvironment], None]
"""Fills in what one framework says of itself."""


def describe_environment(
    environment: RecordedEnvironment, descriptions: Iterable[Description]
) -> None:
    """Fill in what the modules that the script has imported say; nothing new is imported."""
    environment.cuda_visible_devices = os.environ.get("CUDA_VISIBLE_DEVICES")
    environment.numpy = version_of("numpy")
    for describe in descriptions:
        describe(environment)


def version_of(module: str) -> str | None:
    """The version of a module that the script has imported, if it has one."""
    return getattr(sys.modules.get(module), "__version__", None)
