"""The gate's configuration as the commands load it: with the rules' names checked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipediag.gate.config import GateConfig


def load_gate_config(path: Path | None) -> GateConfig:
    """The configuration of `path`, or of the nearest pyproject.toml.

    Raises:
        PipediagError: it cannot be read, or names a key or a rule that does not exist.
    """
    from pipediag.gate.config import load_config
    from pipediag.rules.registry import METAS

    return load_config(path, list(METAS))
